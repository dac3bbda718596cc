"""Bodies and answers about sweeps, version 1; see docs/rest.md."""

import math
from datetime import datetime
from itertools import pairwise
from statistics import NormalDist
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, model_validator

from noisescale_server.api.platform.deps import MAX_INT64, Number, Step
from noisescale_server.api.platform.schemas import Answer, Body, Config, Name
from noisescale_server.services.sweeps.sweeps import BETWEEN_RUNS, AnyKind, Goal, Kind, Status
from noisescale_server.storage.calibration import HELD_AGAINST, STEPS
from noisescale_server.storage.platform.tables import Calibration, Sweep

# Runs whose batch changed, as answers: each held against a sweep, and what it says of κ.

LEVEL = 0.95


class KnownKappa(Answer):
    """κ as one run says it; without a value the bounds that it leaves, null where open."""

    value: float | None
    low: float | None
    high: float | None
    level: float


class FollowedRunAnswer(Answer):
    """A run whose batch changed, held against a sweep: κ by its steps to the target and S_min, or why it says nothing.

    `run_id`, `sweep_id` and `steps` are null of one that another server has measured.
    """

    id: UUID
    run_id: UUID | None
    sweep_id: UUID | None
    name: str
    optimizer: str
    target: float | None
    steps: float | None
    min_steps: float | None
    kappa: KnownKappa | None
    missing: str | None


def followed_answer(row: Calibration, sweep: Sweep) -> FollowedRunAnswer:
    """One run as JSON.

    Args:
        row: Its calibration.
        sweep: The row of kind followed that this belongs to.
    """
    held_against = sweep.details.get(HELD_AGAINST)
    return FollowedRunAnswer(
        id=sweep.id,
        run_id=sweep.run_id,
        sweep_id=None if held_against is None else UUID(held_against),
        name=sweep.name,
        optimizer=row.optimizer,
        target=row.target,
        steps=sweep.details.get(STEPS),
        min_steps=row.min_steps,
        kappa=_kappa(row),
        missing=row.missing,
    )


def _kappa(row: Calibration) -> KnownKappa | None:
    low, high, error = row.log_kappa_low, row.log_kappa_high, row.error
    if error is None:
        return None
    reach = NormalDist().inv_cdf(0.5 + LEVEL / 2) * error
    return KnownKappa(
        value=math.exp(low) if low is not None and low == high else None,
        low=None if low is None else _exp(low - reach),
        high=None if high is None else _exp(high + reach),
        level=LEVEL,
    )


def _exp(value: float) -> float | None:
    """None beyond the floats: an imported error may be as large as anything."""
    return math.exp(value) if abs(value) < 700 else None


MAX_TARGETS = 32
MAX_POINTS = 2_000
MAX_RUNS_AT_ONCE = 1_000

BatchSize = Annotated[float, Field(ge=1e-9, le=1e15, allow_inf_nan=False)]
LearningRate = Annotated[float, Field(ge=1e-30, le=1e30, allow_inf_nan=False)]
Value = Annotated[float, Field(ge=-1e100, le=1e100, allow_inf_nan=False)]
Positive = Annotated[float, Field(ge=0, le=1e30, allow_inf_nan=False)]


class AtLoss(Body):
    """A noise scale between runs near one loss, in examples."""

    loss: Value
    batch_sizes: Annotated[list[BatchSize], Field(min_length=2, max_length=100)]
    value: Annotated[Positive | None, Field(description="null: not resolved")] = None
    low: Annotated[Positive | None, Field(description="null: 0")] = None
    high: Annotated[Positive | None, Field(description="null: unbounded")] = None
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95
    spread: Annotated[float, Field(ge=0, le=100, description="relative, by which runs are taken to miss the line")]

    @model_validator(mode="after")
    def check_order(self) -> "AtLoss":
        """The numbers themselves.

        Raises:
            ValueError: For a value outside of its interval, or one whose interval has no upper end.
        """
        low, high = self.low or 0.0, self.high if self.high is not None else math.inf
        if self.value is not None and (self.high is None or not low <= self.value <= high):
            raise ValueError(f"has a value of {self.value:g} outside of its interval: it lies between low and high")
        return self


class BetweenRuns(Body):
    """A noise scale from gradient norms of several runs at equal loss: no other kind is called so, and it no other."""

    kind: Literal["between_runs"] = "between_runs"
    flag: Literal["different_parameters"] = "different_parameters"
    losses: Annotated[list[AtLoss], Field(max_length=64, default_factory=list)]
    missing: Annotated[str | None, Field(max_length=1_000, description="where nothing follows, what it takes")] = None

    @model_validator(mode="after")
    def check_missing(self) -> "BetweenRuns":
        """The whole.

        Raises:
            ValueError: Unless there are losses, or a sentence that says what is missing.
        """
        if bool(self.losses) == bool(self.missing):
            raise ValueError("has losses, or says what is missing, and not both")
        return self


