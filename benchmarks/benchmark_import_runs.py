"""How long `noisescale import` takes from files of trackers to a fitted B_crit, in how much memory, and once only.

A hundred runs, 25 of each of four formats, are written by the trackers' own packages: TensorBoard, W&B (offline),
MLflow and the Trainer state of Hugging Face. Their losses are a known function of steps and batch size.
"""

import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
from harness import AS_LOCAL_USER, LOCAL_TOKEN, server
from results_file import Figure, write
from smoke import size

BATCHES = size((16, 64, 256, 1024, 4096), (16, 256, 1024))
SEEDS = size(5, 1)
NUM_LOGGED = size(200, 30)
CRITICAL_BATCH, MIN_STEPS = 400.0, 100.0
PROJECT, TASK = "imported", "power law"

Curve = list[tuple[int, float, float]]


@dataclass(frozen=True, slots=True)
class Run:
    """One run that is written: its batch, its seed, and (step, training loss, evaluation loss)."""

    batch: int
    seed: int
    curve: Curve


def runs() -> Iterator[Run]:
    """Five batch sizes, five seeds."""
    for batch in BATCHES:
        scale = MIN_STEPS * (1 + CRITICAL_BATCH / batch)
        for seed in range(SEEDS):
            generator = random.Random(1000 * batch + seed)
            luck = 1 + 0.01 * generator.gauss(0, 1)
            steps = dict.fromkeys(round((20 * scale) ** (k / NUM_LOGGED)) for k in range(1, NUM_LOGGED + 1))
            losses = [(step, 3 * (1 + step / (scale * luck)) ** -0.5) for step in steps]
            yield Run(batch, seed, [(step, loss * (1 + 0.02 * generator.gauss(0, 1)), loss) for step, loss in losses])


def write_events(folder: Path) -> None:
    """By torch's writer of TensorBoard's files."""
    from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415  # each format's package in its own time

    for run in runs():
        with SummaryWriter(str(folder / f"{run.batch}-{run.seed}")) as writer:
            for step, loss, evaluated in run.curve:
                named = {"loss": loss, "eval_loss": evaluated, "lr": 0.1, "batch_size": run.batch, "grad_norm": 1.0}
                for name, value in named.items():
                    writer.add_scalar(name, value, step)


OFFLINE = """
import json, sys, wandb
for number, run in enumerate(json.load(open("runs.json"))):
    settings = wandb.Settings(console="off", x_disable_stats=True, x_disable_meta=True)
    open_run = wandb.init(project="p", config={"batch_size": run["batch"], "lr": 0.1}, settings=settings, reinit=True)
    for step, loss, evaluated in run["curve"]:
        open_run.log({"loss": loss, "eval_loss": evaluated, "grad_norm": 1.0}, step=step)
    open_run.finish()
"""


