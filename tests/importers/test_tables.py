"""Tables from the command line to the server and back."""

import json
from functools import partial

import pytest

from imported import close
from noisescale.transport.upload.http import HttpServer
from noisescale_core.errors import TransportError
from noisescale_importers import command
from noisescale_importers.delivery.connection import Connection

ROWS = [(10 * k, 3.0 / (1 + k), 0.5 / (1 + k), 0.1, 64, 2.5 - k / 100) for k in range(40)]
HEADER = "step,train_loss,grad_norm,lr,batch_size,val_acc\n"


def written(path, rows, header=HEADER):
    path.write_text(header + "".join(",".join(map(repr, row)) + "\n" for row in rows))
    return path


def test_every_number_of_a_table_is_on_the_server_as_it_was_written(imports, tmp_path):
    file = written(tmp_path / "first.csv", ROWS)

    said = imports("table", file, "--finished", "--no-sweep")

    run = imports.run()
    assert said.status == 0, said.text
    assert run["name"] == "first"
    assert run["status"] == "finished"
    assert close(imports.losses(run["id"]), [(row[0], row[1]) for row in ROWS])
    assert imports.metric(run["id"], "grad_norm") == [(row[0], row[2]) for row in ROWS]
    assert imports.metric(run["id"], "val_acc") == [(row[0], row[5]) for row in ROWS]
    assert (run["lr"], run["global_batch"]) == (0.1, 64)


def test_importing_twice_brings_no_new_record_and_the_ledger_is_true(imports, tmp_path):
    file = written(tmp_path / "first.csv", ROWS)

    first = imports("table", file, "--finished", "--no-sweep")
    again = imports("table", file, "--finished", "--no-sweep")

    [stream] = imports.streams(imports.run()["id"])
    assert (first.num_new, again.num_new) == (2 * len(ROWS) + 2, 0)
    assert again.status == 0
    assert stream["acked_seq"] == stream["num_stored"] == 2 * len(ROWS) + 2


@pytest.mark.parametrize("state", ["--running", "--finished"])
def test_a_grown_table_brings_only_what_is_new(imports, tmp_path, state):
    file = written(tmp_path / "first.csv", ROWS[:25])
    imports("table", file, state, "--no-sweep")

    written(file, ROWS)
    grown = imports("table", file, state, "--no-sweep")
    again = imports("table", file, state, "--no-sweep")

    run = imports.run()
    has_ended = state == "--finished"
    assert grown.num_new == 2 * (len(ROWS) - 25) + 2 * has_ended  # of a job that had ended, another stream
    assert again.num_new == 0
    assert close(imports.losses(run["id"]), [(row[0], row[1]) for row in ROWS])
    assert run["status"] == ("finished" if has_ended else "running")


def test_long_tables_are_the_same_in_batches_wherever_an_import_before_stopped(imports, tmp_path):
    rows = [(k, 1.0 + 1 / (1 + k)) for k in range(1700)]
    file = tmp_path / "long.csv"
    for num_rows in (499, 500, 1100, 1700, 1700):
        written(file, rows[:num_rows], "step,loss\n")
        said = imports("table", file, "--running", "--no-sweep")
        assert said.status == 0, said.text

    [stream] = imports.streams(imports.run()["id"])
    assert stream["acked_seq"] == stream["num_stored"] == 1701


def test_a_table_whose_first_rows_changed_is_refused_with_the_way_out(imports, tmp_path):
    file = written(tmp_path / "first.csv", ROWS)
    imports("table", file, "--running", "--no-sweep")
    written(file, [(*ROWS[0][:1], 9.0, *ROWS[0][2:]), *ROWS[1:]])

    said = imports("table", file, "--running", "--no-sweep")

    assert said.status == 1
    assert "--as" in said.text
    assert imports.losses(imports.run()["id"])[0] == (0, 3.0)


def test_a_table_that_shrank_is_said_and_nothing_is_deleted(imports, tmp_path):
    file = written(tmp_path / "first.csv", ROWS)
    imports("table", file, "--running", "--no-sweep")
    written(file, ROWS[:10])

    said = imports("table", file, "--running", "--no-sweep")

    assert "fewer rows" in said.text
    assert len(imports.losses(imports.run()["id"])) == len(ROWS)


def test_damaged_rows_are_named_by_line_declared_lost_and_the_others_arrive(imports, tmp_path):
    file = written(tmp_path / "first.csv", ROWS)
    lines = file.read_text().splitlines()
    lines[5], lines[9] = "40,0.6,0.1", "80,o.3,0.05,0.1,64,2.4"
    file.write_text("\n".join(lines) + "\n")

    said = imports("table", file, "--finished", "--no-sweep")

    run = imports.run()
    [stream] = imports.streams(run["id"])
    assert said.status == 1
    assert "first.csv, line 6: has 3 cells, the header has 6" in said.text
    assert "first.csv, line 10: train_loss is no number, got 'o.3'" in said.text
    assert stream["num_lost"] == 2
    assert len(imports.losses(run["id"])) == len(ROWS) - 2


def test_a_job_that_went_back_to_a_checkpoint_shows_its_latest_steps(imports, tmp_path):
    rows = [(k, 5.0 - k / 10) for k in range(20)] + [(k, 4.0 - k / 10) for k in range(10, 30)]
    file = written(tmp_path / "resumed.csv", rows, "step,loss\n")

    imports("table", file, "--finished", "--no-sweep")
    again = imports("table", file, "--finished", "--no-sweep")

    losses = imports.losses(imports.run()["id"])
    assert close(losses, [*rows[:10], *rows[20:]])
    assert again.num_new == 0


