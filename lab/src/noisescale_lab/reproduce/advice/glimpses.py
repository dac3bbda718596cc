"""What a product sees of runs that nobody advises, at shares of their length: the noise scale of the latest window.

The window, its blocks and its states are the product's own (`noisescale.window.recent_updates`), fed with the terms of
every step. A run is as long as it takes to its target, or as its plan where it does not get there.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from noisescale.window.recent_updates import RecentUpdates
from noisescale_core.advice.parts.known_noise_scale import KnownNoiseScale, known_noise_scale
from noisescale_core.estimators.looks import Looks
from noisescale_core.estimators.noise_scale import Terms
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, State, estimate
from noisescale_core.estimators.windows import WindowSums
from noisescale_lab.reproduce.advice.run import Start
from noisescale_lab.reproduce.advice.sweep import GRID_RATIO, PLAN, Reference, decayed
from noisescale_lab.reproduce.stacked.random_stream import RandomStream, keys
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.trainer import Record, Replicas, evaluate, train

EXAMPLES_FOR_EXACT = 4096
BLOCKS = 16


@dataclass(frozen=True, slots=True)
class Glimpse:
    """A run at some share of its length.

    Attributes:
        start: Where it began.
        share: Of its steps that it has taken.
        batch: Its batch size, examples.
        latest: Noise scale of its latest window.
        last_half: Noise scale over the last half of its steps in up to 16 blocks, by the window's own z alone.
        average: Mean over the steps so far of the resolved windows' values, examples; None while there is none.
        exact: tr Σ / |G|² at its weights from 4096 examples; None where even these do not show |G|².
        exact_average: Mean of that over the steps so far.
        steps: Taken so far.
        planned_steps: Of the plan.
        known: The noise scale by all looks so far; None before 8 steps.
    """

    start: Start
    share: float
    batch: int
    latest: NoiseScaleEstimate
    last_half: NoiseScaleEstimate
    average: float | None
    exact: float | None
    exact_average: float | None
    steps: int = 0
    planned_steps: int | None = None
    known: KnownNoiseScale | None = None


@dataclass(slots=True)
class GlimpsedRun:
    """A run that keeps what it has."""

    start: Start
    learning_rate: float
    terms: list[Terms] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    exact: list[tuple[int, float]] = field(default_factory=list)
    steps: int = 0
    is_over: bool = False

    def add(self, record: Record, row: int, learning_rate: float) -> None:
        """The terms of some steps at one learning rate; what is not finite is no measurement."""
        self.steps += len(record.loss)
        for trace_cov, grad_sq_norm in zip(record.trace_cov[:, row], record.grad_sq_norm[:, row], strict=True):
            if math.isfinite(trace_cov) and math.isfinite(grad_sq_norm):
                self.terms.append(Terms(float(trace_cov), float(grad_sq_norm)))
                self.rates.append(learning_rate)

    def looks(self, batch: int, steps: int) -> Looks:
        """What the product keeps of its first steps."""
        looks = Looks()
        for step, (terms, rate) in enumerate(zip(self.terms[:steps], self.rates[:steps], strict=True)):
            looks.add(step, terms, batch, rate)
        return looks


def glimpses(task: Task, reference: Reference, starts: Iterable[Start], shares: Sequence[float]) -> list[Glimpse]:
    """Every run at every share of its length.

    Args:
        task: What is trained.
        reference: Its sweep; starts are relative to it.
        starts: Of the runs.
        shares: Of a run's steps, rising, each in (0, 1].
    """
    found = []
    for run, batch in watched(task, reference, starts):
        found += _at_shares(run, batch, shares, planned_steps=planned_steps(reference, batch))
    return found


def planned_steps(reference: Reference, batch: int) -> int:
    """Optimizer steps of a run's plan at a batch of the sweep.

    Args:
        reference: The task's sweep.
        batch: In examples.
    """
    return round(PLAN * reference.nearest(batch).steps)


def watched(task: Task, reference: Reference, starts: Iterable[Start]) -> Iterator[tuple[GlimpsedRun, int]]:
    """Every run to its target or the end of its plan, with its batch.

    Args:
        task: What is trained.
        reference: Its sweep; starts are relative to it.
        starts: Of the runs.
    """
    by_batch: defaultdict[int, list[Start]] = defaultdict(list)
    for start in starts:
        by_batch[reference.nearest(reference.best.batch * start.batch_factor).batch].append(start)
    for batch, some in by_batch.items():
        yield from ((run, batch) for run in _watched(task, reference, batch, some))


def _watched(task: Task, reference: Reference, batch: int, starts: Sequence[Start]) -> list[GlimpsedRun]:
    """Runs of one batch size until their target, or the end of their plan."""
    tuned = reference.nearest(batch)
    planned = PLAN * tuned.steps
    runs = [GlimpsedRun(start, tuned.learning_rate * start.rate_factor) for start in starts]
    stream, replicas = RandomStream(), Replicas.new(task, [start.seed for start in starts])
    alive, done = list(runs), 0
    while alive and done < planned:
        steps = max(1, min(int(done * (GRID_RATIO - 1)), math.ceil(planned) - done))
        rates = [run.learning_rate * (decayed(done / planned) if run.start.decays else 1.0) for run in alive]
        seeds = [run.start.seed for run in alive]
        record = train(task, stream, replicas, seeds=seeds, learning_rate=rates, batch=batch, steps=steps)
        done += steps
        for row, (run, loss) in enumerate(zip(alive, evaluate(task, replicas.parameters), strict=True)):
            run.add(record, row, rates[row])
            run.is_over = bool(loss <= reference.target)
        for run, value in zip(alive, _exact(task, stream, replicas, seeds), strict=True):
            run.exact.append((done, value))
        kept = [row for row, run in enumerate(alive) if not run.is_over]
        if len(kept) < len(alive):
            replicas = Replicas.gather([replicas.take(row) for row in kept]) if kept else replicas
            alive = [alive[row] for row in kept]
    return runs


def _in_blocks(terms: Sequence[Terms]) -> NoiseScaleEstimate:
    """Noise scale of these steps."""
    count = min(BLOCKS, len(terms))
    edges = [round(part * len(terms) / count) for part in range(count + 1)] if count else []
    parts = [terms[low:high] for low, high in pairwise(edges)]
    sums = [(len(part), sum(t.trace_cov for t in part), sum(t.grad_sq_norm for t in part)) for part in parts]
    return estimate(WindowSums.from_blocks(sums))


def _exact(task: Task, stream: RandomStream, replicas: Replicas, seeds: Sequence[int]) -> list[float]:
    """The ratio tr Σ / |G|² of each replica from other examples; not finite where |G|² is not seen."""
    found = []
    tables, rows = stream.tables([seed + 700_000 for seed in seeds])
    for row in range(len(seeds)):
        parameters = replicas.parameters[row : row + 1]
        drawn = keys(tables, rows[row : row + 1], replicas.num_examples[row : row + 1, None], EXAMPLES_FOR_EXACT)
        inputs, targets = task.sample(drawn)
        values = task.network.forward(parameters, inputs)
        gradient = task.network.backward(parameters, inputs, values, task.loss(values[-1], targets)[1])
        small, big = float(gradient.example_sq_norm.mean()), float(gradient.mean.square().sum())
        trace_cov = EXAMPLES_FOR_EXACT / (EXAMPLES_FOR_EXACT - 1) * (small - big)
        grad_sq_norm = big - trace_cov / EXAMPLES_FOR_EXACT
        found.append(trace_cov / grad_sq_norm if grad_sq_norm > 0 < trace_cov else math.nan)
    return found


def _exact_at(run: GlimpsedRun, step: int) -> tuple[float | None, float | None]:
    """The exact noise scale nearest to a step, and its mean over the steps until then."""
    known = [(at, value) for at, value in run.exact if math.isfinite(value)]
    if not known:
        return None, None
    before = [one for one in known if one[0] <= step] or known[:1]
    lengths = [at - earlier for earlier, at in pairwise([0, *(at for at, _ in before)])]
    mean = sum(length * value for length, (_, value) in zip(lengths, before, strict=True)) / sum(lengths)
    return min(known, key=lambda one: abs(one[0] - step))[1], mean


def _at_shares(run: GlimpsedRun, batch: int, shares: Sequence[float], *, planned_steps: int) -> list[Glimpse]:
    """The run as the product saw it at these shares of its length."""
    recent, resolved, found = RecentUpdates(), list[float](), list[Glimpse]()
    done = 0
    for share in shares:
        until = max(1, round(share * run.steps))
        for terms in run.terms[done:until]:
            recent.add(terms)
            latest = recent.estimate()
            if latest.state is State.RESOLVED and latest.value is not None:
                resolved.append(latest.value)
        done = max(done, until)
        average = sum(resolved) / len(resolved) if resolved else None
        half = _in_blocks(run.terms[until // 2 : until])
        exact = _exact_at(run, until)
        known = known_noise_scale(run.looks(batch, until).so_far())
        found.append(
            Glimpse(run.start, share, batch, recent.estimate(), half, average, *exact, until, planned_steps, known)
        )
    return found