def write_offline(folder: Path) -> None:
    """By W&B in its offline mode, in a process of its own."""
    folder.mkdir()
    content = [{"batch": run.batch, "curve": run.curve} for run in runs()]
    (folder / "runs.json").write_text(json.dumps(content))
    environment = os.environ | {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    subprocess.run([sys.executable, "-c", OFFLINE], cwd=folder, env=environment, check=True)


def write_mlflow(folder: Path) -> None:
    """By MLflow's client into a folder of runs."""
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    from mlflow.entities import Metric, Param  # noqa: PLC0415
    from mlflow.tracking import MlflowClient  # noqa: PLC0415

    client = MlflowClient(folder.as_uri())
    experiment = client.create_experiment("p")
    for run in runs():
        begun = client.create_run(experiment)
        metrics = [
            Metric(name, value, 1_700_000_000_000 + 100 * step, step)
            for step, loss, evaluated in run.curve
            for name, value in (("loss", loss), ("eval_loss", evaluated))
        ]
        params = [Param("batch_size", str(run.batch)), Param("lr", "0.1")]
        for first in range(0, len(metrics), 900):
            client.log_batch(begun.info.run_id, metrics=metrics[first : first + 900], params=params)
        client.set_terminated(begun.info.run_id)


def write_states(folder: Path) -> None:
    """By the Trainer's own state, in a folder for each batch size, which it does not say."""
    from transformers.trainer_callback import TrainerState  # noqa: PLC0415

    for run in runs():
        history: list[dict[str, float]] = []
        for step, loss, evaluated in run.curve:
            history += [{"loss": loss, "learning_rate": 0.1, "step": step}, {"eval_loss": evaluated, "step": step}]
        path = folder / str(run.batch) / str(run.seed)
        path.mkdir(parents=True)
        last = run.curve[-1][0]
        TrainerState(global_step=last, max_steps=last, log_history=history).save_to_json(
            str(path / "trainer_state.json")
        )


def commands(folder: Path) -> dict[str, list[list[str]]]:
    """By format, the imports of its 25 runs."""
    states = [["log", str(folder / "states" / str(batch)), "--batch", str(batch)] for batch in BATCHES]
    return {
        "TensorBoard": [["tensorboard", str(folder / "events")]],
        "W&B": [["wandb", str(folder / "offline")]],
        "MLflow": [["mlflow", str(folder / "mlruns")]],
        "Trainer state": states,
    }


WITH_MEMORY = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(process.pid, 0)
print("peak", usage.ru_maxrss, "KiB", file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""A small process in between: a child's peak counts what its parent had when it forked."""


def imported(url: str, arguments: Sequence[str]) -> tuple[float, float, int]:
    """Seconds and MiB of one import, and its new records.

    Raises:
        RuntimeError: If it fails.
    """
    command = [str(Path(sys.executable).with_name("noisescale")), "import", *arguments, "--project", PROJECT]
    environment = os.environ | {"NOISESCALE_URL": url, "NOISESCALE_API_KEY": LOCAL_TOKEN}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", WITH_MEMORY, *command, "--task", TASK, "--finished"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    found, memory = re.search(r": ([\d,]+) new records", done.stdout), re.search(r"peak (\d+) KiB", done.stderr)
    if done.returncode or found is None or memory is None:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout} {done.stderr}")
    return seconds, int(memory[1]) / 1024, int(found[1].replace(",", ""))


def fitted(url: str) -> float:
    """B_crit of the sweep of all runs; no number without a fit, as of the few runs of the smoke form."""
    with httpx.Client(base_url=f"{url}/api/v1", headers=AS_LOCAL_USER, timeout=60) as rest:
        [sweep] = rest.get("/sweeps", params={"project": PROJECT}).raise_for_status().json()["sweeps"]
        targets = rest.get(f"/sweeps/{sweep['id']}/critical-batch").raise_for_status().json()["targets"]
    fit = targets[0]["fit"]
    return math.nan if fit is None else float(fit["critical_batch"]["value"])


def measure() -> list[Figure]:
    """Every format once, then once more."""
    figures, all_seconds, most_memory, again_new, again_seconds = [], 0.0, 0.0, 0, 0.0
    with tempfile.TemporaryDirectory() as name, server() as url:
        folder = Path(name)
        write_events(folder / "events")
        write_offline(folder / "offline")
        write_mlflow(folder / "mlruns")
        write_states(folder / "states")
        for kind, calls in commands(folder).items():
            found = [imported(url, arguments) for arguments in calls]
            seconds = sum(one[0] for one in found)
            all_seconds, most_memory = all_seconds + seconds, max(most_memory, *(one[1] for one in found))
            number = len(BATCHES) * SEEDS
            figures += [
                Figure(f"{kind}: {number} runs", seconds, "s"),
                Figure(f"{kind}: memory", max(one[1] for one in found), "MiB"),
                Figure(f"{kind}: new records", sum(one[2] for one in found), "records"),
            ]
        figures.append(Figure("fitted B_crit to the true one", fitted(url) / CRITICAL_BATCH, "", "0.9 to 1.1"))
        for calls in commands(folder).values():
            again = [imported(url, arguments) for arguments in calls]
            again_seconds += sum(one[0] for one in again)
            again_new += sum(one[2] for one in again)
    number = 4 * len(BATCHES) * SEEDS
    return [
        Figure(f"{number} runs of four formats to a fitted B_crit", all_seconds, "s", "<= 60"),
        Figure("most memory of an import", most_memory, "MiB", "<= 300"),
        Figure("the same once more", again_seconds, "s"),
        Figure("new records of the second time", again_new, "records", "<= 0"),
        *figures,
    ]


if __name__ == "__main__":
    write("import_runs", measure())
