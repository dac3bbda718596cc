"""What watching costs on the CPU, in whole steps: two copies of a model train in turn, one of them watched.

The watch stays on throughout, as in a training, and what its first steps pay apart is over when the blocks begin:
buffers, comparisons, the timing of a budget, and the looks at each of the first updates. Blocks go watched, unwatched,
unwatched, watched, so that a drifting machine favours neither, and halfway the copies change places; a ratio is the
geometric mean of the halves' medians over such rounds. Where every step is watched a third copy, which nobody watches,
trains beside them: its time over that of the unwatched one is what a difference of nothing looks like.
"""

import copy
import dataclasses
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.harness import percentile
from benchmarks.models import CausalTransformer, Transformer
from benchmarks.results_file import Figure, write
from benchmarks.smoke import IS_SMOKE
from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.run.run import Run
from noisescale.transport.wire import Record

MICRO_BATCHES = 8
BUDGET = 0.01

UNWATCHED_WARM_UP = 10
"""Steps of the copy that nobody watches, before the first block: it has no dense looks to get over."""

LONGEST_CYCLE = 500
"""Steps of a block of a budget; a longer cycle is not waited for, its single measured step would not show."""


class Discard:
    """Stands in for the outbox: what delivery costs is another benchmark's."""

    is_inherited = False

    def send(self, record: Record) -> None:
        """Forget the record."""

    def flush(self, timeout_seconds: float) -> bool:
        """Everything has arrived."""
        return True

    def close(self, timeout_seconds: float) -> None:
        """Deliver no record."""


@dataclass(frozen=True, slots=True)
class Job:
    """A model and one step's micro-batches.

    Attributes:
        name: As figures call it.
        model: Trained by plain SGD.
        inputs: One tensor a micro-batch.
        targets: One tensor a micro-batch.
        warm_up: Steps before the first block.
        steps: Of a block.
        rounds: Each of four blocks.
    """

    name: str
    model: nn.Module
    inputs: Sequence[Tensor]
    targets: Sequence[Tensor]
    warm_up: int
    steps: int
    rounds: int


def digits_job() -> Job:
    """The demo's MLP 64-64-10, 8 micro-batches of 32 images."""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    inputs, targets = torch.rand(256, 64), torch.randint(10, (256,))
    parts = inputs.chunk(MICRO_BATCHES), targets.chunk(MICRO_BATCHES)
    return Job("digits MLP", model, *parts, warm_up=200, steps=100, rounds=30)


def text_job(name: str, model: nn.Module, *, micro_batches: int, warm_up: int, steps: int, rounds: int) -> Job:
    """32 sequences of 64 characters a step."""
    inputs, targets = torch.randint(96, (32, 64)), torch.randint(96, (32, 64))
    parts = inputs.chunk(micro_batches), [part.flatten() for part in targets.chunk(micro_batches)]
    return Job(name, model, *parts, warm_up=warm_up, steps=steps, rounds=rounds)


class Loop:
    """The training loop of a job.

    Attributes:
        log_seconds: What each `log_gradients()` took.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.model = copy.deepcopy(job.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.log_seconds: list[float] = []

    @contextmanager
    def watched(self, **options: float) -> Iterator[Run]:
        """A run that watches the loop's model for so long, as the options of `Run.watch` say."""
        run = Run(Config(strict=True), RunDescription(), lambda run_id, describe: Discard())  # type: ignore[arg-type, return-value]
        run.watch(self.model, self.optimizer, **options)  # type: ignore[arg-type]
        yield run
        run.finish()

    def steps(self, number: int, run: Run | None = None) -> float:
        """Seconds of so many optimizer steps; the times of `log_gradients()` are kept."""
        start = time.perf_counter()
        for _ in range(number):
            self._step(run)
        return time.perf_counter() - start

    def _step(self, run: Run | None) -> None:
        total, num_parts = 0.0, len(self.job.inputs)
        for x, y in zip(self.job.inputs, self.job.targets, strict=True):
            loss = functional.cross_entropy(self.model(x), y) / num_parts
            loss.backward()
            total += loss.item()
        if run is not None:
            start = time.perf_counter()
            run.log_gradients(loss=total)
            self.log_seconds.append(time.perf_counter() - start)
        self.optimizer.step()
        self.optimizer.zero_grad()


@dataclass(frozen=True, slots=True)
class Found:
    """What a job's blocks took.

    Attributes:
        ratio: Watched ÷ unwatched, the median over rounds.
        control: A third copy ÷ unwatched, the same; not a number without one.
        unwatched: Seconds of an unwatched step, the median over blocks.
        every: k, of which each k-th step was measured.
        log_seconds: Of each `log_gradients()`, sorted.
    """

    ratio: float
    control: float
    unwatched: float
    every: int
    log_seconds: Sequence[float]


