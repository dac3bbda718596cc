"""A run under a policy: its settings, what it has spent and seen, and what the policy is shown of it."""

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import torch

from noisescale_core.estimators.looks import Looks
from noisescale_core.estimators.noise_scale import Terms
from noisescale_core.estimators.path import Path
from noisescale_core.estimators.uncertainty import estimate
from noisescale_core.estimators.windows import WindowSums
from noisescale_lab.follow.actions import Action, Branch, RunState
from noisescale_lab.follow.look import AFTER_WARM_UP
from noisescale_lab.follow.walk import Span, Stretch, kept_promise, path_at
from noisescale_lab.reproduce.advice.sweep import PLAN, Reference, decayed
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.trainer import Record, Replicas

LOOK_RATIO = 0.12
FIRST_LOOKS = 0.02
BLOCKS_PER_LOOK = 4
BLOCKS_OF_WINDOW = 16
LARGEST_BATCH = 1 << 14


class Policy(Protocol):
    """Decides for one run; has a memory of its own."""

    def decide(self, view: RunState) -> Action:
        """What to do next."""
        ...


@dataclass(frozen=True, slots=True)
class Start:
    """Where a run starts.

    Attributes:
        batch_factor: Start batch over the best one.
        rate_factor: Learning rate over the best one at that batch.
        seed: Of weights and examples.
        decays: Whether the learning rate decays over the plan.
    """

    batch_factor: float
    rate_factor: float
    seed: int
    decays: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        start: Where it began.
        policy: Name of the policy.
        cost: Spent until the target over the cost of the best constant run; CAP if missed.
        reached: Whether the target was met.
        batch: Last batch size.
        learning_rate: Last base learning rate.
    """

    start: Start
    policy: str
    cost: float
    reached: bool
    batch: int
    learning_rate: float


@dataclass(slots=True)
class Job:
    """Some steps of one trajectory at fixed settings."""

    replicas: Replicas
    batch: int
    learning_rate: float
    steps: int
    record: Record | None = None
    row: int = 0

    @property
    def average(self) -> torch.Tensor:
        """Weights averaged over its last half, [1, P]."""
        assert self.record is not None
        assert self.record.average is not None
        return self.record.average[self.row : self.row + 1]


@dataclass(frozen=True, slots=True)
class Kept:
    """What may be put back."""

    replicas: Replicas
    stretches: list[Stretch]


@dataclass(slots=True)
class Run:
    """One run under one policy."""

    task: Task
    reference: Reference
    start: Start
    name: str
    policy: Policy
    batch: int
    learning_rate: float
    planned: float
    replicas: Replicas
    spent: float = 0.0
    steps: int = 0
    blocks: list[tuple[float, float, float]] = field(default_factory=list)
    looks: Looks = field(default_factory=Looks)
    origin: torch.Tensor | None = None
    stretches: list[Stretch] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    kept: "Kept | None" = None
    look_after: int | None = None
    average: torch.Tensor | None = None
    first_loss: float = math.nan
    first_loss_error: float = math.inf
    loss: float = math.nan
    loss_error: float = math.inf
    branch: Branch | None = None
    jobs: list[Job] = field(default_factory=list)
    before: tuple[float, float] = (0.0, math.inf)
    outcome: Outcome | None = None

    @property
    def price(self) -> float:
        """r, examples per step."""
        return self.reference.price

    @property
    def decay(self) -> float:
        """Share of the base learning rate that the schedule leaves now, a warm-up apart, which is the trainer's."""
        return decayed(self.spent / self.planned) if self.start.decays else 1.0

    @property
    def is_warming_up(self) -> bool:
        """Whether the schedule still raises the rate: a follower leaves it alone then, and so does every policy.

        A follower sees the end of a warm-up at its looks only, so a job begins some steps later than the replay.
        Controls that need nothing of the run wait, too.
        """
        return self.steps < self.task.warm_up

    def step_cost(self, batch: int) -> float:
        """Of one step, in examples."""
        return self.price + batch

    def view(self) -> RunState:
        """What the policy sees."""
        return RunState(
            steps=self.steps,
            progress=self.spent / self.planned,
            planned_steps=self.planned / self.step_cost(self.batch),
            exchange_rate=self.price,
            optimizer=self.task.optimizer.class_name,
            momentum=self.task.optimizer.momentum,
            batch=self.batch,
            learning_rate=self.learning_rate,
            decay=self.decay,
            first_loss=self.first_loss,
            first_loss_error=self.first_loss_error,
            loss=self.loss,
            loss_error=self.loss_error,
            noise_scale=estimate(WindowSums.from_blocks(self.blocks[-BLOCKS_OF_WINDOW:])),
            looks=self.looks.so_far(),
            path=self.path(),
            promise=kept_promise(self.spans),
            schedule="unknown" if self.start.decays else "constant",
        )

    def path(self) -> Path | None:
        """Of the steps since the start, as if all had been made with the settings of now; None near a warm-up."""
        if self.steps < AFTER_WARM_UP * self.task.warm_up:
            return None
        assert self.origin is not None
        return path_at(
            self.stretches,
            sq_distance=float((self.replicas.parameters - self.origin).double().square().sum()),
            momentum=self.task.optimizer.momentum,
            optimizer=self.task.optimizer.class_name,
            batch=self.batch,
            rate_factor=self.learning_rate,
        )

    def phase(self) -> Job:
        """The steps until the next look."""
        least = FIRST_LOOKS * self.planned / self.step_cost(self.batch)
        steps = rounded(max(1.0, least, LOOK_RATIO * self.steps))
        if self.look_after is not None:
            steps, self.look_after = min(steps, self.look_after), None
        return Job(self.replicas, self.batch, self.learning_rate * self.decay, steps)

    def absorb(self, job: Job) -> None:
        """Make a job's end the run's present, and pay for it."""
        self.replicas = job.replicas
        self.spent += job.steps * self.step_cost(job.batch)
        self.remember(job)

    def remember(self, job: Job) -> None:
        """Losses and noise of a job become the run's history."""
        assert job.record is not None
        self._remember_noise(job)
        self.steps += job.steps
        self.average = job.average
        loss = job.record.loss[:, job.row]
        mean = float(loss.mean())
        is_known = len(loss) > 1 and mean < math.inf
        self.loss = mean if math.isfinite(mean) else math.inf
        self.loss_error = float(loss.std(ddof=1)) / math.sqrt(len(loss)) if is_known else math.inf
        if math.isnan(self.first_loss):
            self.first_loss, self.first_loss_error = self.loss, self.loss_error
        promised = float(job.record.promised[:, job.row].sum())
        self.spans.append(Span(job.steps, mean, self.loss_error, None if math.isnan(promised) else promised))
        count = min(BLOCKS_PER_LOOK, job.steps)
        edges = [round(part * job.steps / count) for part in range(count + 1)]
        trace, square = job.record.trace_cov[:, job.row], job.record.grad_sq_norm[:, job.row]
        for low, high in pairwise(edges):
            self.blocks.append((high - low, float(trace[low:high].sum()), float(square[low:high].sum())))

    def _remember_noise(self, job: Job) -> None:
        """Its looks and the lengths of its updates."""
        assert job.record is not None
        record, row = job.record, job.row
        numbers = torch.arange(self.steps, self.steps + job.steps)
        rates = (job.learning_rate * self.task.warmed_up(numbers.double())).tolist()
        terms = zip(record.trace_cov[:, row], record.grad_sq_norm[:, row], strict=True)
        kept = []
        for step, rate, (trace, square) in zip(numbers.tolist(), rates, terms, strict=True):
            if math.isfinite(trace) and math.isfinite(square):
                self.looks.add(step, Terms(float(trace), float(square)), job.batch, rate)
                kept.append((float(trace), float(square)))
        means = [sum(values) / len(kept) for values in zip(*kept, strict=True)] if kept else (None, None)
        moved = float(record.update_sq_norm[:, row].sum())
        self.stretches.append(Stretch(job.steps, job.batch, self.learning_rate, moved, *means))

    def keep(self) -> None:
        """Keep what may be put back."""
        self.kept = Kept(self.replicas.take(0), list(self.stretches))

    def undo(self) -> None:
        """Weights and optimizer states as they were kept; examples go on, and nothing is refunded."""
        assert self.kept is not None
        seen = self.replicas.num_examples.clone()
        self.replicas, self.stretches = self.kept.replicas.take(0), list(self.kept.stretches)
        self.replicas.num_examples = seen

    def restart(self) -> None:
        """Fresh weights, fresh examples; nothing is refunded."""
        seen = self.replicas.num_examples.clone()
        self.replicas = Replicas.new(self.task, [self.start.seed])
        self.replicas.num_examples = seen
        self.steps, self.blocks = 0, []
        self.looks, self.stretches, self.spans = Looks(), [], []
        self.first_loss = math.nan


def rounded(value: float) -> int:
    """The nearest of 1, 2, 3, 4, 6, 8, 12, … on the log scale, so that runs can share a stack."""
    exponent = math.floor(math.log2(max(value, 1)))
    candidates = [2**exponent, 3 * 2 ** (exponent - 1), 2 ** (exponent + 1)]
    return min((int(c) for c in candidates if c == int(c)), key=lambda c: abs(math.log(c / max(value, 1))))


def feasible(batch: float) -> int:
    """A batch size that the replay offers."""
    return min(LARGEST_BATCH, max(2, rounded(batch)))


def new_run(task: Task, reference: Reference, start: Start, name: str, policy: Policy) -> Run:
    """A run before its first step."""
    tuned = reference.nearest(reference.best.batch * start.batch_factor)
    replicas = Replicas.new(task, [start.seed])
    return Run(
        task=task,
        reference=reference,
        start=start,
        name=name,
        policy=policy,
        batch=tuned.batch,
        learning_rate=tuned.learning_rate * start.rate_factor,
        planned=PLAN * reference.cost(tuned),
        replicas=replicas,
        origin=replicas.parameters.clone(),
    )
