"""What looking at an optimizer's updates costs: whole steps of 10 M parameters with and without, by turns."""

import contextlib
import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.results_file import Figure, write
from benchmarks.smoke import IS_SMOKE, size
from benchmarks.step_overhead.modes import Mode
from benchmarks.step_overhead.small_gpt import FOR_CPU, Size
from benchmarks.step_overhead.training import Training
from noisescale.capture.path.count_sketch import CountSketch
from noisescale.capture.path.look_plan import GROWTH, LONGEST, LONGEST_OF_CHEAP_STEPS, SHARE, LookPlan
from noisescale.run.run import Run

MODEL = FOR_CPU if IS_SMOKE else Size(width=320, depth=8, heads=5, vocabulary=512, context=128)
TOKENS = size(128, 16)
"""Of a micro-batch, four of them a step: few for a model of this size, so that steps are cheap beside a look."""

ROUNDS = size(4, 1)
STEPS = size(LONGEST, 2)
"""Of one turn: one look of the steps that have them."""

FIRST = size(6, 2)
"""Steps before: Adam's promise begins with the sixth."""

SETTLED = GROWTH * LONGEST
"""Updates after which looks are one in sixteen."""

WITHOUT = Mode("without", {"every": 1_000_000, "judge_rate": False})
WITH = Mode("with", {"every": 1_000_000})
"""Only the first step is measured, so that the path is all there is."""

MEASURED_WITHOUT = Mode("measured, without", {"judge_rate": False})
MEASURED_WITH = Mode("measured, with", {})
"""Each step is measured, so that what AdamW's updates promise is measured at each look."""


def settle(run: Run) -> None:
    """Go on as after the first steps, in which looks are more frequent."""
    watch = run._main.watch
    assert watch is not None
    assert watch.path is not None
    plan = LookPlan()
    plan._end = SETTLED
    plan.advance()
    watch.path._plan, watch.path.num_updates = plan, SETTLED


def shares(pair: tuple[Mode, Mode], what: str) -> list[Figure]:
    """Extra time of a step, in A-B-B-A, by the wall clock and by the processor's time of this process.

    Args:
        pair: Without and with.
        what: Is measured, as the figures' names say it.
    """
    torch.manual_seed(0)
    wall: list[float] = []
    processor: list[float] = []
    with contextlib.ExitStack() as stack:
        trainings = [Training(MODEL, TOKENS, torch.device("cpu")) for _ in range(2)]
        runs = [stack.enter_context(training.watched(mode))[0] for training, mode in zip(trainings, pair, strict=True)]
        for training, run in zip(trainings, runs, strict=True):
            training.seconds(run, FIRST)
        settle(runs[1])
        step_seconds = []
        for _ in range(ROUNDS):
            spent = {0: [0.0, 0.0], 1: [0.0, 0.0]}
            for which in (0, 1, 1, 0):
                start = time.process_time()
                seconds = trainings[which].seconds(runs[which], STEPS)
                spent[which][0] += seconds
                spent[which][1] += time.process_time() - start
            wall.append(spent[1][0] / spent[0][0] - 1)
            processor.append(spent[1][1] / spent[0][1] - 1)
            step_seconds.append(spent[0][0] / (2 * STEPS))
    return [
        Figure(f"{what}: a step without, median", 1e3 * statistics.median(step_seconds), "ms"),
        Figure(f"{what}: extra time of a step, median", 100 * statistics.median(wall), "%", "at most 1 %"),
        Figure(f"{what}: extra time of a step, least", 100 * min(wall), "%"),
        Figure(f"{what}: extra time of a step, most", 100 * max(wall), "%"),
        Figure(
            f"{what}: extra processor time of a step, median", 100 * statistics.median(processor), "%", "at most 1 %"
        ),
    ]


def share_of(num_steps: int, mode: Mode, *, is_settled: bool) -> float:
    """Time of the looks over that of the steps that hold them: both are slower where the machine has more to do."""
    torch.manual_seed(0)
    training, spent = Training(MODEL, TOKENS, torch.device("cpu")), 0.0
    with training.watched(mode) as (run, _):
        if is_settled:
            training.seconds(run, FIRST)
            settle(run)
        watch = run._main.watch
        assert watch is not None
        assert watch.path is not None
        now = watch.path._sketch.now

        def timed() -> torch.Tensor:
            nonlocal spent
            start = time.perf_counter()
            sketch = now()
            spent += time.perf_counter() - start
            return sketch

        count = watch.path.add_look_seconds

        def counted(seconds: float) -> None:
            nonlocal spent
            spent += seconds
            count(seconds)

        watch.path._sketch.now = timed  # type: ignore[method-assign]
        watch.path.add_look_seconds = counted  # type: ignore[method-assign]
        total = training.seconds(run, num_steps)
    return spent / (total - spent)


def looks() -> list[Figure]:
    """What one sketch takes, and how many looks the first steps have."""
    torch.manual_seed(0)
    parameters = [torch.randn(size(1000, 100), 1000) for _ in range(10)]
    sketch = CountSketch([parameters])
    times = []
    for _ in range(size(15, 2)):
        start = time.perf_counter()
        sketch.now()
        times.append(time.perf_counter() - start)
    plan, first = LookPlan(), 0
    while plan.next < SETTLED:
        first += 1
        plan.advance()
    return [
        Figure("a sketch of 10 M parameters, median; a look has two", 1e3 * statistics.median(times), "ms"),
        Figure(f"looks of the first {SETTLED} steps", first, ""),
        *times_of_looks(WITH, "the path"),
        *times_of_looks(MEASURED_WITH, "the path and the promise"),
    ]


def times_of_looks(mode: Mode, what: str) -> list[Figure]:
    """Time of looks over that of steps: at first, where there is one in sixteen, and where the clock leaves them.

    Args:
        mode: What is measured.
        what: The same, as the figures' names say it.
    """
    share = share_of(size(2 * LONGEST, 4), mode, is_settled=True)
    longest = LONGEST
    while share * LONGEST / longest > SHARE and longest < LONGEST_OF_CHEAP_STEPS:
        longest *= 2
    first = share_of(size(SETTLED, 4), mode, is_settled=False)
    return [
        Figure(f"{what}: time of looks over that of steps, one in {LONGEST}", 100 * share, "%"),
        Figure(f"{what}: updates to a look after the clock's doublings", longest, ""),
        Figure(f"{what}: time of looks over that of steps then", 100 * share * LONGEST / longest, "%", "at most 1 %"),
        Figure(f"{what}: time of looks over that of steps, the first {SETTLED}", 100 * first, "%"),
    ]


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:] == ["looks"]:  # without whole steps by turns, which take most of the time
        write("path_looks", looks(), command="python benchmarks/benchmark_path.py looks")
    else:
        by_turns = shares((WITHOUT, WITH), "the path")
        by_turns += shares((MEASURED_WITHOUT, MEASURED_WITH), "the path and the promise")
        write("path", [*by_turns, *looks()])
