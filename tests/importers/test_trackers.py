"""Files written by the trackers' own packages."""

import sqlite3
import sys
from typing import ClassVar

import pytest

from imported import close
from tracking_server import LOSSES as REMOTE
from tracking_server import tracking_server

LOSSES = [(k, 3.0 / (1 + k)) for k in range(60)]


def write_events(folder, first=0, last=60, **config):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        for k in range(first, last):
            writer.add_scalar("train/loss", 3.0 / (1 + k), k)
            writer.add_scalar("train/grad_norm", 1.0 / (1 + k), k)
            writer.add_scalar("train/lr", 0.1, k)
            if k % 20 == 19:
                writer.add_scalar("val/loss", 4.0 / (1 + k), k)
        writer.add_histogram("weights", __import__("numpy").zeros(4), last)
        if config:
            writer.add_hparams(config, {}, run_name=".")


def test_event_files_arrive_once_and_a_grown_folder_brings_what_is_new(imports, tmp_path):
    write_events(tmp_path / "a", 0, 30)
    flags = ["--batch", "32", "--running", "--no-sweep"]
    first = imports("tensorboard", tmp_path, *flags)
    write_events(tmp_path / "a", 30, 60)

    grown = imports("tensorboard", tmp_path, *flags)
    again = imports("tensorboard", tmp_path, *flags)

    run = imports.run()
    assert (first.status, grown.status, again.num_new) == (0, 0, 0)
    assert first.num_new + grown.num_new == 1 + 60 + 60 + 3
    assert close(imports.losses(run["id"]), [(k, pytest.approx(v, rel=1e-6)) for k, v in LOSSES])
    assert len(imports.metric(run["id"], "train/grad_norm")) == 60
    assert [step for step, _ in imports.metric(run["id"], "val/loss")] == [19, 39, 59]
    assert (run["name"], run["global_batch"], round(run["lr"], 6)) == ("a", 32, 0.1)


def test_hyperparameters_of_event_files_fill_roles(imports, tmp_path):
    write_events(tmp_path / "b", batch_size=64, seed=3)

    imports("tensorboard", tmp_path / "b", "--finished", "--no-sweep")

    assert imports.run()["global_batch"] == 64


def test_a_damaged_record_of_an_event_file_is_named_and_the_others_arrive(imports, tmp_path):
    write_events(tmp_path / "a")
    [file] = (tmp_path / "a").iterdir()
    content = bytearray(file.read_bytes())
    content[3000] ^= 16
    file.write_bytes(content[:-20])

    said = imports("tensorboard", tmp_path, "--batch", "32", "--finished", "--no-sweep")

    found = imports.losses(imports.run()["id"])
    assert said.status == 1
    assert "does not fit its checksum" in said.text
    assert "the record is cut" in said.text
    assert 58 <= len(found) <= 60
    assert {step for step, _ in found} <= set(range(60))


def test_an_offline_run_of_wandb_arrives_once_with_config_and_all_its_blocks(imports, offline_run):
    said = imports("wandb", offline_run, "--learning-rate", "optimizer/lr", "--no-sweep")
    again = imports("wandb", offline_run, "--learning-rate", "optimizer/lr", "--no-sweep")

    run = imports.run()
    assert (said.status, again.num_new) == (0, 0), said.text
    assert close(imports.losses(run["id"]), [(k, 5 + k / 64) for k in range(60)])
    assert imports.metric(run["id"], "long/metric 7") == [(k, 7 + k / 60) for k in range(60)]
    assert (run["name"], run["task"], run["status"]) == ("hello", "digits", "finished")
    assert (run["global_batch"], run["lr"]) == (32, 0.1)


def test_a_damaged_block_of_wandb_is_named_and_the_others_arrive(imports, offline_run, tmp_path):
    [file] = offline_run.glob("offline*/*.wandb")
    content = bytearray(file.read_bytes())
    assert len(content) > 2 * 32 * 1024
    content[40_000] ^= 4
    (tmp_path / file.name).write_bytes(content)

    said = imports("wandb", tmp_path, "--no-sweep")

    found = imports.losses(imports.run()["id"])
    assert said.status == 1
    assert "does not fit its checksum" in said.text
    assert 0 < len(found) < 60
    assert all(loss == pytest.approx(5 + k / 64) for k, loss in found)


@pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")  # by MLflow itself
@pytest.mark.parametrize("store", ["mlruns", pytest.param("mlflow.db", marks=pytest.mark.slow)])
def test_runs_of_mlflow_arrive_once_with_parameters_and_state(imports, tmp_path, store, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    from mlflow.entities import Metric, Param
    from mlflow.tracking import MlflowClient

    path = tmp_path / store
    client = MlflowClient(path.as_uri() if store == "mlruns" else f"sqlite:///{path}")
    experiment = client.create_experiment("digits")
    for batch in (16, 64):
        run = client.create_run(experiment, run_name=f"batch {batch}")
        metrics = [Metric("loss", v, 1_700_000_000_000 + 1000 * k, k) for k, v in LOSSES]
        metrics += [Metric("lr", 0.1, 1_700_000_000_000 + 1000 * k, k) for k, _ in LOSSES]
        client.log_batch(run.info.run_id, metrics=metrics, params=[Param("batch_size", str(batch))])
        client.set_terminated(run.info.run_id)

    said = imports("mlflow", path, "--no-sweep")
    again = imports("mlflow", path, "--no-sweep")

    runs = imports.runs()
    assert (said.status, again.num_new) == (0, 0), said.text
    assert [(run["name"], run["global_batch"], run["task"]) for run in runs] == [
        ("batch 16", 16, "digits"),
        ("batch 64", 64, "digits"),
    ]
    assert all(close(imports.losses(run["id"]), LOSSES) for run in runs)
    assert {run["status"] for run in runs} == {"finished"}


@pytest.mark.parametrize("kind", ["tensorboard", "wandb", "mlflow"])
def test_a_missing_reader_says_how_to_get_it(imports, tmp_path, kind, monkeypatch):
    from noisescale_importers import source

    monkeypatch.delitem(sys.modules, f"noisescale_importers.readers.{kind}", raising=False)
    for name in [name for name in sys.modules if name.split(".")[0] == kind]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, kind, None)

    said = imports(kind, tmp_path)

    assert said.status == 2
    assert f"pip install './importers[{kind}]'" in said.text
    assert kind in source.importer_names()


@pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")  # by MLflow itself
def test_a_damaged_store_of_mlflow_is_named_and_its_other_runs_arrive(imports, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    from mlflow.tracking import MlflowClient

    client = MlflowClient((tmp_path / "mlruns").as_uri())
    experiment = client.create_experiment("digits")
    ids = [client.create_run(experiment).info.run_id for _ in range(2)]
    for run_id in ids:
        for k, loss in LOSSES[:5]:
            client.log_metric(run_id, "loss", loss, step=k)
    [file] = (tmp_path / "mlruns").glob(f"*/{ids[0]}/metrics/loss")
    file.write_text(file.read_text().replace("3.0", "3.0 oops"))
    (tmp_path / "cut.db").write_bytes(b"SQLite format 3\x00" + b"\x01" * 900)

    said = imports("mlflow", tmp_path / "mlruns", "--finished", "--no-sweep")
    cut = imports("mlflow", tmp_path / "cut.db")

    assert (said.status, cut.status) == (1, 2)
    assert ids[0] in said.text
    assert "cut.db is no store that MLflow can read" in cut.text
    assert [run["last_step"] for run in imports.runs()] == [4]


def test_runs_of_a_tracking_server_arrive_by_its_documented_answers(imports):
    """A stand-in for the server: MLflow's own needs far more than its client."""
    with tracking_server() as address:
        said = imports("mlflow", address, "--no-sweep")
        again = imports("mlflow", address, "--no-sweep")

    run = imports.run()
    assert (said.status, again.num_new) == (0, 0), said.text
    assert (run["name"], run["task"], run["status"], run["global_batch"]) == ("remote", "digits", "finished", 48)
    assert close(imports.losses(run["id"]), REMOTE)


def test_a_folder_or_database_that_is_no_store_is_refused_and_left_as_it_was(imports, tmp_path):
    (tmp_path / "folder").mkdir()
    sqlite3.connect(tmp_path / "other.db").close()

    for source in ("folder", "other.db", "missing"):
        assert imports("mlflow", tmp_path / source).status == 2

    assert list((tmp_path / "folder").iterdir()) == []
    assert (tmp_path / "other.db").stat().st_size == 0


class OnlineRun:
    """As `wandb.Api().runs()` gives it, by its documentation; nothing of a real server was recorded."""

    id, name, state, created_at = "3w723gf8", "online", "crashed", "2025-03-01T12:00:00Z"
    config: ClassVar = {"batch_size": 32, "optimizer": {"lr": 0.1}}

    def scan_history(self):
        for k, loss in LOSSES:
            yield {"_step": k, "_timestamp": 1.7e9 + k, "_runtime": k, "loss": loss, "note": "text", "bad": "NaN"}


def test_runs_of_a_wandb_server_arrive_by_its_documented_answers(imports, monkeypatch):
    import wandb

    class Api:
        def runs(self, path):
            assert path == "team/digits"
            return [OnlineRun()]

    monkeypatch.setattr(wandb, "Api", Api)

    said = imports("wandb", "team/digits", "--no-sweep")
    again = imports("wandb", "team/digits", "--no-sweep")

    run = imports.run()
    assert (said.status, again.num_new) == (0, 0), said.text
    assert (run["name"], run["task"], run["status"], run["global_batch"]) == ("online", "digits", "failed", 32)
    assert close(imports.losses(run["id"]), LOSSES)


def test_a_wandb_server_that_gives_nothing_is_a_sentence(imports, monkeypatch):
    import wandb

    def refuse(*arguments):
        raise wandb.errors.CommError("no such project")

    monkeypatch.setattr(wandb, "Api", refuse)

    said = imports("wandb", "team/digits")

    assert said.status == 2
    assert "W&B gives no runs of team/digits: no such project; log in with `wandb login`" in said.text
