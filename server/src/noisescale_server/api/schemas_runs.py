"""Bodies and answers about runs, version 1; see docs/rest.md."""

import json
import math
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from noisescale_core.advice.parts import DecisionWord, LatestNoiseScale
from noisescale_core.masking import masked
from noisescale_server.api.deps import CONTROL_CHARACTERS, MAX_INT64, refuse_control_characters

MAX_CONFIG_BYTES = 64 * 1024
MAX_CONFIG_DEPTH = 8
MAX_TAGS = 32
MAX_CHANGED = 200
MAX_REMARKS = 8_000

RunStatus = Literal["running", "finished", "failed", "silent", "crashed"]


def refuse_blank(text: str) -> str:
    """The text itself.

    Raises:
        ValueError: When nothing but white space is in it.
    """
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def refuse_unprintable(text: str) -> str:
    """The text itself, which may have lines.

    Raises:
        ValueError: When another control character is in it.
    """
    refuse_control_characters(text.replace("\n", " ").replace("\t", " "))
    return text


def refuse_repeated(tags: list[str]) -> list[str]:
    """The tags themselves.

    Raises:
        ValueError: When one occurs twice.
    """
    repeated = {tag for tag in tags if tags.count(tag) > 1}
    if repeated:
        raise ValueError(f"has {min(repeated)!r} more than once: send each tag once")
    return tags


def check_config(config: dict[str, Any]) -> dict[str, Any]:
    """The config itself: JSON that Postgres and every reader can hold.

    Raises:
        ValueError: For a number that is not finite, a NUL or lone surrogate, more than 8 levels or 64 KiB; says where.
    """
    _check_json(config, "", 1)
    size = len(json.dumps(config, ensure_ascii=False).encode())
    if size > MAX_CONFIG_BYTES:
        raise ValueError(f"has {size} bytes as JSON, at most {MAX_CONFIG_BYTES} are kept: leave large values out")
    return config


def _check_json(value: object, path: str, depth: int) -> None:
    if depth > MAX_CONFIG_DEPTH + 1:
        raise ValueError(f"is nested deeper than {MAX_CONFIG_DEPTH} levels at {path[:80]}: flatten it")
    match value:
        case str():
            _check_text(value, path)
        case float() if not math.isfinite(value):
            raise ValueError(f"has a number that is not finite at {path[:80]}: send null or text")
        case dict():
            for key, item in value.items():
                _check_text(key, path)
                _check_json(item, f"{path}.{key}" if path else key, depth + 1)
        case list():
            for position, item in enumerate(value):
                _check_json(item, f"{path}[{position}]", depth + 1)


def _check_text(text: str, path: str) -> None:
    if "\x00" in text:
        raise ValueError(f"has a NUL character at {path[:80] or 'a key'}: Postgres cannot keep it")


NOT_BLANK = {"pattern": rf"^[^{CONTROL_CHARACTERS}]*[^{CONTROL_CHARACTERS}\s][^{CONTROL_CHARACTERS}]*$"}
"""What OpenAPI says of texts that `refuse_control_characters` and `refuse_blank` read."""
LINES = {"pattern": rf"^([^{CONTROL_CHARACTERS}]|\n|\t)*$"}

Name = Annotated[
    str,
    Field(min_length=1, max_length=256, json_schema_extra=NOT_BLANK),
    AfterValidator(refuse_control_characters),
    AfterValidator(refuse_blank),
]
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
Config = Annotated[dict[str, Any], AfterValidator(check_config), AfterValidator(masked)]
PositiveNumber = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Body(BaseModel):
    """A request body: types as sent, no unknown field."""

    model_config = ConfigDict(strict=True, extra="forbid")


class RunFields(Body):
    """What describes a run; also the `run.run` of the wire format."""

    project: Name
    task: Name = "default"
    name: Name | None = None
    tags: Tags = []
    config: Config = {}
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
    tags: Tags = []
    remarks: Remarks = ""
    archived: bool = False
    task: Name = ""


class RunChanges(Body):
    """Body of POST /api/v1/runs/changes: the same change of many runs; what is left out stays."""

    ids: Annotated[list[UUID], Field(min_length=1, max_length=MAX_CHANGED, strict=False)]
    archived: bool | None = None
    add_tags: Tags = []
    remove_tags: Tags = []


class Answer(BaseModel):
    """Part of an answer; built by us, so it is not checked again."""

    model_config = ConfigDict(ser_json_inf_nan="null")


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
    """κ of the run, with the number of sweeps and branches behind it; 0: the published spread alone."""

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
    noise_scale: float | None
    global_batch: float | None
    loss: float | None


class RunSummary(Answer):
    """The largest groups of runs."""

    by: str
    groups: list[RunGroupAnswer]


class ChangedRuns(Answer):
    """What became of runs that were to be changed together."""

    changed: list[UUID]
    missing: list[UUID]
    too_many_tags: list[UUID]


class RunPage(Answer):
    """A page of runs."""

    runs: list[RunAnswer]
    next_cursor: str | None
    total: int
