"""What watching costs on the CPU: the call, the hooks, and whole steps watched and unwatched in turn (A-B-B-A)."""

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
from benchmarks.results_file import Figure, write
from benchmarks.smoke import IS_SMOKE, size
from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.run.run import Run
from noisescale.transport.wire import Record

MICRO_BATCHES = 8
PAIRED_BACKWARDS = size(20, 1)
WARM_UP_STEPS = 5

LONGEST_BLOCK = size(500, 5)
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
        steps_a_round: Steps timed together.
        rounds: Rounds of A-B-B-A.
    """

    name: str
    model: nn.Module
    inputs: Sequence[Tensor]
    targets: Sequence[Tensor]
    steps_a_round: int
    rounds: int


def digits_job() -> Job:
    """The demo's MLP 64-64-10, 8 micro-batches of 32 images."""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    inputs, targets = torch.rand(256, 64), torch.randint(10, (256,))
    return Job(
        "digits MLP", model, inputs.chunk(MICRO_BATCHES), targets.chunk(MICRO_BATCHES), steps_a_round=25, rounds=40
    )


class Transformer(nn.Module):
    """A character transformer of four blocks."""

    def __init__(self, width: int, vocabulary: int = 96) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True) for _ in range(4)
        )
        self.head = nn.Linear(width, vocabulary)

    def forward(self, characters: Tensor) -> Tensor:
        """Character codes [B, T] → logits [B * T, vocabulary]."""
        x = self.embedding(characters)
        for block in self.blocks:
            x = block(x)
        return self.head(x).flatten(0, 1)


def transformer_job(name: str, width: int, rounds: int) -> Job:
    """8 micro-batches of 4 sequences of 64 characters: 256 tokens each."""
    inputs, targets = torch.randint(96, (32, 64)), torch.randint(96, (32, 64))
    return Job(
        name,
        Transformer(width),
        inputs.chunk(MICRO_BATCHES),
        [part.flatten() for part in targets.chunk(MICRO_BATCHES)],
        steps_a_round=1,
        rounds=rounds,
    )


class Loop:
    """The training loop of a job, with or without a watched run."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.optimizer = torch.optim.SGD(job.model.parameters(), lr=0.01)
        self.log_seconds: list[float] = []

    @contextmanager
    def watched(self, **options: float) -> Iterator[Run]:
        """A run that watches the loop's model for so long, as the options of `Run.watch` say."""
        run = Run(Config(strict=True), RunDescription(), lambda run_id, describe: Discard())  # type: ignore[arg-type, return-value]
        run.watch(self.job.model, self.optimizer, **options)  # type: ignore[arg-type]
        yield run
        run.finish()

    def step(self, run: Run | None) -> None:
        """One optimizer step; the time of `log_gradients()` is kept."""
        total = 0.0
        for x, y in zip(self.job.inputs, self.job.targets, strict=True):
            loss = functional.cross_entropy(self.job.model(x), y) / MICRO_BATCHES
            loss.backward()
            total += loss.item()
        if run is not None:
            start = time.perf_counter()
            run.log_gradients(loss=total, batch_size=256)
            self.log_seconds.append(time.perf_counter() - start)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def round(self, run: Run | None) -> float:
        """Seconds of one step, averaged over a round."""
        start = time.perf_counter()
        for _ in range(self.job.steps_a_round):
            self.step(run)
        return (time.perf_counter() - start) / self.job.steps_a_round


def step_seconds(loop: Loop, **options: float) -> tuple[list[float], list[float]]:
    """Seconds of a step, unwatched and watched, in rounds of A-B-B-A, so that a drifting machine favours neither."""
    unwatched: list[float] = []
    watched: list[float] = []

    def plain() -> None:
        unwatched.append(loop.round(None))

    def measured() -> None:
        with loop.watched(**options) as run:
            for _ in range(WARM_UP_STEPS):  # the first steps make buffers and compare more
                loop.step(run)
            watched.append(loop.round(run))

    order: tuple[Callable[[], None], ...] = (plain, measured, measured, plain)
    plain()
    measured()
    unwatched.clear()
    watched.clear()
    loop.log_seconds.clear()
    for index in range(loop.job.rounds * len(order)):
        order[index % len(order)]()
    return unwatched, watched


def paired_ratio(unwatched: Sequence[float], watched: Sequence[float]) -> float:
    """Watched ÷ unwatched, the median over rounds of A-B-B-A."""
    pairs = zip(batched(unwatched), batched(watched), strict=True)
    return statistics.median(sum(with_us) / sum(without) for without, with_us in pairs)


def batched(values: Sequence[float]) -> list[tuple[float, float]]:
    """Two and two: the As and the Bs of a round."""
    return list(zip(values[::2], values[1::2], strict=True))


