"""Mirrors against the real trackers, offline: what the user logs there stays as it is without us.

A tracker is imported by the tests that use it: three of them cost each process that only looks for tests two seconds.
"""

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import noisescale
from noisescale.mirrors.mirroring import shown_values
from noisescale.mirrors.trackers import open_mirror
from noisescale.run import active_run
from noisescale.window.recent_updates import NoiseScale, RecentUpdates
from noisescale_core.errors import ConfigError
from noisescale_core.estimators.noise_scale import Terms

# mlflow on SQLAlchemy 2.1
pytestmark = [
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy:sqlalchemy.exc.SADeprecationWarning"),
    pytest.mark.processes,
]

VALUES = {"noisescale/noise_scale": 97.0, "noisescale/state": 2.0}


# ---- what is shown


def measured(num_updates, grad_sq_norm=1.0):
    recent = RecentUpdates()
    for index in range(num_updates):
        wiggle = 0.01 * (-1) ** index
        recent.add(Terms(trace_cov=100.0 + wiggle, grad_sq_norm=grad_sq_norm + wiggle))
    return NoiseScale(recent.estimate(), num_updates)


def test_a_resolved_noise_scale_is_shown_with_its_interval_and_terms():
    values = shown_values(measured(400))

    assert values["noisescale/noise_scale"] == pytest.approx(100, rel=0.01)
    assert values["noisescale/noise_scale_low"] < 100 < values["noisescale/noise_scale_high"]
    assert values["noisescale/trace_cov"] == pytest.approx(100, rel=0.01)
    assert values["noisescale/grad_sq_norm"] == pytest.approx(1, rel=0.01)
    assert (values["noisescale/state"], values["noisescale/z"] > 5) == (2.0, True)


@pytest.mark.parametrize("noise_scale", [measured(0), measured(3), measured(400, grad_sq_norm=0.0)])
def test_an_unresolved_one_shows_its_state_and_no_number(noise_scale):
    assert shown_values(noise_scale) == {"noisescale/state": 0.0}


# ---- Weights & Biases


@pytest.fixture
def wandb_run(tmp_path, monkeypatch):
    import wandb

    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(mode="offline", dir=tmp_path, project="mirror")
    yield run
    run.finish()


