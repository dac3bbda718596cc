"""What the REST API answers about sweeps, as frozen dataclasses; the words are those of docs/rest.md."""

from dataclasses import dataclass, field, replace

from noisescale_dashboard.answers.common import UNKNOWN, Interval, Json, decoded


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One run of a sweep; `status` is complete, infeasible (it diverged) or incomplete."""

    batch_size: float
    lr: float
    seed: int | None = None
    status: str = "complete"


@dataclass(frozen=True, slots=True)
class AtLoss:
    """A noise scale between runs near one loss, in examples; without a value it is not resolved."""

    loss: float
    batch_sizes: tuple[float, ...]
    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    spread: float = 0.0


@dataclass(frozen=True, slots=True)
class BetweenRuns:
    """A noise scale from gradient norms of several runs at equal loss: a kind of its own; or what is missing for it."""

    losses: tuple[AtLoss, ...] = ()
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class FollowedRun:
    """A run whose batch changed, held against the sweep: κ by the steps that it took, or why it says nothing."""

    id: str
    name: str
    run_id: str | None = None
    steps: float | None = None
    min_steps: float | None = None
    kappa: Interval | None = None
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Sweep:
    """Runs of one task at several batch sizes (kind sweep), or short branches of one run (kind branch)."""

    id: str
    project: str
    task: str
    name: str
    kind: str
    created_at: str
    goal: str = "min"
    unit: str = "examples"
    run_id: str | None = None
    metric: str | None = None
    targets: tuple[float, ...] = ()
    optimizer: str | None = None
    details: Json = field(default_factory=dict)
    noise_scale_between_runs: BetweenRuns | None = None
    num_runs: int = 0
    runs: tuple[SweepRun, ...] = ()
    followed: tuple[FollowedRun, ...] = ()

    @property
    def hardest_target(self) -> float | None:
        """The lowest target of a metric that falls, the highest of one that rises."""
        if not self.targets:
            return None
        return max(self.targets) if self.goal == "max" else min(self.targets)


def sweep(data: Json) -> Sweep:
    """The sweep in `data`, with its runs where the answer has them."""
    return decoded(Sweep, data)


@dataclass(frozen=True, slots=True)
class SweepPage:
    """One page of the list of sweeps; `next_cursor` is None on the last one."""

    sweeps: tuple[Sweep, ...]
    total: int
    next_cursor: str | None = None


def sweep_page(data: Json) -> SweepPage:
    """The page of sweeps in `data`."""
    return decoded(SweepPage, data)


@dataclass(frozen=True, slots=True)
class StepsPoint:
    """Steps to a target at one batch size and the best of its learning rates.

    `steps` lies in (`low`, `high`], the evaluations around the crossing; None: the target was not reached in `low`.
    """

    batch_size: float
    lr: float
    low: float
    num_learning_rates: int = 1
    num_runs: int = 1
    is_at_grid_edge: bool = False
    steps: float | None = None
    high: float | None = None
    examples: float | None = None


@dataclass(frozen=True, slots=True)
class LackOfFit:
    """What speaks against a fit; `exponent` is 1 in theory."""

    findings: tuple[str, ...] = ()
    exponent: Interval = UNKNOWN
    misfit_probability: float | None = None
    unequal_noise_probability: float | None = None
    grid_edge_batch_sizes: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Residual:
    """log(S / curve) of a batch size."""

    batch_size: float
    log_ratio: float


@dataclass(frozen=True, slots=True)
class Turn:
    """That examples rise again at small batches, as E = E_0 (1 + B / B_crit + (s / B)^p); `best_batch` is B_opt."""

    explanation: str
    best_batch: Interval = UNKNOWN
    rise: float = 0.0
    batch_sizes: tuple[float, ...] = ()
    start: float = 0.0
    power: float = 1.0


@dataclass(frozen=True, slots=True)
class Fit:
    """S = S_min (1 + B_crit / B): steps, examples and batch size with intervals, and the turn where there is one."""

    scatter: float
    rms: float
    min_steps: Interval = UNKNOWN
    min_examples: Interval = UNKNOWN
    critical_batch: Interval = UNKNOWN
    residuals: tuple[Residual, ...] = ()
    lack_of_fit: LackOfFit = LackOfFit()
    turn: Turn | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no fit, and the bounds that the data still set."""

    reason: str
    explanation: str
    critical_batch: Interval = UNKNOWN
    min_steps: Interval = UNKNOWN
    min_examples: Interval = UNKNOWN


