"""What a source could be mistaken for: each case once brought a wrong number, or lost one, without a word."""

import os
import sys
import time

import pytest

from noisescale import commands
from noisescale_importers import pipeline
from noisescale_importers.answers.command import say_what_follows
from noisescale_importers.answers.summary import Summary
from noisescale_importers.answers.sweep import goal_of, question_of
from noisescale_importers.delivery.assembly import Assembly, Logged, Measured
from noisescale_importers.prepared import Wishes, summary_of
from noisescale_importers.roles import guessed
from noisescale_importers.source import Row, SourceRun, load


def looked_at(folder, kind="table", **flags):
    wishes = Wishes(kind=kind, project="p", flags=flags)
    return [(one, summary_of(one, wishes)) for one in pipeline.look(load(kind), [str(folder)], {}, wishes).runs]


def passed_by(prepared, summary):
    assembly = Assembly(prepared.reading(), has_single_values=prepared.source.has_single_values, is_over=True)
    items = list(summary.watch(assembly.items(prepared.source.rows())))
    summary.settled()
    return items


def table(path, header, rows):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def test_an_evaluation_that_begins_after_the_first_rows_of_a_table_is_not_lost(tmp_path):
    rows = [(k, 3 / (1 + k), 32, 2 - k / 1000 if k % 100 == 99 else "") for k in range(400)]
    table(tmp_path / "a.csv", "step,loss,batch_size,val_loss", rows)

    [(prepared, summary)] = looked_at(tmp_path)
    items = passed_by(prepared, summary)

    assert [(one.step, dict(one.values)) for one in items if isinstance(one, Logged)] == [
        (k, {"val_loss": 2 - k / 1000}) for k in (99, 199, 299, 399)
    ]
    assert (summary.metric, summary.values.steps) == ("val_loss", [99, 199, 299, 399])


def test_an_evaluation_that_begins_after_all_looked_at_rows_is_the_metric(tmp_path):
    rows = [(k, 1, 2.5 if k == 350 else "") for k in range(400)]
    table(tmp_path / "a.csv", "step,loss,val_loss", rows)

    [(prepared, summary)] = looked_at(tmp_path)
    passed_by(prepared, summary)

    assert (summary.metric, summary.values.values) == ("val_loss", [2.5])


def test_a_flag_may_name_a_column_that_only_some_runs_have_or_that_comes_late(tmp_path):
    table(tmp_path / "a.csv", "step,loss,score", [(k, 1, k if k > 320 else "") for k in range(330)])
    table(tmp_path / "b.csv", "step,loss", [(k, 1) for k in range(3)])

    found = looked_at(tmp_path, metric="score")

    assert [one.metric for _, one in found] == ["score", "score"]
    passed_by(*found[0])
    assert found[0][1].values.steps == list(range(321, 330))


def test_a_flag_that_no_run_has_is_still_refused_with_the_columns(tmp_path, capsys):
    file = table(tmp_path / "a.csv", "step,loss", [(0, 1)])

    assert commands.main(["import", "table", str(file), "--metric", "scoer", "--dry-run"]) == 2
    assert "columns are step, loss" in capsys.readouterr().err