def test_json_lines_with_nested_names_and_rows_that_have_no_loss(imports, tmp_path):
    rows = [{"step": k, "train": {"loss": 2.0 - k / 10}} for k in range(9)] + [{"step": 8, "eval": {"loss": 1.5}}]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    said = imports("table", tmp_path / "log.jsonl", "--finished", "--batch", "32")

    run = imports.run()
    assert said.status == 0, said.text
    assert imports.metric(run["id"], "eval/loss") == [(8, 1.5)]
    assert close(imports.losses(run["id"]), [(k, 2.0 - k / 10) for k in range(9)])
    assert run["global_batch"] == 32


def test_a_table_of_many_runs_is_told_apart_by_its_column_of_runs(imports, tmp_path):
    rows = [(f"run {k % 3}", k // 3, 3.0 - k % 3, 2 ** (k % 3)) for k in range(60)]
    (tmp_path / "all.csv").write_text(
        "run,step,loss,batch_size\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in rows)
    )

    imports("table", tmp_path / "all.csv", "--finished", "--no-sweep")

    runs = imports.runs()
    assert [run["name"] for run in runs] == ["run 0", "run 1", "run 2"]
    assert [run["global_batch"] for run in runs] == [1, 2, 4]
    assert [len(imports.losses(run["id"])) for run in runs] == [20, 20, 20]


def test_a_dry_run_says_what_is_taken_for_what_and_sends_nothing(imports, tmp_path):
    said = imports("table", written(tmp_path / "first.csv", ROWS), "--dry-run", "--tokens", "none")

    assert said.status == 0
    assert "train_loss (guessed)" in said.text
    assert "kept as metrics: grad_norm, val_acc" in said.text
    assert imports.runs() == []


def test_flags_change_what_is_taken_and_a_wrong_one_names_the_columns(imports, tmp_path):
    file = written(tmp_path / "first.csv", ROWS)

    wrong = imports("table", file, "--loss", "los")
    imports("table", file, "--loss", "val_acc", "--batch", "16", "--finished", "--no-sweep")

    run = imports.run()
    assert wrong.status == 2
    assert "columns are step, train_loss" in wrong.text
    assert close(imports.losses(run["id"]), [(row[0], row[5]) for row in ROWS])
    assert run["global_batch"] == 16


def test_tokens_seen_give_batch_and_examples_with_the_length_of_a_sequence(imports, tmp_path):
    rows = [(k, 3.0, 1024 * 8 * (k + 1)) for k in range(10)]
    file = written(tmp_path / "tokens.csv", rows, "iter,loss,tokens_seen\n")

    imports("table", file, "--sequence-length", "1024", "--finished", "--no-sweep")

    run = imports.run()
    assert (run["unit"], run["units_per_example"], run["global_batch"]) == ("tokens", 1024, 8)
    assert run["examples"] == 80


def test_an_import_that_was_cut_goes_on_where_it_stopped(imports, tmp_path, monkeypatch):
    """The server takes two batches and is gone; the second of them before its answer arrives."""
    file = written(tmp_path / "long.csv", [(k, 1.0 + 1 / (1 + k)) for k in range(1700)], "step,loss\n")
    post, posted = HttpServer.post_batch, []

    def lost(self, stream_id, body):
        posted.append(post(self, stream_id, body))
        if len(posted) >= 2:
            raise TransportError("the network is gone")
        return posted[-1]

    monkeypatch.setattr(command, "Connection", partial(Connection, patience_seconds=0))
    monkeypatch.setattr(HttpServer, "post_batch", lost)
    cut = imports("table", file, "--finished", "--no-sweep")
    monkeypatch.setattr(HttpServer, "post_batch", post)
    again = imports("table", file, "--finished", "--no-sweep")

    [stream] = imports.streams(imports.run()["id"])
    assert cut.status == 1
    assert "the network is gone: run the same command again" in cut.text
    assert again.num_new == 1702 - 1000
    assert stream["acked_seq"] == stream["num_stored"] == 1702
    assert len(imports.losses(imports.run()["id"])) > 500


def test_a_run_that_was_deleted_stays_deleted_and_the_way_out_is_said(imports, tmp_path):
    file = written(tmp_path / "first.csv", ROWS)
    imports("table", file, "--finished", "--no-sweep")
    imports.rest.delete(f"/runs/{imports.run()['id']}").raise_for_status()

    said = imports("table", file, "--finished", "--no-sweep")
    anew = imports("table", file, "--finished", "--no-sweep", "--as", "anew")

    assert (said.status, anew.status) == (1, 0)
    assert "it was deleted on the server: import the source under another name with --as" in said.text
    assert len(imports.runs()) == 1


def test_a_key_that_may_not_is_a_sentence(imports, tmp_path, monkeypatch):
    monkeypatch.setenv("NOISESCALE_API_KEY", "ns_w_wrong-wrong-wrong-wrong")

    said = imports("table", written(tmp_path / "first.csv", ROWS), "--finished")

    assert said.status == 2
    assert "set NOISESCALE_API_KEY to a key that may" in said.text


def test_a_source_under_another_name_is_another_source(imports, tmp_path):
    file = written(tmp_path / "first.csv", ROWS)
    imports("table", file, "--finished", "--no-sweep")

    other = imports("table", file, "--finished", "--no-sweep", "--as", "copy")
    (tmp_path / "moved").mkdir()
    file.rename(tmp_path / "moved" / "first.csv")
    moved = imports("table", tmp_path / "moved" / "first.csv", "--finished", "--no-sweep", "--as", "copy")

    assert other.num_new > 0
    assert moved.num_new == 0
    assert len(imports.runs()) == 2
