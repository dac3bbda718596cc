"""What the answers of `JsonColumns` look like, for OpenAPI: they are written without a model in between.

`tests/server/api/test_columns.py` reads real answers by these.
"""

from typing import Any, Literal
from uuid import UUID

import orjson
from pydantic import ConfigDict, Field
from starlette.responses import JSONResponse

from noisescale_core.advice.parts.parts import LatestNoiseScale
from noisescale_server.api.platform.schemas import Answer

# JSON written by orjson: ten times faster than the standard library for columns of numbers.


class JsonColumns(JSONResponse):
    """A dict of columns as JSON, without a model in between: checking 15,000 numbers of our own would cost 5 ms."""

    def render(self, content: Any) -> bytes:
        """The content as bytes; numbers that are not finite become null."""
        return orjson.dumps(content)


State = Literal["resolved", "tentative", "unresolved"]
Numbers = list[float | None]


class Columns(Answer):
    """Columns of equal length, and nothing beside them."""

    model_config = ConfigDict(extra="forbid")


class EstimateColumns(Columns):
    """The noise scale over the window of each point, with its two terms."""

    value: Numbers
    low: Numbers
    high: Numbers
    state: list[State]
    trace_cov: Numbers
    trace_cov_se: Numbers
    grad_sq_norm: Numbers
    grad_sq_norm_se: Numbers


class SeriesColumns(EstimateColumns):
    """The points of a run, oldest first."""

    x: Numbers
    step: list[int]
    examples: list[int | None]
    wall_time: Numbers
    lr: Numbers
    trace_cov_min: Numbers
    trace_cov_max: Numbers
    grad_sq_norm_min: Numbers
    grad_sq_norm_max: Numbers
    loss: Numbers
    loss_min: Numbers
    loss_max: Numbers
    global_batch: Numbers
    flags: list[int]
    num_updates: list[int]
    reason: list[str | None]
    z: Numbers
    value_min: Numbers
    value_max: Numbers


class SeriesEvent(Answer):
    """A change at a step; `from` and `to` are there for the batch and the learning rate."""

    step: int
    kind: str
    from_: float | None = Field(None, alias="from")
    to: float | None = None


class SeriesAnswer(Columns):
    """The noise scale along a run."""

    run_id: UUID
    kind: str
    unit: str
    units_per_example: float
    x: str
    from_: int | None = Field(alias="from")
    to: int | None
    level: int
    steps_per_block: int
    steps_per_point: int
    window_steps: int
    widened: bool
    num_points: int
    points: SeriesColumns
    latest: LatestNoiseScale
    run_average: LatestNoiseScale
    events: list[SeriesEvent]


class LayerColumns(EstimateColumns):
    """The points of a layer."""

    step: list[int]


class LayerAnswer(Columns):
    """A layer: its estimate over the range, and a short series."""

    name: str
    estimate: LatestNoiseScale
    trace_cov: float | None
    trace_cov_se: float | None
    grad_sq_norm: float | None
    grad_sq_norm_se: float | None
    series: LayerColumns


class LayersAnswer(Columns):
    """A page of the layers of a run, in network order."""

    groups: list[LayerAnswer]
    from_: int | None = Field(alias="from")
    to: int | None
    next_cursor: str | None


class MetricColumns(Columns):
    """A metric: the last value of each point, with the extremes."""

    name: str
    step: list[int]
    value: Numbers
    min: Numbers
    max: Numbers
    wall_time: Numbers


class MetricsAnswer(Columns):
    """A page of the names that a run has logged, and the metrics of these names."""

    names: list[str]
    metrics: list[MetricColumns]
    next_cursor: str | None


class SparklineColumns(Columns):
    """A few points of a run; the last three with `details` alone."""

    step: list[int]
    value: Numbers
    low: Numbers
    high: Numbers
    global_batch: Numbers
    state: list[str] = Field(default_factory=list)
    wall_time: Numbers = Field(default_factory=list)
    events: list[SeriesEvent] = Field(default_factory=list)


class SparklinesAnswer(Columns):
    """By the run's id; runs without steps are left out."""

    runs: dict[str, SparklineColumns]


class AlignedColumns(Columns):
    """The points of one run of a comparison."""

    x: Numbers
    step: list[int]
    examples: list[int | None]
    wall_time: Numbers
    value: Numbers
    low: Numbers
    high: Numbers
    state: list[State]
    reason: list[str | None]
    loss: Numbers
    loss_min: Numbers
    loss_max: Numbers
    global_batch: Numbers
    lr: Numbers
    example_efficiency: Numbers
    example_efficiency_low: Numbers
    example_efficiency_high: Numbers


class AlignedRunAnswer(Columns):
    """One run of a comparison."""

    run_id: UUID
    unit: str
    units_per_example: float
    window_steps: int
    points: AlignedColumns


class MeanRatio(Columns):
    """A mean with its interval."""

    value: float
    low: float
    high: float
    level: float


class RatioAnswer(Columns):
    """The noise scale of a run over that of the first one."""

    run_id: UUID
    to_run_id: UUID
    x: list[float]
    value: list[float]
    low: list[float]
    high: list[float]
    is_resolved: list[bool]
    mean: MeanRatio | None


class ComparedRunsAnswer(Columns):
    """Runs side by side along one axis."""

    x: str
    runs: list[AlignedRunAnswer]
    missing: list[UUID]
    ratios: list[RatioAnswer]


def columns_of(model: type[Columns]) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says about an answer that has this form."""
    return {200: {"model": model}}
