"""Bodies and answers about reproductions, version 1: the one place that says what a stored summary holds.

`noisescale reproduce` writes it (`noisescale_lab.reproduce.claim.report.files`,
`noisescale_lab.reproduce.advice.tables`), the dashboard reads it. A test sends what the one writes through this to
the other.
"""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, model_validator

from noisescale_server.api.platform.deps import MAX_INT64
from noisescale_server.api.platform.schemas import Answer, Body, Name
from noisescale_server.storage.reproductions import Kind

MAX_CONTENT_BYTES = 1024 * 1024
"""As JSON; eight tasks of a quick run took 96 kB."""
MAX_ROWS = 1_000

HEADLINE = ("near_critical", "hardest", "all tasks")
PUBLISHED = "published"

Value = Annotated[float, Field(ge=-1e30, le=1e30, allow_inf_nan=False)]
Size = Annotated[float, Field(ge=1e-9, le=1e30, allow_inf_nan=False)]
"""A batch size or a noise scale: both have a place on a logarithmic axis."""
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=MAX_INT64)]


class FigureBody(Body):
    """A figure with its 95 % interval; null where all points are one."""

    value: Value | None
    low: Value | None
    high: Value | None


class PointBody(Body):
    """One target of one task, both numbers in the task's unit; published points have no target."""

    task: Name
    target: Value | None
    noise_scale: Size
    critical_batch: Size


class AgreementBody(Body):
    """How well the noise scales of a series predict its critical batches; intervals: tasks drawn again."""

    num_points: Count
    num_tasks: Count
    r_squared_of_fit: FigureBody
    r_squared_of_identity: FigureBody
    rms_factor: FigureBody
    within_factor_2: FigureBody
    within_factor_3: FigureBody
    slope: FigureBody
    decades: Value


class SeriesBody(Body):
    """One choice of average, targets and tasks, its points, and its figures from five tasks on."""

    average: Name
    targets: Name
    tasks: Name
    points: Annotated[list[PointBody], Field(max_length=MAX_ROWS)]
    agreement: AgreementBody | None


class TargetBody(Body):
    """One target of one task; batch sizes and noise scales in examples, units in `units_per_example`."""

    task: Name
    group: Name
    optimizer: Name
    unit: Name
    units_per_example: Annotated[float, Field(ge=1e-9, le=1e12, allow_inf_nan=False)]
    num_seeds: Count
    target: Value
    min_steps: Value | None
    critical_batch: Size | None
    critical_batch_low: Size | None
    critical_batch_high: Size | None
    near_critical: Size | None
    near_critical_low: Value | None
    near_critical_high: Value | None
    ideal_steps: Value | None
    all_batches: Value | None
    exact_near_critical: Value | None
    exclusion: Name | None


class HooksBody(Body):
    """Measured windows of a task against every single example's gradient."""

    task: Name
    num_windows: Count
    num_bounded: Count
    num_compared: Count
    num_holding: Count
    median_ratio: Value | None


class QuadraticBody(Body):
    """Measured windows of a noisy quadratic against its exact noise scales, in examples."""

    task: Name
    num_windows: Count
    num_bounded: Count
    num_holding: Count
    measured: Value | None
    exact: Value | None
    exact_hessian: Value


class GrowthBody(Body):
    """Noise scale in the first and last quarter of a run, examples, and where in the run it is lowest."""

    task: Name
    early: Value
    late: Value
    lowest_at: Share


class LossLawBody(Body):
    """Noise scale ∝ loss to a power along one run."""

    task: Name
    exponent: FigureBody
    r_squared: Value | None
    highest_loss: Value
    lowest_loss: Value
    num_windows: Count


class SizeEffectBody(Body):
    """Noise scale ∝ loss^a · size^b over models of several sizes."""

    sizes: Annotated[list[Count], Field(max_length=100)]
    loss_exponent: FigureBody
    size_exponent: FigureBody
    r_squared: Value | None
    num_windows: Count


class MisfitBody(Body):
    """Measured steps against the fitted curve of one target."""

    task: Name
    target: Value
    num_points: Count
    rms_factor: Value
    largest_factor: Value
    farthest_batch: Count


class RateGrowthBody(Body):
    """Best learning rate ∝ batch size to a power."""

    task: Name
    optimizer: Name
    below: Value | None
    above: Value | None
    over_all: Value | None


class AdaptiveBody(Body):
    """A batch size that follows the noise scale: cost over that of the constant one; null: target missed."""

    smallest: Count
    largest: Count
    foreseen: Value
    measured: Value | None


