"""What a call costs the training thread with its record on disk, beside a plain append to a file on the same disk.

The runs are offline: the uploader would share the interpreter and is another benchmark's.
"""

import argparse
import logging
import os
import tempfile
import time
from array import array
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from harness import percentile
from results_file import Figure, write
from smoke import size

from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.run.run import Run
from noisescale.transport.wire import Measurement

CALLS = size(1_000_000, 2_000)
TARGET = {"p50": "at most 10 µs", "p99": "at most 100 µs"}
LAYERED_TARGET = {"p50": "at most 30 µs beyond the norms"}
FRAME_BYTES = 152
LAYERS = {f"blocks.{number}": (3.0, 1.0) for number in range(150)}


def nanoseconds(call: Callable[[], object], calls: int) -> "array[int]":
    """Of each of so many calls."""
    found = array("q", bytes(8 * calls))
    clock = time.perf_counter_ns
    for index in range(calls):
        start = clock()
        call()
        found[index] = clock() - start
    return found


def figures(name: str, found: "array[int]", target: Mapping[str, str] = {}) -> list[Figure]:
    """Percentiles in microseconds."""
    shares = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
    return [
        Figure(f"{name}, {label}", percentile(found, share) / 1e3, "µs", target.get(label, ""))
        for label, share in shares.items()
    ]


def plain_append(folder: Path, calls: int) -> "array[int]":
    """`os.write` of as many bytes as a measurement has, to a file on the same disk."""
    descriptor = os.open(folder / "plain", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    frame = bytes(FRAME_BYTES)
    try:
        return nanoseconds(lambda: os.write(descriptor, frame), calls)
    finally:
        os.close(descriptor)


def a_run(folder: Path | None, **settings: object) -> Run:
    """A run whose records stay on disk, or that is disabled."""
    mode = "disabled" if folder is None else "offline"
    config = Config(mode=mode, folders=() if folder is None else (folder,), **settings)  # type: ignore[arg-type]
    return Run(config, RunDescription())


def log_norms(folder: Path, calls: int, *, is_layered: bool) -> "array[int]":
    """Whole calls; a record of layers with each where there are any."""
    run = a_run(folder, group_seconds=0.0 if is_layered else 10.0)
    layers = LAYERS if is_layered else None

    def call() -> None:
        run.log_norms(
            small_batch_size=8, big_batch_size=64, small_sq_norm=3.0, big_sq_norm=1.0, loss=0.5, lr=0.1, layers=layers
        )

    found = nanoseconds(call, calls)
    run.finish()
    return found


def appending(folder: Path, calls: int) -> "array[int]":
    """The transport alone: what `log_norms` and `log_gradients` hand a finished record to."""
    run = a_run(folder)
    run.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=3.0, big_sq_norm=1.0)
    outbox = run._main._outbox
    assert outbox is not None
    record = _measurement()
    found = nanoseconds(lambda: outbox.send(record), calls)
    run.finish()
    return found


def _measurement() -> Measurement:
    return Measurement(7, 1, 1.79e9, 12_800, 32.0, 8, 256.0, 1.5, -0.25, 2.5, 0.5, -0.125, 3.5, 1, 0.1, 0)


def log_gradients(folder: Path, calls: int) -> "array[int]":
    """Whole calls on the CPU, between two optimizer steps of a tiny model; the norms are computed in it."""
    torch.set_num_threads(1)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = a_run(folder)
    run.watch(model, optimizer)
    batch = torch.ones(4, 4)
    found = array("q", bytes(8 * calls))
    for index in range(calls):
        for _ in range(2):
            (model(batch).square().mean() / 2).backward()
        start = time.perf_counter_ns()
        run.log_gradients(loss=0.5, batch_size=8)
        found[index] = time.perf_counter_ns() - start
        optimizer.step()
        optimizer.zero_grad()
    run.finish()
    return found


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--folder", type=Path, default=None, help="on the disk to measure")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    calls = arguments.calls
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        found = [
            *figures(f"os.write of {FRAME_BYTES} bytes, {calls} calls", plain_append(folder, calls)),
            *figures(f"record to disk, {calls} calls", appending(folder / "a", calls), TARGET),
            *figures(f"log_norms, {calls} calls", log_norms(folder / "b", calls, is_layered=False), TARGET),
            *figures(
                f"log_norms with 150 layers, {calls // 20} calls",
                log_norms(folder / "c", calls // 20, is_layered=True),
                LAYERED_TARGET,
            ),
            *figures(f"log_gradients of a tiny model, {calls // 20} calls", log_gradients(folder / "d", calls // 20)),
        ]
    write("spool", found)


if __name__ == "__main__":
    main()