@dataclass(frozen=True, slots=True)
class LocalSlope:
    """d log S / d log B between two neighbouring batch sizes; `regime` is perfect, diminishing or maximal."""

    from_batch_size: float
    to_batch_size: float
    slope: float
    regime: str


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The fitted steps at a batch size with the interval of the curve."""

    batch_size: float
    steps: float
    low: float
    high: float


def _fitted_or_bounds(fit: Fit | None, refusal: Refusal | None) -> Interval:
    if fit is not None:
        return fit.critical_batch
    return refusal.critical_batch if refusal is not None else UNKNOWN


@dataclass(frozen=True, slots=True)
class TargetFit:
    """What a sweep says about one target: exactly one of `fit` and `refusal`."""

    target: float
    points: tuple[StepsPoint, ...] = ()
    fit: Fit | None = None
    refusal: Refusal | None = None
    regimes: tuple[LocalSlope, ...] = ()
    curve: tuple[CurvePoint, ...] = ()

    @property
    def num_reached(self) -> int:
        """Batch sizes at which the target was reached."""
        return sum(point.steps is not None for point in self.points)

    @property
    def critical_batch(self) -> Interval:
        """B_crit in examples: fitted, or the bounds that a refusal leaves."""
        return _fitted_or_bounds(self.fit, self.refusal)


@dataclass(frozen=True, slots=True)
class CriticalBatch:
    """What a sweep says about each of its targets."""

    targets: tuple[TargetFit, ...]
    goal: str = "min"
    unit: str = "examples"
    level: float = 0.95
    metric: str | None = None


def critical_batch(data: Json) -> CriticalBatch:
    """The fits and refusals in `data`, the easiest target first."""
    found = decoded(CriticalBatch, data)
    targets = sorted(found.targets, key=lambda one: one.target, reverse=found.goal != "max")
    return replace(found, targets=tuple(targets))


@dataclass(frozen=True, slots=True)
class Proposal:
    """Runs to add at one batch size, and what they take at most."""

    batch_size: float
    learning_rates: tuple[float, ...]
    num_seeds: int
    steps: float
    examples: float
    reason: str


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """What to run next so that upper ÷ lower end of B_crit's interval is `wanted_ratio`."""

    target: float
    wanted_ratio: float
    examples: float
    explanation: str
    present_ratio: float | None = None
    expected_ratio: float | None = None
    proposals: tuple[Proposal, ...] = ()


def sweep_plan(data: Json) -> SweepPlan:
    """The plan in `data`."""
    return decoded(SweepPlan, data["plan"])


@dataclass(frozen=True, slots=True)
class QualityPoint:
    """The metric at one batch size under a budget; `difference` is from the smallest batch size."""

    batch_size: float
    lr: float
    num_seeds: int
    mean: float
    standard_error: float | None = None
    difference: Interval = UNKNOWN
    is_still_improving: bool = False


@dataclass(frozen=True, slots=True)
class Quality:
    """All batch sizes under one budget: equal_steps, equal_examples or large_budget."""

    budget: str
    verdict: str
    explanation: str
    at: float | None = None
    points: tuple[QualityPoint, ...] = ()


def qualities(data: Json) -> tuple[Quality, ...]:
    """The comparisons in `data`."""
    return decoded(tuple[Quality, ...], data.get("comparisons") or ())


@dataclass(frozen=True, slots=True)
class PublishedPoint:
    """Repeats of one batch size; data to the target in the sweep's unit."""

    batch_size: float
    seeds: int
    to_target_mean: float
    to_target_sd: float
    optimizer: str | None = None


@dataclass(frozen=True, slots=True)
class PublishedSweep:
    """One workload of a published benchmark with its fit or refusal."""

    suite: str
    workload: str
    version: str
    points: tuple[PublishedPoint, ...]
    source: str = ""
    unit: str = "samples"
    tokens_per_example: int | None = None
    has_room_for_turn: bool = False
    fit: Fit | None = None
    refusal: Refusal | None = None

    @property
    def critical_batch(self) -> Interval:
        """B_crit in examples: fitted, or the bounds that a refusal leaves."""
        return _fitted_or_bounds(self.fit, self.refusal)


@dataclass(frozen=True, slots=True)
class PublishedModelBatch:
    """A verified critical batch of a language model without its sweep; `tokens` are those to its target."""

    task: str
    num_parameters: str
    tokens: float
    critical_batch_tokens: float
    optimizer: str = ""
    definition: str = ""
    source: str = ""
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class PublishedSweeps:
    """Published sweeps with their source, and critical batches without a sweep."""

    sweeps: tuple[PublishedSweep, ...]
    critical_batches: tuple[PublishedModelBatch, ...] = ()
    source: str = ""
    licence: str = ""


def published_sweeps(data: Json) -> PublishedSweeps:
    """The published sweeps in `data`."""
    return decoded(PublishedSweeps, data)