def budget_ratio(loop: Loop, overhead: float, blocks: int) -> tuple[float, int]:
    """Watched ÷ unwatched once a budget has chosen every how many steps are measured, and that number.

    Blocks hold whole cycles; the watch stays on through all of them, and unwatched blocks run with its hooks off the
    model, as between measured steps, so the difference is the whole cost. Therefore a second model, never watched,
    makes the unwatched steps.
    """
    other = Loop(dataclasses.replace(loop.job, model=copy.deepcopy(loop.job.model)))
    with loop.watched(overhead=overhead) as run:
        while run._main.watch.duty.is_timing:  # type: ignore[union-attr]
            loop.step(run)
        every = run._main.watch.duty.every  # type: ignore[union-attr]
        steps = every * math.ceil(loop.job.steps_a_round / every) if every <= LONGEST_BLOCK else LONGEST_BLOCK
        ratios = []
        for _ in range(blocks):
            seconds = [
                timed(one, watching, steps)
                for one, watching in ((other, None), (loop, run), (loop, run), (other, None))
            ]
            ratios.append((seconds[1] + seconds[2]) / (seconds[0] + seconds[3]))
    return statistics.median(ratios), every


def timed(loop: Loop, run: Run | None, steps: int) -> float:
    """Seconds of so many steps."""
    start = time.perf_counter()
    for _ in range(steps):
        loop.step(run)
    return time.perf_counter() - start


def hook_microseconds(job: Job) -> float:
    """What one backward spends in our hooks: the median difference of a watched and an unwatched one, in turn."""
    loop = Loop(job)
    differences = []
    for _ in range(PAIRED_BACKWARDS):
        with loop.watched():
            watched = backward_seconds(loop)
        differences.append(watched - backward_seconds(loop))
    return statistics.median(differences) * 1e6


def backward_seconds(loop: Loop) -> float:
    """Seconds of the second backward of a step: the first one also touches memory for the gradients."""
    for _ in range(2):
        loss = functional.cross_entropy(loop.job.model(loop.job.inputs[0]), loop.job.targets[0])
        start = time.perf_counter()
        loss.backward()
        seconds = time.perf_counter() - start
    loop.optimizer.zero_grad()
    return seconds


def figures_of(job: Job, target: str) -> list[Figure]:
    """What watching every step costs a job."""
    loop = Loop(job)
    unwatched, watched = step_seconds(loop)
    micro = [1e6 * seconds for seconds in loop.log_seconds]
    return [
        Figure(f"{job.name}: step unwatched, median", 1e6 * statistics.median(unwatched), "us"),
        Figure(f"{job.name}: step watched, median", 1e6 * statistics.median(watched), "us"),
        Figure(f"{job.name}: step watched / unwatched", paired_ratio(unwatched, watched), "ratio", target),
        Figure(f"{job.name}: log_gradients p50", percentile(micro, 0.5), "us"),
        Figure(f"{job.name}: log_gradients p99", percentile(micro, 0.99), "us"),
        Figure(f"{job.name}: hooks a backward", hook_microseconds(job), "us"),
    ]


def every_tenth(job: Job) -> Figure:
    """What watching every 10th step costs a job."""
    loop = Loop(job)
    ratio = paired_ratio(*step_seconds(loop, every=10))
    return Figure(f"{job.name}: step watched / unwatched, every=10", ratio, "ratio", "<= 1.03")


def budget(job: Job, blocks: int) -> list[Figure]:
    """Whether a budget of 1 % holds."""
    ratio, every = budget_ratio(Loop(job), 0.01, blocks)
    return [
        Figure(f"{job.name}: overhead with overhead=0.01", 100 * (ratio - 1), "%", "<= 1.5"),
        Figure(f"{job.name}: every so many steps with overhead=0.01", every, "steps"),
    ]


def main() -> None:
    """Measure all jobs on one thread."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    digits = digits_job()
    if IS_SMOKE:
        digits = dataclasses.replace(digits, steps_a_round=5, rounds=1)
        write("capture", [*figures_of(digits, ""), every_tenth(digits), *budget(digits, blocks=1)])
        return
    large = transformer_job("10 M transformer", 448, rounds=6)
    figures = [
        *figures_of(digits, "<= 1.25"),
        every_tenth(dataclasses.replace(digits, steps_a_round=100)),
        *budget(dataclasses.replace(digits, steps_a_round=200), blocks=20),
        *figures_of(transformer_job("3.2 M transformer", 256, rounds=6), ""),
        *figures_of(large, "<= 1.02"),
        *budget(large, blocks=3),
    ]
    write("capture", figures)


if __name__ == "__main__":
    main()