def test_a_column_that_counts_batches_is_no_batch_size_and_its_rows_are_no_runs(tmp_path):
    table(tmp_path / "a.csv", "epoch,batch,loss", [(k // 50, k % 50, 3 / (1 + k)) for k in range(120)])
    table(tmp_path / "b.csv", "batch,loss", [(k + 1, 3 / (1 + k)) for k in range(120)])

    found = looked_at(tmp_path)

    assert len(found) == 2
    assert all("batch" not in one.roles for one, _ in found)
    assert all("counts batches" in one.not_taken["batch"] for one, _ in found)


def test_a_column_batch_that_holds_sizes_is_taken_and_a_flag_takes_any(tmp_path):
    table(tmp_path / "a.csv", "step,batch,loss", [(k, 64 if k < 60 else 128, 1) for k in range(120)])
    table(tmp_path / "b.csv", "step,batch,loss", [(k, k + 1, 1) for k in range(120)])

    sizes = [one.number("batch") for one, _ in looked_at(tmp_path)]
    asked_for = [one.number("batch") for one, _ in looked_at(tmp_path, batch="batch")]

    assert (sizes, asked_for) == ([64, None], [64, 1])


def test_a_table_of_a_spreadsheet_with_semicolons_has_its_columns(tmp_path):
    (tmp_path / "a.csv").write_text("step;train_loss;batch size\n" + "".join(f"{k};{1 + k};32\n" for k in range(5)))

    [(prepared, _)] = looked_at(tmp_path)

    assert (prepared.column("loss"), prepared.number("batch")) == ("train_loss", 32)


@pytest.mark.parametrize(
    "name",
    [
        "clipped_grad_norm",
        "layer1_grad_norm",
        "max_grad_norm",
        "embedding_grad_norm",
        "val_grad_norm",
        "grad_norm_clip",
    ],
)
def test_a_norm_of_a_part_or_of_clipped_gradients_is_not_guessed_as_the_norm(name):
    assert guessed("gradient-norm", [name]) is None


@pytest.mark.parametrize(
    "name",
    ["grad_norm", "train/grad_norm", "optim/total_grad_norm", "Grad Norm", "unclipped_grad_norm", "gradients/norm",
     "train/global_grad_norm", "grad-norm", "gnorm", "pre_clip_grad_norm", "grad_norm_before_clipping"],
)  # fmt: skip
def test_names_that_trainers_give_the_norm_of_the_whole_gradient_are_known(name):
    assert guessed("gradient-norm", [name]) == name


def clipped_run(number, batch):
    summary = Summary(str(number), "run", "task", norm_name="grad_norm")
    for k in range(200):
        loss = 3 / (1 + k / 50)
        norm = min(1.0, (1 + 40 / batch) * (0.6 + (k * 37 % 100) / 100))
        items = [
            Measured(k, 1, None, None, loss, None, batch, None, 0, ""),
            Logged(k, None, None, (("grad_norm", norm),), ""),
        ]
        list(summary.watch(items))
    return summary


def test_norms_of_clipped_gradients_give_no_noise_scale_and_the_sentence_says_so():
    runs = [clipped_run(k, batch) for k, batch in enumerate((16, 64, 256))]

    said = next(
        line
        for line in say_what_follows(runs, NoServer(), "p", targets=(), goal=None, is_clipped=False, prices={})
        if "noise scale" in line
    )

    assert said.startswith("no noise scale between runs: in 3 of 3 runs many norms are as large as the largest")


class NoServer:
    """Takes whatever is asked, and has nothing to answer."""

    def request(self, method, path, body=None):
        from noisescale.transport.upload.answers import Answer

        return Answer(200, {})


def test_runs_that_count_in_other_units_are_left_out_and_named():
    short = [
        Summary(str(k), "run", "task", unit="tokens", units_per_example=512.0, batches={8.0 * 2**k: 9})
        for k in range(3)
    ]
    longer = Summary("9", "run", "task", unit="tokens", units_per_example=1024.0, batches={64.0: 9})

    said = list(say_what_follows([*short, longer], NoServer(), "p", targets=(), goal=None, is_clipped=False, prices={}))

    assert said[:2] == [
        "\ntask: 3 runs",
        "1 more do not count in sequences of 512 tokens as these do, so that their batches are no neighbours: --batch, "
        "--tokens and --sequence-length say it, or a --task of their own",
    ]


@pytest.mark.parametrize(
    ("name", "goal"),
    [("val_accumulated_loss", "min"), ("eval/previous_bpb", "min"), ("val_acc", "max"), ("eval_score", "max"),
     ("val/average_precision", "max"), ("test_word_error", "min"), ("mAP", "max")],
)  # fmt: skip
def test_whether_a_metric_falls_is_read_off_what_it_is(name, goal):
    assert goal_of(name) == goal


def test_a_run_that_never_reached_its_target_is_no_run_that_reached_it(tmp_path):
    rows = [(8, 1000), (16, 600), (32, 400), (64, "nan"), (128, "inf")]
    table(tmp_path / "a.csv", "batch_size,steps_to_target", rows)

    found = looked_at(tmp_path)
    question = question_of([summary for one, summary in found if passed_by(one, summary) is not None], None)

    assert [one.batch for one in question.trials] == [8, 16, 32]


def test_a_pause_is_no_step():
    summary = Summary("1", "run", "task")
    times = [k * 2.0 + (86_400 if k >= 50 else 0) for k in range(100)]
    list(summary.watch([Measured(k, 1, t, None, 1.0, None, 8.0, None, 0, "") for k, t in enumerate(times)]))

    assert summary.seconds_per_step == pytest.approx(2.0)


def test_seconds_since_the_start_and_times_of_the_day_are_not_mixed():
    summary = Summary("1", "run", "task")
    clocks = [(None, 0.0), (1.7e9, None), (None, 4.0), (None, 6.0)]
    list(summary.watch([Measured(k, 1, t, s, 1.0, None, 8.0, None, 0, "") for k, (t, s) in enumerate(clocks)]))

    assert summary.seconds_per_step == pytest.approx(2.0)


@pytest.mark.parametrize("kind", ["table", "log", "mlperf"])
def test_what_is_no_regular_file_is_named_and_nobody_waits_for_it(tmp_path, kind):
    os.mkfifo(tmp_path / {"table": "a.csv"}.get(kind, "a.log"))
    began = time.monotonic()

    found = pipeline.look(load(kind), [str(tmp_path)], {}, Wishes(kind=kind, project="p", flags={}))

    assert time.monotonic() - began < 5
    assert [one.reason for one in found.damages] == [
        "is no regular file, which alone can be read twice: write it to one"
    ]


def test_an_infinity_in_a_database_of_mlflow_is_one_here():
    from noisescale_importers.readers import mlflow

    assert mlflow._as_logged(sys.float_info.max) == float("inf")
    assert mlflow._as_logged(-sys.float_info.max) == float("-inf")
    assert mlflow._as_logged(3.5) == 3.5


def test_all_pages_of_experiments_of_mlflow_are_read():
    from types import SimpleNamespace

    from mlflow.store.entities import PagedList

    from noisescale_importers.readers import mlflow

    class Client:
        def search_experiments(self, page_token=None):
            number = int(page_token or 0)
            return PagedList(
                [SimpleNamespace(experiment_id=str(number), name=f"e{number}")], str(number + 1) if number < 2 else None
            )

        def search_runs(self, ids, **rest):
            info = SimpleNamespace(run_id=f"r{ids[0]}", run_name=None, status="FINISHED", start_time=None)
            return PagedList([SimpleNamespace(info=info, data=SimpleNamespace(params={}, metrics={}))], None)

    assert [run.identity for run in mlflow._runs_of(Client(), "here")] == ["r0", "r1", "r2"]


@pytest.mark.processes
def test_runs_of_one_id_in_two_projects_of_wandb_are_two_runs(offline_run):
    found = load("wandb").find([str(offline_run.parent / "twice")], {})

    runs = [one for one in found if isinstance(one, SourceRun)]
    assert [one.identity for one in runs] == ["a/baseline", "b/baseline"]
    losses = [[row.values["loss"] for row in one.rows() if isinstance(row, Row)] for one in runs]
    assert losses == [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]
