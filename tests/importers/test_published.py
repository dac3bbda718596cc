"""Databases in the layout of Shallue et al. 2018, and MLPerf's result logs."""

import json
import random

import pytest

from imported import close

BATCHES = (16, 64, 256, 1024)


def write_database(root, *, optimizers=("sgd", "momentum"), batches=BATCHES, num_trials=3):
    """Trials whose error falls as 1 / (1 + steps / (40 (1 + B_crit / B))), slower away from the best rate."""
    rng = random.Random(0)
    for optimizer, critical in zip(optimizers, (100, 300, 900), strict=False):
        for batch in batches:
            study = root / "digits" / "mlp" / optimizer / str(batch)
            study.mkdir(parents=True)
            facts = {"batch_size": batch, "dataset": "digits", "model": "mlp", "optimizer": optimizer, "train_steps": 0}
            (study / "study.json").write_text(json.dumps(facts | {"early_stopping": False, "parameter_configs": {}}))
            for trial in range(num_trials):
                folder = study / str(trial)
                folder.mkdir()
                is_broken = trial == 1
                metadata = {
                    "parameters": {"learning_rate": 0.1 * (1 + trial)},
                    "status": "INFEASIBLE" if is_broken else "COMPLETE",
                    "steps": 1000,
                    "trial_id": trial,
                }
                (folder / "metadata.json").write_text(json.dumps(metadata))
                slow = 40 * (1 + critical / batch) * (1 + 0.2 * abs(trial - 2)) * (1 + 0.01 * rng.gauss(0, 1))
                rows = [
                    f"{step},{'nan' if is_broken else 2 / (1 + step / slow)},{0.9 / (1 + step / slow)}"
                    for step in dict.fromkeys(round(1.08**k) for k in range(120))
                ]
                header = "step,train/cross_entropy_error,val/classification_error"
                (folder / "measurements.csv").write_text("\n".join([header, "0,2.0,0.9", *rows]) + "\n")


@pytest.mark.slow
def test_a_database_in_their_layout_gives_steps_to_result_regimes_and_optimizers_beside_each_other(imports, tmp_path):
    write_database(tmp_path / "db")

    said = imports("shallue", tmp_path / "db", "--target", "0.1")
    again = imports("shallue", tmp_path / "db", "--no-sweep")

    sweeps = imports.rest.get("/sweeps", params={"project": imports.project}).json()["sweeps"]
    assert (said.status, again.num_new) == (0, 0), said.text
    assert sorted(sweep["task"] for sweep in sweeps) == ["digits/mlp/momentum", "digits/mlp/sgd"]
    for sweep in sweeps:
        [found] = imports.rest.get(f"/sweeps/{sweep['id']}/critical-batch").json()["targets"]
        truth = 100 if sweep["task"].endswith("sgd") else 300
        assert found["fit"]["critical_batch"]["value"] == pytest.approx(truth, rel=0.15)
        assert {round(point["lr"], 6) for point in found["points"]} == {0.3}  # the best of the trials
        assert [point["steps"] for point in found["points"]] == pytest.approx(
            [8 * 40 * (1 + truth / batch) for batch in BATCHES], rel=0.05
        )
    assert "the tasks beside each other" in said.text
    assert "steps saved up to the largest" in said.text
    assert "given time, by batch" in said.text


def test_a_trial_keeps_its_steps_taken_and_an_infeasible_one_has_failed(imports, tmp_path):
    write_database(tmp_path / "db", optimizers=("sgd",), batches=(16,), num_trials=2)

    imports("shallue", tmp_path / "db", "--no-sweep")

    good, broken = sorted(imports.runs(), key=lambda run: run["config"]["trial"])
    assert (good["status"], broken["status"]) == ("finished", "failed")
    assert good["first_step"] == 0  # after one step
    assert (good["global_batch"], good["task"], good["config"]["learning_rate"]) == (16, "digits/mlp/sgd", 0.1)


def test_damaged_studies_and_trials_are_named_and_the_others_arrive(imports, tmp_path):
    write_database(tmp_path / "db", optimizers=("sgd",), batches=(16, 64))
    (tmp_path / "db/digits/mlp/sgd/16/0/metadata.json").write_text("{")
    (tmp_path / "db/digits/mlp/sgd/16/2/measurements.csv").unlink()
    (tmp_path / "db/digits/mlp/sgd/64/study.json").write_text("[]")

    said = imports("shallue", tmp_path / "db", "--no-sweep")

    assert [run["name"] for run in imports.runs()] == ["digits/mlp/sgd 16 1"]
    for named in ("16/0/metadata.json: is no JSON", "16/2/measurements.csv: is not there", "64/study.json: is no JSON"):
        assert named in said.text


def mlperf_log(batch, accuracies, *, status="success"):
    def line(key, value, **metadata):
        event = {"namespace": "", "time_ms": 1_700_000_000_000, "event_type": "POINT_IN_TIME", "key": key}
        return "0: :::MLLOG " + json.dumps(event | {"value": value, "metadata": metadata}) + "\n"

    return "".join(
        [
            "some other output\n",
            line("submission_benchmark", "resnet"),
            line("global_batch_size", batch),
            line("train_samples", 1_281_167),
            line("seed", 7),
            line("opt_base_learning_rate", 8.5),
            line("run_start", None),
            *(line("eval_accuracy", value, epoch_num=epoch) for epoch, value in accuracies),
            line("run_stop", None, status=status),
        ]
    )


def test_result_logs_of_mlperf_give_steps_by_samples_with_batch_rate_and_state(imports, tmp_path):
    (tmp_path / "result_0.txt").write_text(mlperf_log(4096, [(1, 0.2), (2, 0.5), (4, 0.76)]))
    (tmp_path / "result_1.txt").write_text(mlperf_log(4096, [(1, 0.1)], status="aborted"))

    said = imports("mlperf", tmp_path, "--no-sweep")
    again = imports("mlperf", tmp_path, "--no-sweep")

    good, bad = imports.runs()
    steps = [round(epoch * 1_281_167 / 4096) - 1 for epoch in (1, 2, 4)]
    assert (said.status, again.num_new) == (0, 0), said.text
    assert close(imports.metric(good["id"], "eval_accuracy"), list(zip(steps, (0.2, 0.5, 0.76), strict=True)))
    assert (good["status"], bad["status"], good["task"]) == ("finished", "failed", "resnet")
    assert good["config"]["global_batch_size"] == 4096


def test_an_evaluation_of_mlperf_that_says_no_step_is_named(imports, tmp_path):
    text = mlperf_log(4096, [(1, 0.2), (2, 0.5)]).replace('"epoch_num": 2', '"epoch": 2')
    (tmp_path / "result_0.txt").write_text(text)

    said = imports("mlperf", tmp_path, "--no-sweep")

    assert said.status == 1
    assert "line 9: eval_accuracy 0.5 has no number, or nothing says at which step it was" in said.text