class ClaimBody(Body):
    """What `noisescale reproduce` found: does the noise scale predict the critical batch size?"""

    series: Annotated[list[SeriesBody], Field(max_length=100)]
    exclusions: Annotated[list[Name], Field(max_length=MAX_ROWS)]
    hooks: Annotated[list[HooksBody], Field(max_length=MAX_ROWS)]
    quadratics: Annotated[list[QuadraticBody], Field(max_length=MAX_ROWS)]
    growth: Annotated[list[GrowthBody], Field(max_length=MAX_ROWS)]
    loss_laws: Annotated[list[LossLawBody], Field(max_length=MAX_ROWS)]
    size_effect: SizeEffectBody | None
    misfits: Annotated[list[MisfitBody], Field(max_length=MAX_ROWS)]
    rate_growth: Annotated[list[RateGrowthBody], Field(max_length=MAX_ROWS)]
    targets: Annotated[list[TargetBody], Field(max_length=MAX_ROWS)]
    adaptive: Annotated[dict[Name, AdaptiveBody], Field(max_length=MAX_ROWS)]

    @model_validator(mode="after")
    def check_series(self) -> "ClaimBody":
        """The summary itself.

        Raises:
            ValueError: Without the two series that every reader starts from.
        """
        if not any((one.average, one.targets, one.tasks) == HEADLINE for one in self.series):
            raise ValueError(f"has no series {' / '.join(HEADLINE)}: send what noisescale reproduce writes")
        if not any(one.average == PUBLISHED and one.agreement is not None for one in self.series):
            raise ValueError("has no published series with its figures: send what noisescale reproduce writes")
        return self


class PolicyBody(Body):
    """One policy on one kind of start; regrets in %."""

    tasks: Name
    rate: Name
    policy: Name
    kind: Name
    runs: Count
    median: Value
    p90: Value
    added: Value
    relative: Value
    low: Value
    high: Value
    missed: Share


class HalfWayBody(Body):
    """Recommendations at a share of runs that nobody advised; shares in 0 to 1, regrets in %, null: none to count."""

    rate: Name
    share: Name
    noise: Name
    kappa: Name
    runs: Count
    shown: Value | None
    resolved: Value | None
    holds: Value | None
    holds_low: Value | None
    holds_high: Value | None
    decided: Value | None
    decided_low: Value | None
    decided_high: Value | None
    right: Value | None
    log_error: Value | None
    recommended_median: Value | None
    recommended_p90: Value | None
    followed_median: Value | None
    followed_p90: Value | None
    kept_median: Value | None
    kept_p90: Value | None


class AdviceBody(Body):
    """What `noisescale reproduce --advice` found: what was the advice worth?"""

    policies: Annotated[list[PolicyBody], Field(max_length=MAX_ROWS)]
    recommendations: Annotated[list[HalfWayBody], Field(max_length=MAX_ROWS)]


class NewReproductionBody(Body):
    """Body of POST /api/v1/reproductions: a `claim`, or what `advice` was worth."""

    project: Name
    effort: Literal["quick", "full"]
    seed: Annotated[int, Field(ge=-MAX_INT64, le=MAX_INT64)]
    version: Annotated[Name, Field(description="of the client that ran it")]
    claim: ClaimBody | None = None
    advice: AdviceBody | None = None

    @model_validator(mode="after")
    def check_content(self) -> "NewReproductionBody":
        """The body itself.

        Raises:
            ValueError: Unless it is one of both, and not larger than is kept.
        """
        if (self.claim is None) == (self.advice is None):
            raise ValueError("holds either a claim or advice: send one of both")
        size = len(self.model_dump_json().encode())
        if size > MAX_CONTENT_BYTES:
            raise ValueError(f"has {size} bytes as JSON, at most {MAX_CONTENT_BYTES} are kept: leave tasks out")
        return self

    @property
    def kind(self) -> Kind:
        """Which of both."""
        return "claim" if self.claim is not None else "advice"


class ReproductionAnswer(Answer):
    """One reproduction without what it found."""

    id: UUID
    project: str
    kind: Kind
    effort: str
    seed: int
    version: str
    created_at: datetime


class ReproductionWithFindings(ReproductionAnswer):
    """One reproduction with what it found, as it was sent."""

    claim: dict[str, Any] | None
    advice: dict[str, Any] | None


class ReproductionList(Answer):
    """A page of reproductions, newest first."""

    reproductions: list[ReproductionAnswer]
    next_cursor: str | None
    total: int


class WrittenReproduction(Answer):
    """All that a training job's key is told: that what it sent is there."""

    id: UUID
    project: str
    kind: Kind
