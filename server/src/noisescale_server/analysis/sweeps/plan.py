"""What to run next so that a sweep pins B_crit to a wanted interval, at what cost, from what it says so far."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.special import stdtrit

from noisescale_server.analysis.sweeps.batch_sweep.target_answer import TargetAnswer
from noisescale_server.analysis.sweeps.fitting.observations import NoiseLevel
from noisescale_server.analysis.sweeps.fitting.refusal import Refusal, RefusalReason
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.points.hyperbola import example_share
from noisescale_server.analysis.sweeps.steps_to_target.best_of_grid import TargetPoint

MAX_ADDED = 24
"""Values that one plan adds: past it the wish is out of reach of the next few runs."""

REACH = 16.0
"""New batch sizes are at most so many times beyond those of the sweep."""

NUM_RATES = 3
SEARCH_STEPS = 1.3
"""A learning rate that is not the best is stopped at 1.3 times the best one's steps."""

WIDEN_DOWN = frozenset({RefusalReason.ALL_ABOVE, RefusalReason.UNDETERMINED, RefusalReason.TOO_FEW_BATCH_SIZES})
WIDEN_UP = frozenset({RefusalReason.ALL_BELOW, RefusalReason.UNDETERMINED, RefusalReason.TOO_FEW_BATCH_SIZES})


@dataclass(frozen=True, slots=True)
class Proposal:
    """Runs to add at one batch size.

    Attributes:
        batch_size: In examples.
        learning_rates: To try; a single one where the best is known.
        num_seeds: Repeats of each.
        steps: That one run is expected to need at most.
        examples: That all of them are expected to take at most.
        reason: Why here.
    """

    batch_size: float
    learning_rates: tuple[float, ...]
    num_seeds: int
    steps: float
    examples: float
    reason: str


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """What to run next.

    Attributes:
        target: Value of the metric.
        wanted_ratio: Upper over lower end of B_crit's interval that was asked for.
        present_ratio: The same now; None where an end is open.
        expected_ratio: After these runs, if the curve and its scatter stay; None where nothing can be foretold.
        proposals: By batch size; empty where the wish is met already.
        examples: Of all proposals, at most.
        explanation: In a sentence.
    """

    target: float
    wanted_ratio: float
    present_ratio: float | None
    expected_ratio: float | None
    proposals: tuple[Proposal, ...]
    examples: float
    explanation: str


@dataclass(frozen=True, slots=True)
class _Value:
    """A value of log S: of one run, or of one batch size."""

    batch_size: float
    is_new: bool


def plan(found: TargetAnswer, *, wanted_ratio: float) -> SweepPlan:
    """The runs that narrow B_crit's interval most for what they cost.

    With a fit: values are added one by one where Var log B_crit = σ² / Σ (p - p̄)², p = B_crit / (B_crit + B), falls
    most for each example spent, until Student's interval is narrow enough. Without: what its refusal asks for.
    """
    if not found.points:
        return _ready(
            found, wanted_ratio, None, None, (), "There is nothing to plan from: attach runs that reached it."
        )
    edges = [_beyond_edge(point) for point in found.points if point.is_at_grid_edge]
    if isinstance(found.outcome, Refusal):
        proposals = (*edges, *_for_refusal(found.points, found.outcome.reason))
        return _ready(found, wanted_ratio, None, None, proposals, found.outcome.explanation)
    return _for_fit(found, found.outcome, edges, wanted_ratio)


def _for_fit(found: TargetAnswer, fit: SweepFit, edges: Sequence[Proposal], wanted_ratio: float) -> SweepPlan:
    assert fit.critical_batch.low is not None
    assert fit.critical_batch.high is not None
    present = fit.critical_batch.high / fit.critical_batch.low
    values = _values(found.points, fit)
    added: list[_Value] = []
    expected = present
    while expected > wanted_ratio and len(added) < MAX_ADDED:
        choices = _choices(found.points, fit)
        best = max(choices, key=lambda value: _gain([*values, *added], value, found.points, fit))
        added.append(best)
        expected = present ** _shrinkage(values, [*values, *added], fit)
    proposals = (*edges, *_gathered(added, found.points, fit))
    if not added:
        text = f"B_crit is known within a factor {present:.3g} from end to end, as wanted."
    elif expected <= wanted_ratio:
        text = f"These runs should narrow B_crit's interval from a factor {present:.3g} to {expected:.3g}."
    else:
        text = (
            f"{MAX_ADDED} more values narrow B_crit's interval from a factor {present:.3g} to {expected:.3g}, not to "
            f"{wanted_ratio:.3g}: ask for less, or plan again after them."
        )
    return _ready(found, wanted_ratio, present, expected, proposals, text)


def _values(points: Sequence[TargetPoint], fit: SweepFit) -> list[_Value]:
    reached = [p for p in points if p.average.steps.steps is not None and p.batch_size >= fit.least_batch]
    if fit.noise_level is NoiseLevel.BATCH_SIZES:
        return [_Value(point.batch_size, False) for point in reached]
    return [_Value(point.batch_size, False) for point in reached for _ in range(point.average.num_seeds)]


