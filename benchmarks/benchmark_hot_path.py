"""What one logged step costs the training thread, beside the trackers that people know, in the same minutes.

Each tracker writes to the same disk and is offline: no server, no network. One call logs a loss, a rate and the two
terms of the noise scale, as ours does. The trackers take turns, several times, so that a machine that gets slower
meanwhile does not decide; trackers that are not installed are named as missing.
"""

import argparse
import logging
import os
import tempfile
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

from benchmark_spool import a_run, nanoseconds
from harness import percentile
from results_file import Figure, write
from smoke import IS_SMOKE, size

CALLS = size(1_000_000, 2_000)
ROUNDS = size(4, 1)
LAYERS = {f"blocks.{number}": (3.0, 1.0) for number in range(150)}
TARGETS = {"p50": "at most 5 µs", "p99": "at most 40 µs"}
LAYERED_TARGETS = {"p50": "at most 15 µs"}
BUSY_TARGETS = {"p99": "at most 100 µs"}
SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}

Call = Callable[[], object]


@contextmanager
def noisescale(folder: Path) -> Iterator[Call]:
    """`log_norms`, its record on disk when it returns."""
    run = a_run(folder / "noisescale")
    yield lambda: run.log_norms(
        small_batch_size=8, big_batch_size=64, small_sq_norm=3.0, big_sq_norm=1.0, loss=0.5, lr=0.1
    )
    run.finish()


@contextmanager
def noisescale_with_layers(folder: Path) -> Iterator[Call]:
    """The same with 150 layers at each step: their norms are given, so no norm is computed."""
    run = a_run(folder / "layers")
    yield lambda: run.log_norms(
        small_batch_size=8, big_batch_size=64, small_sq_norm=3.0, big_sq_norm=1.0, loss=0.5, lr=0.1, layers=LAYERS
    )
    run.finish()


@contextmanager
def wandb_offline(folder: Path) -> Iterator[Call]:
    """`wandb.log`."""
    import wandb  # noqa: PLC0415 - imported only where it is installed

    settings = wandb.Settings(console="off", silent=True)
    run = wandb.init(project="hot-path", mode="offline", dir=str(folder), settings=settings)
    yield lambda: run.log({"loss": 0.5, "lr": 0.1, "trace_cov": 18.3, "grad_sq_norm": 0.7})
    run.finish()


@contextmanager
def tensorboard(folder: Path) -> Iterator[Call]:
    """Four `add_scalar`."""
    from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - imported only where it is installed

    writer = SummaryWriter(str(folder / "tensorboard"))
    values = {"loss": 0.5, "lr": 0.1, "trace_cov": 18.3, "grad_sq_norm": 0.7}

    def call() -> None:
        for name, value in values.items():
            writer.add_scalar(name, value)

    yield call
    writer.close()


@contextmanager
def trackio(folder: Path) -> Iterator[Call]:
    """`trackio.log`."""
    os.environ["TRACKIO_DIR"] = str(folder / "trackio")
    import trackio as tracker  # noqa: PLC0415 - imported only where it is installed

    run = tracker.init(project="hot-path")
    yield lambda: run.log({"loss": 0.5, "lr": 0.1, "trace_cov": 18.3, "grad_sq_norm": 0.7})
    run.finish()


@contextmanager
def mlflow(folder: Path) -> Iterator[Call]:
    """`mlflow.log_metrics` into files."""
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    import mlflow as tracker  # noqa: PLC0415 - imported only where it is installed

    tracker.set_tracking_uri((folder / "mlflow").as_uri())
    with tracker.start_run():
        yield lambda: tracker.log_metrics({"loss": 0.5, "lr": 0.1, "trace_cov": 18.3, "grad_sq_norm": 0.7})


@contextmanager
def aim(folder: Path) -> Iterator[Call]:
    """`aim.Run.track`."""
    from aim import Run as Tracker  # noqa: PLC0415 - imported only where it is installed

    run = Tracker(repo=str(folder / "aim"), system_tracking_interval=None)
    yield lambda: run.track({"loss": 0.5, "lr": 0.1, "trace_cov": 18.3, "grad_sq_norm": 0.7})
    run.close()


TRACKERS = {
    "W&B offline": ("wandb", wandb_offline),
    "TensorBoard": ("tensorboard", tensorboard),
    "Trackio": ("trackio", trackio),
    "MLflow": ("mlflow", mlflow),
    "Aim": ("aim", aim),
}


def in_turn(calls: dict[str, Call], num_calls: int) -> dict[str, "array[int]"]:
    """Nanoseconds of each call by name, the names in turn."""
    found = {name: array("q") for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            # the slow ones get fewer: a million of them would take an hour
            share = 1 if name.startswith("noisescale,") else 20
            found[name].extend(nanoseconds(call, num_calls // ROUNDS // share))
    return found


def figures_of(name: str, found: "array[int]", targets: dict[str, str]) -> list[Figure]:
    """Percentiles in microseconds."""
    return [
        Figure(f"{name}: {label} of {len(found)} calls", percentile(found, share) / 1e3, "µs", targets.get(label, ""))
        for label, share in SHARES.items()
    ]


@contextmanager
def busy_interpreter() -> Iterator[None]:
    """Another thread computes in Python all the time."""
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            sum(range(1000))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def slowdown(folder: Path, seconds: float) -> Figure:
    """Share of a training's time that ten logged steps a second take: the calls' own time, in a loop of 0.1 s steps."""
    spent = 0.0
    with noisescale(folder / "slowdown") as call:
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            begin = time.perf_counter()
            call()
            spent += time.perf_counter() - begin
            time.sleep(0.1)
    return Figure("share of the training's time at 10 steps a second", 100 * spent / seconds, "%", "below 0.5")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--folder", type=Path, default=None, help="on the disk to measure")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    num_calls = arguments.calls
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name, ExitStack() as stack:
        folder = Path(name)
        calls = {"noisescale, one step": stack.enter_context(noisescale(folder))}
        calls["noisescale with 150 layers"] = stack.enter_context(noisescale_with_layers(folder))
        for tracker, (module, opened) in TRACKERS.items():
            if IS_SMOKE or find_spec(module) is None:
                print(f"{tracker} is not installed: left out")
            else:
                calls[tracker] = stack.enter_context(opened(folder))
        found = in_turn(calls, num_calls)
        with busy_interpreter():
            busy = nanoseconds(calls["noisescale, one step"], num_calls // 20)
        figures = [slowdown(folder, size(20.0, 0.5))]
    targets = {"noisescale, one step": TARGETS, "noisescale with 150 layers": LAYERED_TARGETS}
    for name, times in found.items():
        figures += figures_of(name, times, targets.get(name, {}))
    figures += figures_of("noisescale, one step, beside a busy thread", busy, BUSY_TARGETS)
    write("hot_path", figures)


if __name__ == "__main__":
    main()
