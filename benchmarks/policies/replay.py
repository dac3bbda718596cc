"""Replays runs under policies: many at once, stacked by batch size, each with its own history and cost.

Cost is counted as r times steps plus examples, over everything that is computed: abandoned trajectories, losing arms of
branches, and a third of an example for each example that is only evaluated. The evaluation that decides whether the
target is reached is the experimenter's and costs nothing.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Protocol

import torch

from benchmarks.policies.simple_policies import BranchOfEqualExamples
from benchmarks.policies.sweep import PLAN, Reference, decayed
from noisescale.estimators.uncertainty import estimate
from noisescale.estimators.windows import WindowSums
from noisescale.reproduce.stacked.random_stream import RandomStream, keys
from noisescale.reproduce.stacked.trainer import Record, Replicas, evaluate, train
from noisescale.reproduce.task import Task
from noisescale.theory.policy import Action, Adopt, Arm, Branch, Restart, RunState, Train

CAP = 8.0
"""A run that has spent this much of the best constant run's cost without meeting the target has missed it."""

LOOK_RATIO = 0.12
FIRST_LOOKS = 0.02
BLOCKS_PER_LOOK = 4
BLOCKS_OF_WINDOW = 16
EVALUATION_COST = 1 / 3
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
        """Share of the base learning rate now."""
        return decayed(self.spent / self.planned) if self.start.decays else 1.0

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
            optimizer=self.task.optimizer.name,
            batch=self.batch,
            learning_rate=self.learning_rate,
            decay=self.decay,
            first_loss=self.first_loss,
            first_loss_error=self.first_loss_error,
            loss=self.loss,
            loss_error=self.loss_error,
            noise_scale=estimate(WindowSums.from_blocks(self.blocks[-BLOCKS_OF_WINDOW:])),
        )

    def phase(self) -> Job:
        """The steps until the next look."""
        least = FIRST_LOOKS * self.planned / self.step_cost(self.batch)
        steps = rounded(max(1.0, least, LOOK_RATIO * self.steps))
        return Job(self.replicas, self.batch, self.learning_rate * self.decay, steps)

    def restart(self) -> None:
        """Fresh weights, fresh examples; nothing is refunded."""
        seen = self.replicas.num_examples.clone()
        self.replicas = Replicas.new(self.task, [self.start.seed])
        self.replicas.num_examples = seen
        self.steps, self.blocks = 0, []
        self.first_loss = math.nan


def rounded(value: float) -> int:
    """The nearest of 1, 2, 3, 4, 6, 8, 12, … on the log scale, so that runs can share a stack."""
    exponent = math.floor(math.log2(max(value, 1)))
    candidates = [2**exponent, 3 * 2 ** (exponent - 1), 2 ** (exponent + 1)]
    return min((int(c) for c in candidates if c == int(c)), key=lambda c: abs(math.log(c / max(value, 1))))


def feasible(batch: float) -> int:
    """A batch size that the replay offers."""
    return min(LARGEST_BATCH, max(2, rounded(batch)))


def replay(
    task: Task,
    reference: Reference,
    starts: Iterable[Start],
    policies: dict[str, Callable[[], Policy]],
) -> list[Outcome]:
    """Every policy from every start."""
    runs = [new_run(task, reference, start, name, build()) for start in starts for name, build in policies.items()]
    stream = RandomStream()
    alive = runs
    initial = {seed: float(evaluate(task, task.network.initial([seed]))[0]) for seed in {r.start.seed for r in runs}}
    for run in runs:
        run.before = (0.0, initial[run.start.seed])
        run.jobs = [run.phase()]
    while alive:
        execute(task, stream, alive)
        settle(task, alive)
        for run in alive:
            if run.outcome is None:
                follow(run, stream)
        alive = [run for run in alive if run.outcome is None]
    return [run.outcome for run in runs if run.outcome is not None]


def new_run(task: Task, reference: Reference, start: Start, name: str, policy: Policy) -> Run:
    """A run before its first step."""
    tuned = reference.nearest(reference.best.batch * start.batch_factor)
    return Run(
        task=task,
        reference=reference,
        start=start,
        name=name,
        policy=policy,
        batch=tuned.batch,
        learning_rate=tuned.learning_rate * start.rate_factor,
        planned=PLAN * reference.cost(tuned),
        replicas=Replicas.new(task, [start.seed]),
    )


def execute(task: Task, stream: RandomStream, runs: Sequence[Run]) -> None:
    """Train every job, those of equal batch and length in one stack."""
    groups: defaultdict[tuple[int, int], list[tuple[Run, Job]]] = defaultdict(list)
    for run in runs:
        for job in run.jobs:
            groups[job.batch, job.steps].append((run, job))
    for (batch, steps), group in groups.items():
        stack = Replicas.gather([job.replicas for _, job in group])
        record = train(
            task,
            stream,
            stack,
            seeds=[run.start.seed for run, _ in group],
            learning_rate=[job.learning_rate for _, job in group],
            batch=batch,
            steps=steps,
            wants_average=True,
        )
        for row, (_, job) in enumerate(group):
            job.replicas, job.record, job.row = stack.take(row), record, row


def settle(task: Task, runs: Sequence[Run]) -> None:
    """Count the cost of what was trained, and see who met the target."""
    main = [run for run in runs if run.branch is None]
    for run in main:
        [job] = run.jobs
        absorb(run, job)
    for run in runs:
        if run.branch is not None:
            run.spent += sum(job.steps * run.step_cost(job.batch) for job in run.jobs)
    if main:
        losses = evaluate(task, torch.cat([run.replicas.parameters for run in main]))
        for run, loss in zip(main, losses.tolist(), strict=True):
            judge(run, loss)
    for run in runs:
        if run.outcome is None and run.spent >= CAP * run.reference.cost(run.reference.best):
            end(run, CAP, reached=False)


