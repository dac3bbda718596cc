"""Bodies and answers about runs, version 1; see docs/rest.md."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from noisescale_core.advice.parts.parts import DecisionWord, LatestNoiseScale
from noisescale_server.api.platform.deps import MAX_INT64, refuse_control_characters
from noisescale_server.api.platform.schemas import (
    LINES,
    NOT_BLANK,
    Answer,
    Body,
    Config,
    Name,
    PositiveNumber,
    Price,
    refuse_blank,
    refuse_unprintable,
)

MAX_TAGS = 32
MAX_CHANGED = 200
MAX_REMARKS = 8_000

RunStatus = Literal["running", "finished", "failed", "silent", "crashed"]


def refuse_repeated(tags: list[str]) -> list[str]:
    """The tags themselves.

    Raises:
        ValueError: When one occurs twice.
    """
    repeated = {tag for tag in tags if tags.count(tag) > 1}
    if repeated:
        raise ValueError(f"has {min(repeated)!r} more than once: send each tag once")
    return tags


Tag = Annotated[
    str,
    Field(min_length=1, max_length=64, json_schema_extra=NOT_BLANK),
    AfterValidator(refuse_control_characters),
    AfterValidator(refuse_blank),
]
Tags = Annotated[
    list[Tag], Field(max_length=MAX_TAGS, json_schema_extra={"uniqueItems": True}), AfterValidator(refuse_repeated)
]
Remarks = Annotated[str, Field(max_length=MAX_REMARKS, json_schema_extra=LINES), AfterValidator(refuse_unprintable)]


class RunFields(Body):
    """What describes a run; also the `run.run` of the wire format."""

    project: Name
    task: Name = "default"
    name: Name | None = None
    tags: Annotated[Tags, Field(default_factory=list)]
    config: Annotated[Config, Field(default_factory=dict)]
    unit: Name = "examples"
    example: Name = "example"
    units_per_example: PositiveNumber = 1.0
    num_devices: Annotated[int, Field(ge=1, le=10_000_000)] = 1
    device: Name | None = None
    usd_per_device_hour: Price | None = None
    family: Name | None = None
    planned_steps: Annotated[int, Field(ge=1, le=MAX_INT64)] | None = None


class NewRun(RunFields):
    """Body of POST /api/v1/runs."""

    id: UUID | None = None


class RunPatch(Body):
    """Body of PATCH /api/v1/runs/{run_id}: what is left out stays."""

    name: Name = ""
    tags: Annotated[Tags, Field(default_factory=list)]
    remarks: Remarks = ""
    archived: bool = False
    task: Name = ""


class RunChanges(Body):
    """Body of POST /api/v1/runs/changes: the same change of many runs; what is left out stays."""

    ids: Annotated[list[UUID], Field(min_length=1, max_length=MAX_CHANGED, strict=False)]
    archived: bool | None = None
    add_tags: Annotated[Tags, Field(default_factory=list)]
    remove_tags: Annotated[Tags, Field(default_factory=list)]


class Interval(Answer):
    """A value with its interval."""

    value: float | None
    low: float | None
    high: float | None


class RowDecision(Answer):
    """What to do with the batch size, in short."""

    decision: DecisionWord
    batch_size: int | None
    low: float | None
    high: float | None
    reason: str
    probability: float | None
    saving: float | None


class RunKappa(Interval):
    """κ of the run, with the number of sweeps, branches and followed runs behind it; 0: the published spread."""

    level: float
    measurements: int


class Notice(Answer):
    """Something to know of the measurement, with the way out."""

    code: str
    text: str


class RunDivergence(Answer):
    """Since which step loss or gradients are not finite, and what to do."""

    step: int
    loss: bool
    gradients: bool
    text: str


class RunStatusAnswer(Answer):
    """What a run is doing."""

    id: UUID
    project: str
    status: RunStatus


class RunAnswer(Answer):
    """One run."""

    id: UUID
    project: str
    task: str
    name: str
    tags: list[str]
    config: dict[str, Any]
    unit: str
    example: str
    units_per_example: float
    num_devices: int | None
    device: str | None
    usd_per_device_hour: float | None
    family: str | None
    planned_steps: int | None
    archived: bool
    is_baseline: bool
    status: RunStatus
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    optimizer: str | None
    estimator: str | None
    num_ranks: int | None
    measure_every: int | None
    notes: list[str]
    remarks: str
    notices: list[Notice]
    kinds: list[str]
    lr: float | None
    loss_reduction: str | None
    first_step: int | None
    last_step: int | None
    examples: int | None
    global_batch: float | None
    num_micro_batches: int | None
    loss: float | None
    noise_scale: LatestNoiseScale
    divergence: RunDivergence | None
    example_efficiency: Interval | None
    step_efficiency: Interval | None
    decision: RowDecision
    kappa: RunKappa


class RunGroupAnswer(Answer):
    """Runs that agree in something, with medians over them."""

    value: str | None
    num_runs: int
    num_resolved: int
    num_silent: int
    noise_scale: float | None
    global_batch: float | None
    loss: float | None


class RunSummary(Answer):
    """The largest groups of runs; where `is_exact` is false there are more, and these are of the newest 50,000."""

    by: str
    groups: list[RunGroupAnswer]
    is_exact: bool


class ChangedRuns(Answer):
    """What became of runs that were to be changed together."""

    changed: list[UUID]
    missing: list[UUID]
    too_many_tags: list[UUID]


class FoldAnswer(Answer):
    """Trials of a sweep, a branch or a reproduction that stand behind one run of a page."""

    run_id: UUID
    kind: Literal["sweep", "branch", "reproduction"]
    id: UUID | None
    name: str
    num_runs: int
    batch_low: float | None
    batch_high: float | None
    loss: float | None


class RunPage(Answer):
    """A page of runs; folded, `total` counts rows and `num_runs` the runs that they stand for.

    No more than 10,000 runs are counted: where there are more, `is_total_exact` is false.
    """

    runs: list[RunAnswer]
    folds: list[FoldAnswer]
    next_cursor: str | None
    total: int
    num_runs: int
    is_total_exact: bool
