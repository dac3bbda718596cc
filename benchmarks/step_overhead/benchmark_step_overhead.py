"""Whole training steps, watched and unwatched in turn (A-B-B-A); results/step_overhead-<device>.csv.

A model of two narrow blocks on a CPU; `benchmarks/gpu/steps.py` measures real ones on a GPU. `--modes` measures those
whose name holds this, and writes nothing.
"""

import argparse
import gc
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.kernels.intervals import ratio_interval
from benchmarks.kernels.results_table import MEASURED, Row, not_measured, results_name, versions
from benchmarks.results_file import write_rows
from benchmarks.smoke import size
from benchmarks.step_overhead.modes import MODES, Mode, why_not
from benchmarks.step_overhead.small_gpt import FOR_CPU, Size
from benchmarks.step_overhead.training import MICRO_BATCHES, Training
from noisescale.run.run import Run

COMMAND = "python benchmarks/step_overhead/benchmark_step_overhead.py"

WARM_UP_STEPS = 5

LONGEST_CYCLE = 40
"""Steps of a block at most; of a longer cycle a block holds one measured step or none."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured where.

    Attributes:
        size: Of the model.
        tokens: A micro-batch, each a column of results.
        rounds: Of A-B-B-A for each of two pairs of models.
        steps: A block; 4 · rounds · steps are watched.
    """

    size: Size
    tokens: Sequence[int]
    rounds: int
    steps: int


ON_CPU = Plan(FOR_CPU, size((32, 256), (32,)), rounds=size(5, 1), steps=size(3, 1))


@dataclass(frozen=True, slots=True)
class Rounds:
    """Seconds a step, one entry for each round of A-B-B-A.

    Attributes:
        unwatched: Mean of both blocks.
        watched: Mean of both blocks.
        steps: Watched and timed altogether.
        every: Every how many steps are measured.
        num_measurements: That the run recorded: a mode that measures nothing costs nothing.
        holds_cycles: Whether blocks are whole cycles of measured and unmeasured steps.
    """

    unwatched: list[float]
    watched: list[float]
    steps: int
    every: int
    num_measurements: int
    holds_cycles: bool


def measure(
    mode: Mode,
    size: Size,
    tokens: int,
    rounds: int,
    steps: int,
    device: torch.device,
    *,
    warm_up: int = WARM_UP_STEPS,
    **how: Any,
) -> Rounds:
    """Two trainings of the same model, one of them watched throughout; then they change places.

    Where a model lies in memory is worth some per cent, too: over both halves that favours nobody.

    Args:
        mode: How one is watched.
        size: Of the model.
        tokens: Of a micro-batch.
        rounds: Of A-B-B-A in each half.
        steps: A block.
        device: On which both are trained.
        warm_up: Steps of each before it is timed.
        how: Further arguments of `Training`.
    """
    trainings = Training(size, tokens, device, **how), Training(size, tokens, device, **how)
    halves = [_half(mode, *pair, rounds, steps, warm_up) for pair in (trainings, trainings[::-1])]
    return Rounds(
        [seconds for half in halves for seconds in half.unwatched],
        [seconds for half in halves for seconds in half.watched],
        sum(half.steps for half in halves),
        max(half.every for half in halves),
        min(half.num_measurements for half in halves),
        all(half.holds_cycles for half in halves),
    )


def _half(mode: Mode, plain: Training, watched: Training, rounds: int, steps: int, warm_up: int) -> Rounds:
    unwatched_seconds, watched_seconds = [], []
    with watched.watched(mode) as (run, outbox):
        plain.seconds(None, WARM_UP_STEPS)
        watched.seconds(run, warm_up)
        every = _every(run, watched)
        block = min(every * math.ceil(steps / every), max(LONGEST_CYCLE, steps))
        for _ in range(rounds):
            a, b, c, d = [
                training.seconds(run if training is watched else None, block) / block
                for training in (plain, watched, watched, plain)
            ]
            unwatched_seconds.append((a + d) / 2)
            watched_seconds.append((b + c) / 2)
    holds = block % every == 0
    return Rounds(unwatched_seconds, watched_seconds, 2 * rounds * block, every, outbox.num_measurements, holds)


def _every(run: Run, training: Training) -> int:
    """Every how many steps are measured, once a budget has chosen."""
    watch = run._main.watch
    assert watch is not None
    while watch.duty.is_timing:
        training.seconds(run, 1)
    return watch.duty.every


def rows(plan: Plan, modes: Sequence[Mode], device: torch.device) -> Iterator[Row]:
    """One row for each number of tokens and mode, the unwatched step first."""
    for tokens in plan.tokens:
        about: Row = {
            "model": f"GPT {plan.size.depth} x {plan.size.width}",
            "tokens": tokens,
            "micro_batches": MICRO_BATCHES,
        }
        for mode in modes:
            yield about | {"mode": mode.name} | _row(mode, plan, tokens, device)
            gc.collect()


def _row(mode: Mode, plan: Plan, tokens: int, device: torch.device) -> Row:
    return row_of(mode, lambda: measure(mode, plan.size, tokens, plan.rounds, plan.steps, device))


def row_of(mode: Mode, measured: Callable[[], Rounds], bound: float = math.inf) -> Row:
    """What was measured, or why it was not.

    Args:
        mode: How one of two trainings is watched.
        measured: Measures.
        bound: What the ratio is to stay below.
    """
    reason = why_not(mode)
    if reason:
        return {"status": not_measured(reason)}
    try:
        found = measured()
    except torch.cuda.OutOfMemoryError:
        return {"status": not_measured("out of the device's memory")}
    except Exception as fault:
        return {"status": not_measured(f"{type(fault).__name__}: {str(fault)[:120]}")}
    if not found.num_measurements:
        return {"status": not_measured("the run recorded no measurement"), "every": found.every}
    ratio = ratio_interval([b / a for a, b in zip(found.unwatched, found.watched, strict=True)])
    return {
        "ratio": ratio.value,
        "ratio_low": ratio.low,
        "ratio_high": ratio.high,
        "unwatched_ms": 1e3 * statistics.median(found.unwatched),
        "watched_ms": 1e3 * statistics.median(found.watched),
        "watched_steps": found.steps,
        "rounds": len(found.watched),
        "every": found.every,
        "holds_cycles": int(found.holds_cycles),
        "status": MEASURED,
        "misses": f"{ratio.value:.4f} > {bound}" if ratio.value > bound else "",
    }


def show(row: Row) -> None:
    """Print a row."""
    line = f"{row['model']} {row['tokens']:>6} tokens  {row['mode']:<14}"
    if "ratio" in row:
        line += f" watched / unwatched {row['ratio']:.4f} [{row['ratio_low']:.4f}, {row['ratio_high']:.4f}]"
        line += f"  step {row['unwatched_ms']:.2f} ms, {row['watched_steps']} steps, every {row['every']}"
    print(f"{line}  {row['status']}  {row.get('misses', '')}".rstrip(), flush=True)


def main() -> None:
    """Measure all modes, print, and write the results unless only some were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modes", default="", help="modes whose name holds this; writes nothing")
    arguments = parser.parse_args()
    device = torch.device("cpu")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    what, command = results_name("step_overhead", device), " ".join([COMMAND, *sys.argv[1:]])
    found: list[Row] = []
    for row in rows(ON_CPU, [m for m in MODES if arguments.modes in m.name], device):
        show(row)
        found.append(row)
        if not arguments.modes:  # after each row: what a machine that goes away has measured stays
            write_rows(what, found, command=command, about=versions(device))


if __name__ == "__main__":
    main()