def _choices(points: Sequence[TargetPoint], fit: SweepFit) -> list[_Value]:
    """Batch sizes between and beyond those of the sweep, and repeats where single runs are what scatters."""
    old = [point.batch_size for point in points]
    found = [_Value(size, False) for size in old] if fit.noise_level is NoiseLevel.RUNS else []
    # below the best batch of a sweep that turns, values tell of the turn and not of B_crit
    size = max(1.0, min(old) / REACH)
    while size < fit.least_batch:
        size *= 2
    while size <= max(old) * REACH:
        # nearer than √2 to an old one nothing is learnt that a repeat would not tell
        if all(abs(math.log(size / known)) > math.log(2) / 2 for known in old):
            found.append(_Value(float(round(size)), True))
        size *= 2
    return found or [_Value(known, False) for known in old]


def _gain(values: Sequence[_Value], added: _Value, points: Sequence[TargetPoint], fit: SweepFit) -> float:
    """How much the variance of log B_crit falls, relative to itself, for each example."""
    before, after = _spread(values, fit), _spread([*values, added], fit)
    return (1 / before - 1 / after) * before / _cost(added, points, fit)


def _shrinkage(before: Sequence[_Value], after: Sequence[_Value], fit: SweepFit) -> float:
    """The interval's width on the log scale after, over before."""
    quantiles = [float(stdtrit(max(len(values) - 2, 1), 0.5 + fit.level / 2)) for values in (after, before)]
    return quantiles[0] / quantiles[1] * math.sqrt(_spread(before, fit) / _spread(after, fit))


def _spread(values: Sequence[_Value], fit: SweepFit) -> float:
    """Q = Σ (p - p̄)² over the values."""
    log_critical = math.log(fit.critical_batch.value)
    shares = [float(example_share(log_critical, math.log(value.batch_size))) for value in values]
    mean = math.fsum(shares) / len(shares)
    return math.fsum((share - mean) ** 2 for share in shares)


def _cost(value: _Value, points: Sequence[TargetPoint], fit: SweepFit) -> float:
    """Examples of a value: a repeat at the known rate, or all seeds of a small search of the rate."""
    one = fit.min_steps.value * (value.batch_size + fit.critical_batch.value)
    return one * _search_runs(points) if value.is_new else one


def _search_runs(points: Sequence[TargetPoint]) -> float:
    """Runs of the best one's length that a search with its seeds takes."""
    return _num_seeds(points) * (1 + (NUM_RATES - 1) * SEARCH_STEPS)


def _num_seeds(points: Sequence[TargetPoint]) -> int:
    return max(point.average.num_seeds for point in points)


def _gathered(added: Sequence[_Value], points: Sequence[TargetPoint], fit: SweepFit) -> list[Proposal]:
    found = []
    for size in sorted({value.batch_size for value in added}):
        here = [value for value in added if value.batch_size == size]
        steps = fit.min_steps.value * (1 + fit.critical_batch.value / size)
        if here[0].is_new:
            repeats = _num_seeds(points) * (len(here) if fit.noise_level is NoiseLevel.BATCH_SIZES else 1)
            new = _new_batch_size(points, size, steps, "where it narrows the interval most for its examples")
            found.append(replace(new, num_seeds=repeats, examples=new.examples * repeats / new.num_seeds))
            continue
        lr = next(point.lr for point in points if point.batch_size == size)
        found.append(Proposal(size, (lr,), len(here), steps, len(here) * steps * size, "repeats at the known rate"))
    return found


def _for_refusal(points: Sequence[TargetPoint], reason: RefusalReason) -> list[Proposal]:
    smallest, largest = points[0], points[-1]
    found = []
    for factor in (16.0, 4.0):
        size = smallest.batch_size / factor
        if reason in WIDEN_DOWN and size >= 1:
            # by theory a smaller batch takes at most in proportion more steps
            steps = _known_steps(smallest) * factor
            found.append(_new_batch_size(points, float(round(size)), steps, "smaller batch sizes"))
    for factor in (4.0, 16.0):
        if reason in WIDEN_UP:
            size = largest.batch_size * factor
            found.append(_new_batch_size(points, size, _known_steps(largest), "larger batch sizes"))
    if not found:
        found = [
            _new_batch_size(points, point.batch_size, _known_steps(point), "tune again, with more seeds")
            for point in points
        ]
    return found


def _new_batch_size(points: Sequence[TargetPoint], size: float, steps: float, reason: str) -> Proposal:
    """A search around the learning rate that the nearest batch size had, scaled by the root of the ratio."""
    nearest = min(points, key=lambda point: abs(math.log(point.batch_size / size)))
    center = nearest.lr * math.sqrt(size / nearest.batch_size)
    rates = (center / 2, center, 2 * center)
    return Proposal(size, rates, _num_seeds(points), steps, steps * size * _search_runs(points), reason)


def _beyond_edge(point: TargetPoint) -> Proposal:
    """Rates on both sides of one that was the last of its grid: one side is new."""
    steps, seeds = _known_steps(point), point.average.num_seeds
    rates = (point.lr / 2, point.lr * 2)
    examples = seeds * len(rates) * SEARCH_STEPS * steps * point.batch_size
    return Proposal(
        point.batch_size, rates, seeds, steps, examples, "the best learning rate was the last that was tried"
    )


def _known_steps(point: TargetPoint) -> float:
    steps = point.average.steps
    return steps.low if steps.steps is None else steps.steps


def _ready(
    found: TargetAnswer,
    wanted: float,
    present: float | None,
    expected: float | None,
    proposals: Sequence[Proposal],
    text: str,
) -> SweepPlan:
    examples = math.fsum(proposal.examples for proposal in proposals)
    return SweepPlan(found.target, wanted, present, expected, tuple(proposals), examples, text)