def absorb(run: Run, job: Job) -> None:
    """Make a job's end the run's present."""
    assert job.record is not None
    run.replicas = job.replicas
    run.spent += job.steps * run.step_cost(job.batch)
    remember(run, job)


def remember(run: Run, job: Job) -> None:
    """Losses and noise of a job become the run's history."""
    assert job.record is not None
    run.steps += job.steps
    run.average = job_average(job)
    loss = job.record.loss[:, job.row]
    mean = float(loss.mean())
    run.loss = mean if math.isfinite(mean) else math.inf
    run.loss_error = float(loss.std(ddof=1)) / math.sqrt(len(loss)) if len(loss) > 1 and mean < math.inf else math.inf
    if math.isnan(run.first_loss):
        run.first_loss, run.first_loss_error = run.loss, run.loss_error
    count = min(BLOCKS_PER_LOOK, job.steps)
    edges = [round(part * job.steps / count) for part in range(count + 1)]
    trace, square = job.record.trace_cov[:, job.row], job.record.grad_sq_norm[:, job.row]
    for low, high in pairwise(edges):
        run.blocks.append((high - low, float(trace[low:high].sum()), float(square[low:high].sum())))


def judge(run: Run, loss: float) -> None:
    """Whether the target was met since the last look; the log of the loss is interpolated over cost."""
    target = run.reference.target
    spent, before = run.before
    if loss <= target:
        share = 1.0 if before <= target else math.log(before / target) / math.log(before / max(loss, 1e-12))
        at = spent + share * (run.spent - spent)
        best = run.reference.cost(run.reference.best)
        end(run, min(CAP, at / best), reached=at < CAP * best)
    elif not math.isfinite(loss) and not hasattr(run.policy, "rescues"):
        end(run, CAP, reached=False)
    else:
        run.before = (run.spent, loss if math.isfinite(loss) else math.inf)


def end(run: Run, cost: float, *, reached: bool) -> None:
    """Close a run."""
    run.outcome = Outcome(run.start, run.name, cost, reached, run.batch, run.learning_rate)


def follow(run: Run, stream: RandomStream) -> None:
    """Ask the policy and do what it says."""
    view = run.view()
    if run.branch is not None:
        view = with_arms(run, view, stream)
    action = run.policy.decide(view)
    match action:
        case Adopt(arm, batch, learning_rate):
            run.replicas = run.jobs[arm].replicas
            remember(run, run.jobs[arm])
            run.batch, run.learning_rate = feasible(batch), learning_rate
        case Restart(batch, learning_rate):
            run.restart()
            run.batch, run.learning_rate = feasible(batch), learning_rate
        case Train(batch, learning_rate):
            run.batch, run.learning_rate = feasible(batch), learning_rate
        case Branch():
            pass
    if isinstance(action, Branch):
        run.branch = action
        run.jobs = [
            Job(run.replicas.take(0), feasible(batch), rate * run.decay, arm_steps(action, feasible(batch)))
            for batch, rate in action.arms
        ]
    else:
        run.branch = None
        run.jobs = [run.phase()]


def arm_steps(branch: Branch, batch: int) -> int:
    """Steps of an arm: of all the same, or fewer for larger batches where arms are to see equally many examples."""
    if isinstance(branch, BranchOfEqualExamples):
        return rounded(branch.steps * feasible(branch.arms[0][0]) / batch)
    return rounded(branch.steps)


def with_arms(run: Run, view: RunState, stream: RandomStream) -> RunState:
    """The view with what the branch showed, its evaluation paid for."""
    assert run.branch is not None
    found = [(math.nan, math.nan)] * (len(run.jobs) + 1)
    if run.branch.held_out:
        assert run.average is not None
        rows = [run.average, *(job_average(job) for job in run.jobs)]
        found = held_out_losses(run, torch.cat(rows), stream, run.branch.held_out)
        run.spent += len(rows) * run.branch.held_out * EVALUATION_COST
    arms = tuple(
        Arm(job.batch, rate, loss, error)
        for job, (_, rate), (loss, error) in zip(run.jobs, run.branch.arms, found[1:], strict=True)
    )
    return replace(view, arms=arms, before_loss=found[0][0])


def job_average(job: Job) -> torch.Tensor:
    """Weights averaged over an arm's last half, [1, P]."""
    assert job.record is not None
    assert job.record.average is not None
    return job.record.average[job.row : job.row + 1]


def held_out_losses(run: Run, parameters: torch.Tensor, stream: RandomStream, count: int) -> list[tuple[float, float]]:
    """Loss of each row on examples that the run does not train on, and the error of its difference from row 1's.

    Row 1 is the first arm; all rows see the same examples.
    """
    tables, rows = stream.tables([run.start.seed + 500_000])
    drawn = keys(tables, rows, run.replicas.num_examples[:, None], count)
    inputs, targets = run.task.sample(drawn)
    outputs = run.task.network.forward(parameters, inputs.expand(len(parameters), *inputs.shape[1:]))[-1]
    losses = run.task.loss(outputs, targets.expand(len(parameters), *targets.shape[1:]))[0].double()
    means = losses.mean(1).tolist()
    errors = ((losses - losses[1]).std(1) / math.sqrt(count)).tolist()
    return [
        (loss, error) if math.isfinite(loss) and math.isfinite(error) else (math.inf, math.inf)
        for loss, error in zip(means, errors, strict=True)
    ]