def watching(job: Job, control: Loop | None = None, /, **options: float) -> Found:
    """Watched and unwatched blocks in turn, then once more with the copies' places changed.

    Where a copy lies in memory is worth some per cent of a step of a millisecond: over both halves that favours none.

    Args:
        job: What is trained.
        control: A third copy, which trains beside them unwatched in both halves.
        options: As of `Run.watch`.
    """
    loops = Loop(job), Loop(job)
    first, second = (_half(job, *pair, control, **options) for pair in (loops, loops[::-1]))
    return Found(
        math.sqrt(first.ratio * second.ratio),
        math.sqrt(first.control * second.control),
        statistics.median([first.unwatched, second.unwatched]),
        max(first.every, second.every),
        sorted([*first.log_seconds, *second.log_seconds]),
    )


def _half(job: Job, loop: Loop, other: Loop, control: Loop | None, /, **options: float) -> Found:
    """One of the two copies is watched; with a budget a block holds whole cycles of measured steps."""
    with loop.watched(**options) as run:
        loop.steps(job.warm_up, run)
        unseen = [other] if control is None else [other, control]
        for one in unseen:
            one.steps(min(job.warm_up, UNWATCHED_WARM_UP))
        duty = run._main.watch.duty  # type: ignore[union-attr]
        while duty.is_timing:
            loop.steps(1, run)
        every = duty.every
        steps = every * math.ceil(job.steps / every) if every <= LONGEST_CYCLE else LONGEST_CYCLE
        loop.log_seconds.clear()
        ratios, controls, unwatched = [], [], []
        for _ in range(max(1, job.rounds // 2)):
            seconds = dict.fromkeys((loop, *unseen), 0.0)
            for one in (loop, *unseen, *reversed(unseen), loop):
                seconds[one] += one.steps(steps, run if one is loop else None)
            ratios.append(seconds[loop] / seconds[other])
            controls.append(math.nan if control is None else seconds[control] / seconds[other])
            unwatched.append(seconds[other] / (2 * steps))
    return Found(
        statistics.median(ratios),
        statistics.median(controls),
        statistics.median(unwatched),
        every,
        sorted(loop.log_seconds),
    )


def every_step(job: Job, target: str) -> list[Figure]:
    """What watching every step costs."""
    found = watching(job, Loop(job))
    micro = [1e6 * seconds for seconds in found.log_seconds]
    return [
        Figure(f"{job.name}: step unwatched, median", 1e6 * found.unwatched, "us"),
        Figure(f"{job.name}: step watched / unwatched", found.ratio, "ratio", target),
        Figure(f"{job.name}: step unwatched / unwatched, for comparison", found.control, "ratio"),
        Figure(f"{job.name}: log_gradients p50", percentile(micro, 0.5), "us"),
        Figure(f"{job.name}: log_gradients p99", percentile(micro, 0.99), "us"),
    ]


def every_tenth(job: Job) -> Figure:
    """What watching every 10th step costs."""
    ratio = watching(dataclasses.replace(job, steps=100), every=10).ratio
    return Figure(f"{job.name}: step watched / unwatched, every=10", ratio, "ratio", "<= 1.03")


def within(job: Job, target: str, what: str, **options: float) -> list[Figure]:
    """Whether a budget holds.

    Args:
        job: What is trained.
        target: Of the ratio.
        what: As the figure calls it.
        options: As of `Run.watch`.
    """
    found = watching(job, **options)
    return [
        Figure(f"{job.name}: step watched / unwatched, {what}", found.ratio, "ratio", target),
        Figure(f"{job.name}: every so many steps, {what}", found.every, "steps"),
    ]


def budget(job: Job) -> list[Figure]:
    """A budget that was asked for."""
    return within(job, "<= 1.015", f"overhead={BUDGET:g}", overhead=BUDGET)


def unasked(job: Job) -> list[Figure]:
    """One backward a step, whose examples' norms nobody has asked for: they have a budget of their own."""
    return within(job, "<= 1.05", "one backward a step")


def main() -> None:
    """Measure all jobs on one thread."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    digits = digits_job()
    if IS_SMOKE:
        digits = dataclasses.replace(digits, warm_up=5, steps=5, rounds=1)
        write("capture", [*every_step(digits, ""), *budget(digits)])
        return
    middle = text_job("0.8 M transformer", Transformer(128), micro_batches=8, warm_up=70, steps=4, rounds=12)
    large = text_job("10 M transformer", Transformer(448), micro_batches=8, warm_up=70, steps=2, rounds=8)
    alone = [
        text_job(name, CausalTransformer(width), micro_batches=1, warm_up=10, steps=10, rounds=12)
        for name, width in (("0.1 M transformer", 48), ("0.8 M transformer, causal", 128))
    ]
    measures: tuple[Callable[[], list[Figure]], ...] = (
        lambda: [*every_step(digits, "<= 1.25"), every_tenth(digits), *budget(digits)],
        lambda: [*every_step(middle, "<= 1.04"), *budget(middle)],
        # the timing of a budget takes as many steps as the dense looks do
        lambda: [*every_step(large, "<= 1.02"), *budget(dataclasses.replace(large, warm_up=6, rounds=4))],
        lambda: [figure for job in alone for figure in unasked(job)],
    )
    write("capture", [figure for measure in measures for figure in measure()])


if __name__ == "__main__":
    main()