class NewSweepBody(Body):
    """Body of POST /api/v1/sweeps."""

    id: UUID | None = None
    project: Name
    task: Name = "default"
    name: Name | None = None
    kind: Kind = "sweep"
    run_id: Annotated[UUID | None, Field(description="of kind branch: the run that the branches left")] = None
    metric: Annotated[Name | None, Field(description="name of a logged metric; null: the training loss")] = None
    goal: Goal = "min"
    targets: Annotated[list[Value], Field(max_length=MAX_TARGETS, default_factory=list)]
    unit: Name = "examples"
    optimizer: Name | None = None
    details: Annotated[Config, Field(default_factory=dict)]
    noise_scale_between_runs: Annotated[
        BetweenRuns | None, Field(description="of the sweep's runs; the same id again replaces it")
    ] = None

    @model_validator(mode="after")
    def check_run(self) -> "NewSweepBody":
        """The body itself.

        Raises:
            ValueError: For branches without the run that they left, or the reverse.
        """
        if (self.kind == "branch") != (self.run_id is not None):
            raise ValueError(f"run_id belongs to kind branch and only there, got kind {self.kind!r}")
        if BETWEEN_RUNS in self.details:
            raise ValueError(f"details may not hold {BETWEEN_RUNS}: send it as the field of this name")
        return self

    def columns(self) -> dict[str, Any]:
        """What is stored of it."""
        given = self.model_dump(exclude={"id", BETWEEN_RUNS})
        between = self.noise_scale_between_runs
        kept = {} if between is None else {BETWEEN_RUNS: between.model_dump(mode="json")}
        return {**given, "details": {**self.details, **kept}}


class SweepPatch(Body):
    """Body of PATCH /api/v1/sweeps/{sweep_id}."""

    name: Name


class SweepRunBody(Body):
    """A run to attach: `run_id` of one that is stored, or a curve of `steps` and `values`."""

    run_id: Annotated[UUID | None, Field(description="of a stored run")] = None
    id: Annotated[UUID | None, Field(description="of a curve: the same id again replaces it")] = None
    batch_size: BatchSize | None = None
    lr: LearningRate | None = None
    seed: Annotated[int, Field(ge=-MAX_INT64, le=MAX_INT64)] | None = None
    status: Status = "complete"
    steps: Annotated[list[Step], Field(max_length=MAX_POINTS, default_factory=list)]
    values: Annotated[list[Value], Field(max_length=MAX_POINTS, default_factory=list)]

    @model_validator(mode="after")
    def check_curve(self) -> "SweepRunBody":
        """The run itself.

        Raises:
            ValueError: Unless it is either stored or a curve with rising steps, one value each.
        """
        if self.run_id is not None and (self.steps or self.values or self.id):
            raise ValueError("is either stored, with run_id, or a curve, with steps and values: leave one out")
        if len(self.steps) != len(self.values):
            raise ValueError(f"has {len(self.steps)} steps and {len(self.values)} values: send one value a step")
        if any(second <= first for first, second in pairwise(self.steps)):
            raise ValueError("has steps that do not rise: send each evaluation once, in order")
        if self.run_id is None and not self.steps and self.status != "infeasible":
            raise ValueError("has no curve: send steps and values, or status infeasible if it diverged at once")
        return self


class SweepRunsBody(Body):
    """Body of POST /api/v1/sweeps/{sweep_id}/runs."""

    runs: Annotated[list[SweepRunBody], Field(min_length=1, max_length=MAX_RUNS_AT_ONCE)]


class SweepRunAnswer(Answer):
    """One run of a sweep; the curve is what was given with it, empty for a stored run."""

    run_id: UUID
    is_stored: bool
    batch_size: float
    lr: float
    seed: int | None
    status: Status
    steps: list[int]
    values: list[Number]


class WrittenSweep(Answer):
    """All that a training job's key is told of a sweep: that what it sent is there."""

    id: UUID
    project: str
    task: str


class SweepAnswer(Answer):
    """One sweep."""

    id: UUID
    project: str
    task: str
    name: str
    kind: AnyKind
    run_id: UUID | None
    metric: str | None
    goal: Goal
    targets: list[float]
    unit: str
    optimizer: str | None
    details: dict[str, Any]
    noise_scale_between_runs: BetweenRuns | None
    created_at: datetime
    num_runs: int


class SweepWithRuns(SweepAnswer):
    """One sweep and its runs, by batch size, learning rate and seed; and the newest runs that are held against it."""

    runs: list[SweepRunAnswer]
    followed: list[FollowedRunAnswer]


class SweepList(Answer):
    """A page of sweeps, newest first."""

    sweeps: list[SweepAnswer]
    next_cursor: str | None
    total: int