def wandb_rows(run):
    """The rows of an offline run: LevelDB's log format, blocks of 32 KiB whose records begin with 7 bytes."""
    import wandb
    from wandb.proto import wandb_internal_pb2

    run.finish()
    wandb.teardown()  # only the end of its service has the file written
    [path] = Path(run.dir).parent.glob("*.wandb")
    data, position, whole, rows = path.read_bytes(), 7, b"", []
    while position + 7 <= len(data):
        if (room := 32768 - position % 32768) < 7:
            position += room
            continue
        length, kind = struct.unpack_from("<HB", data, position + 4)
        whole += data[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record = wandb_internal_pb2.Record.FromString(whole)
            whole = b""
            if record.WhichOneof("record_type") == "history":
                items = {"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in record.history.item}
                rows.append({name: value for name, value in items.items() if name not in ("_runtime", "_timestamp")})
    return rows


@pytest.mark.slow
def test_wandb_shows_the_values_and_keeps_every_row_and_step_of_the_user(wandb_run):
    mirror = open_mirror("wandb")

    wandb_run.log({"loss": 3.0})
    mirror.log(10, VALUES)
    wandb_run.log({"loss": 2.0})
    mirror.log(20, VALUES | {"noisescale/noise_scale": 98.0})
    wandb_run.log({"loss": 1.0}, step=2)
    mirror.log(30, VALUES | {"noisescale/noise_scale": 99.0})
    wandb_run.log({"loss": 0.5}, step=3)
    mirror.log(40, VALUES | {"noisescale/noise_scale": 100.0})

    rows = wandb_rows(wandb_run)
    assert [(row["_step"], row.get("loss")) for row in rows] == [(0, 3.0), (1, 2.0), (2, 1.0), (3, 0.5)]
    assert [row.get("noisescale/noise_scale") for row in rows] == [None, 97.0, 99.0, 100.0]
    assert [row.get("noisescale/step") for row in rows] == [None, 10, 30, 40]


@pytest.mark.slow
def test_wandb_without_a_run_is_left_alone(caplog):
    import wandb

    mirror = open_mirror("wandb")

    mirror.log(1, VALUES)
    mirror.log(2, VALUES)

    assert wandb.run is None
    assert [record.message for record in caplog.records] == ["the mirror 'wandb' shows nothing before wandb.init()"]


# ---- MLflow


@pytest.fixture(scope="module")
def mlflow_store(tmp_path_factory):
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/mlflow.db")
    yield mlflow.MlflowClient()
    mlflow.set_tracking_uri(None)


def history(client, run_id, name):
    return [(point.step, point.value) for point in client.get_metric_history(run_id, name)]


@pytest.mark.slow
def test_mlflow_shows_the_values_in_the_active_run(mlflow_store):
    import mlflow

    mirror = open_mirror("mlflow")

    with mlflow.start_run() as run:
        mirror.log(10, VALUES)
        mlflow.log_metric("loss", 2.0, step=3)
        mirror.log(20, VALUES | {"noisescale/noise_scale": 98.0})
        mlflow.flush_async_logging()

    assert history(mlflow_store, run.info.run_id, "noisescale/noise_scale") == [(10, 97.0), (20, 98.0)]
    assert history(mlflow_store, run.info.run_id, "loss") == [(3, 2.0)]
    assert mlflow_store.get_run(run.info.run_id).info.status == "FINISHED"


@pytest.mark.slow
def test_mlflow_without_a_run_starts_none(mlflow_store, caplog):
    import mlflow

    open_mirror("mlflow").log(1, VALUES)

    assert mlflow.active_run() is None
    assert "shows nothing before mlflow.start_run()" in caplog.text


# ---- TensorBoard


def scalars(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {tag: [(point.step, point.value) for point in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_tensorboard_takes_the_writer_of_the_user(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(tmp_path)
    mirror = open_mirror(writer)

    writer.add_scalar("loss", 2.0, 1)
    mirror.log(5, VALUES)
    mirror.log(6, VALUES)
    writer.close()

    assert scalars(tmp_path) == {
        "loss": [(1, 2.0)],
        "noisescale/noise_scale": [(5, 97.0), (6, 97.0)],
        "noisescale/state": [(5, 2.0), (6, 2.0)],
    }


def test_tensorboard_writes_to_a_folder_that_can_be_read_at_once(tmp_path):
    open_mirror(tmp_path / "logs").log(5, VALUES)

    assert scalars(tmp_path / "logs")["noisescale/noise_scale"] == [(5, 97.0)]


# ---- from a training


def test_a_run_shows_its_noise_scale_in_the_mirror_that_init_was_given(tmp_path, monkeypatch):
    monkeypatch.setenv("NOISESCALE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path))
    monkeypatch.setattr(active_run, "_active", [])

    with noisescale.init(mirror=tmp_path / "logs") as run:
        for step in range(20):
            run.log_norms(
                small_batch_size=1, big_batch_size=64, small_sq_norm=101 + 0.1 * (-1) ** step, big_sq_norm=1 + 100 / 64
            )

    shown = scalars(tmp_path / "logs")
    last_step, last_value = shown["noisescale/noise_scale"][-1]
    assert last_step == 19
    assert last_value == pytest.approx(100, rel=0.01)
    assert shown["noisescale/state"][-1][0] == 19


# ---- which mirror


class Kept:
    def log(self, step, values):
        self.kept = (step, dict(values))


def test_an_object_of_ones_own_is_taken_as_it_is():
    mirror = Kept()

    assert open_mirror(mirror) is mirror


@pytest.mark.slow
def test_a_run_of_wandb_is_recognised_though_its_log_takes_other_arguments(wandb_run):
    open_mirror(wandb_run).log(7, VALUES)

    assert wandb_rows(wandb_run)[0]["noisescale/step"] == 7


@pytest.mark.parametrize("mirror", ["comet", 3, None])
def test_anything_else_is_refused_with_what_is_known(mirror):
    with pytest.raises(ConfigError, match=r"wandb, mlflow, tensorboard or an object with log\(step, values\), got"):
        open_mirror(mirror)


@pytest.mark.parametrize(
    ("name", "package"), [("wandb", "wandb"), ("mlflow", "mlflow-skinny"), ("tensorboard", "tensorboard")]
)
def test_a_missing_tracker_is_said_with_a_command_that_installs_it(name, package, monkeypatch):
    monkeypatch.setitem(sys.modules, f"noisescale.mirrors.trackers.{name}", None)

    with pytest.raises(ConfigError, match=rf"pip install {package}$"):
        open_mirror(name)


def test_the_client_imports_no_tracker_and_no_framework_by_itself():
    code = (
        "import noisescale, noisescale.run.run, noisescale.capture, noisescale.mirrors.trackers, sys;"
        "print([m for m in ('wandb', 'mlflow', 'tensorboard', 'transformers', 'lightning', 'accelerate') "
        "if m in sys.modules])"
    )

    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout

    assert printed == "[]\n"
