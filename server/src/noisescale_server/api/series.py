"""GET /api/v1/runs/{run_id}/noise-scale: the series of a run, for the whole or for one layer."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_core.advice.parts.flags import reason_without_estimate
from noisescale_core.advice.parts.parts import LatestNoiseScale
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate
from noisescale_server.analysis.series.estimates import Estimates
from noisescale_server.api.platform.columns import (
    JsonColumns,
    LayersAnswer,
    MetricsAnswer,
    SeriesAnswer,
    SparklinesAnswer,
    columns_of,
)
from noisescale_server.api.platform.deps import (
    UUIDS,
    KnownWholeRuns,
    PlainReadSession,
    RunId,
    Step,
    Text,
    check_range,
    read_ids,
)
from noisescale_server.api.platform.schemas import Name
from noisescale_server.services.platform.errors import refuse
from noisescale_server.services.series import layer_series, layers, metrics, series, sparklines
from noisescale_server.services.series.events import Event
from noisescale_server.services.series.layers import AskedLayers, Layer
from noisescale_server.services.series.metrics import AskedMetrics, MetricSeries
from noisescale_server.services.series.series import Series
from noisescale_server.services.series.so_far import reason_of_rows
from noisescale_server.storage.runs.streams import SIMPLE, Kind
from noisescale_server.storage.series.series import PointColumns

router = APIRouter(tags=["noise scale"])

XAxis = Literal["step", "units", "examples", "wall_time", "loss"]


class SeriesQuery(BaseModel):
    """Which steps, in how many points, over which window."""

    model_config = ConfigDict(extra="forbid")

    from_: Annotated[Step | None, Field(alias="from")] = None
    to: Step | None = None
    points: Annotated[int, Field(ge=1, le=1_000)] = 500
    window: Annotated[int, Field(ge=1, le=2**53 - 1, description="steps")] | None = None
    group: Annotated[Name | None, Field(description="a layer")] = None
    kind: Kind = SIMPLE
    x: XAxis = "step"


@router.get("/runs/{run_id}/noise-scale", response_class=JsonColumns, responses=columns_of(SeriesAnswer))
async def get_noise_scale(
    run_id: RunId, query: Annotated[SeriesQuery, Query()], session: PlainReadSession, whole_runs: KnownWholeRuns
) -> JsonColumns:
    """The noise scale along the run: columns of equal length, oldest first; see docs/rest.md."""
    check_range("from", query.from_, "to", query.to)
    if query.group is not None:
        if query.kind != SIMPLE:
            raise refuse("kind", "must be simple for a layer: leave out kind or group", query.kind)
        read = partial(layer_series.of_layer, session, run_id, query.group)
    else:
        read = partial(series.of_run, session, whole_runs, run_id, kind=query.kind)
    found = await read(low=query.from_, high=query.to, max_points=query.points, window=query.window)
    return JsonColumns(series_answer(found, query.x))


def series_answer(found: Series, x: XAxis) -> dict[str, Any]:
    """The whole answer."""
    return {
        "run_id": str(found.run.id),
        "kind": found.kind,
        "unit": found.run.unit,
        "units_per_example": found.run.units_per_example,
        "x": x,
        "from": found.low,
        "to": found.high,
        "level": found.how.level,
        "steps_per_block": found.how.steps_per_block,
        "steps_per_point": found.how.steps_per_point,
        "window_steps": found.how.window_steps,
        "widened": found.is_widened,
        "num_points": len(found.points),
        "points": point_columns(found, x),
        "latest": estimate_answer(found.latest, reason=reason_of_newest(found), step=found.latest_step),
        "run_average": estimate_answer(found.run_average, reason=reason_of_newest(found)),
        "events": event_answers(found.events),
    }


def event_answers(events: Sequence[Event]) -> list[dict[str, Any]]:
    """What happened, with both ends of what changed."""
    return [
        {"step": event.step, "kind": event.kind}
        | ({} if event.before is None else {"from": event.before, "to": event.after})
        for event in events
    ]


def point_columns(found: Series, x: XAxis) -> dict[str, Sequence[Any]]:
    """The points, column by column."""
    points = found.points
    columns = own_columns(points) | window_columns(points, found.estimates)
    return {"x": in_units(columns["examples"], found.run.units_per_example) if x == "units" else columns[x]} | columns


def in_units(examples: Sequence[int | None], units_per_example: float) -> list[float | None]:
    """Cumulative examples in the task's own unit."""
    return [None if count is None else count * units_per_example for count in examples]


def own_columns(points: PointColumns) -> dict[str, Sequence[Any]]:
    """What the steps of each point hold."""
    return {
        "step": points.step_last,
        "examples": points.examples_last,
        "wall_time": points.wall_time_last,
        "lr": points.lr_last,
        "trace_cov_min": points.trace_cov_min,
        "trace_cov_max": points.trace_cov_max,
        "grad_sq_norm_min": points.grad_sq_norm_min,
        "grad_sq_norm_max": points.grad_sq_norm_max,
        "loss": means(points.sum_loss, points.num_loss),
        "loss_min": points.loss_min,
        "loss_max": points.loss_max,
        "global_batch": means(points.sum_global_batch, points.num_global_batch),
        "flags": points.flags,
    }


def window_columns(points: PointColumns, estimates: Estimates) -> dict[str, Sequence[Any]]:
    """The estimates over the points' windows; none where a point's own steps hold no estimate."""
    names = ("state", "reason", *ESTIMATE_COLUMNS)
    shown = {name: list(estimates.columns[name]) for name in names}
    for place, num_updates in enumerate(points.num_updates):
        if not num_updates:
            reason = reason_without_estimate(points.flags[place]) or "no_estimates"
            nothing = {"state": "unresolved", "reason": reason}
            for name, column in shown.items():
                column[place] = nothing.get(name)
    return {
        "num_updates": estimates.columns["num_updates"],
        **shown,
        "value_min": over_signal(points.trace_cov_min, shown),
        "value_max": over_signal(points.trace_cov_max, shown),
    }


ESTIMATE_COLUMNS = ("value", "low", "high", "z", "trace_cov", "trace_cov_se", "grad_sq_norm", "grad_sq_norm_se")


def over_signal(trace_cov: Sequence[float | None], shown: Mapping[str, Sequence[Any]]) -> list[float | None]:
    """Noise of single records, tr Σ, over the |G|² of the point's window; None where that has no value.

    |G|² of a single record says nothing, so the envelope of the noise scale is that of its noise.
    """
    return [
        noise / signal if value is not None and signal and noise is not None else None
        for noise, value, signal in zip(trace_cov, shown["value"], shown["grad_sq_norm"], strict=True)
    ]


def reason_of_newest(found: Series) -> str | None:
    """Why the newest rows hold no estimate; of another kind than simple, those of the newest point shown."""
    if found.kind == SIMPLE:
        return reason_of_rows(found.run)
    return reason_without_estimate(found.points.flags[-1]) if found.points else None


def estimate_answer(one: NoiseScaleEstimate, *, reason: str | None = None, step: int | None = None) -> LatestNoiseScale:
    """An estimate as in every answer; `reason` says more than that there are no estimates."""
    return LatestNoiseScale.of(one, (reason or one.reason) if one.reason == "no_estimates" else one.reason, step)


def means(sums: Sequence[float], counts: Sequence[int]) -> list[float | None]:
    """Mean of each point; None where nothing was counted."""
    return [total / count if count else None for total, count in zip(sums, counts, strict=True)]


# GET /api/v1/runs/{run_id}/groups: the noise scale per layer.


MAX_LIMIT = 200
TERMS = ("trace_cov", "trace_cov_se", "grad_sq_norm", "grad_sq_norm_se")


class GroupsQuery(BaseModel):
    """Which layers and steps, in how many points a layer."""

    model_config = ConfigDict(extra="forbid")

    from_: Annotated[Step | None, Field(alias="from")] = None
    to: Step | None = None
    points: Annotated[int, Field(ge=1, le=500)] = 60
    cursor: Annotated[Text | None, Field(description="`next_cursor` of the page before")] = None
    limit: Annotated[
        int, Field(ge=1, le=MAX_LIMIT, description="layers; fewer where these have over 50,000 points")
    ] = MAX_LIMIT


@router.get("/runs/{run_id}/groups", response_class=JsonColumns, responses=columns_of(LayersAnswer))
async def get_groups(run_id: RunId, query: Annotated[GroupsQuery, Query()], session: PlainReadSession) -> JsonColumns:
    """A page of the layers in network order: each with its estimate over the range and a short series."""
    check_range("from", query.from_, "to", query.to)
    asked = AskedLayers(
        low=query.from_, high=query.to, max_points=query.points, max_layers=query.limit, after=query.cursor
    )
    found = await layers.of_run(session, run_id, asked)
    shown = [layer_answer(layer) for layer in found.layers]
    return JsonColumns({"groups": shown, "from": found.low, "to": found.high, "next_cursor": found.next_name})


def layer_answer(layer: Layer) -> dict[str, Any]:
    """One layer."""
    return {
        "name": layer.name,
        "estimate": estimate_answer(layer.whole),
        **{name: getattr(layer.whole, name) for name in TERMS},
        "series": {
            "step": layer.steps,
            **{
                name: [getattr(one, name) for one in layer.estimates]
                for name in ("value", "low", "high", "state", *TERMS)
            },
        },
    }


# GET /api/v1/runs/{run_id}/metrics: evaluation loss, accuracy, score.

metrics_router = APIRouter(tags=["metrics"])


class MetricsQuery(BaseModel):
    """Which metric and steps, in how many points."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[Text | None, Field(description="default: all")] = None
    cursor: Annotated[Text | None, Field(description="`next_cursor` of the page before")] = None
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT, description="names; fewer where these have over 50,000 points")] = (
        MAX_LIMIT
    )
    from_: Annotated[Step | None, Field(alias="from")] = None
    to: Step | None = None
    points: Annotated[int, Field(ge=1, le=1_000)] = 500


@metrics_router.get("/runs/{run_id}/metrics", response_class=JsonColumns, responses=columns_of(MetricsAnswer))
async def get_metrics(run_id: RunId, query: Annotated[MetricsQuery, Query()], session: PlainReadSession) -> JsonColumns:
    """A page of the names logged, and per metric the last value of each point with the extremes; see docs/rest.md."""
    check_range("from", query.from_, "to", query.to)
    asked = AskedMetrics(
        name=query.name,
        after=query.cursor,
        max_names=query.limit,
        low=query.from_,
        high=query.to,
        max_points=query.points,
    )
    found = await metrics.of_run(session, run_id, asked)
    series = [metric_answer(one) for one in found.metrics]
    return JsonColumns({"names": found.names, "metrics": series, "next_cursor": found.next_name})


def metric_answer(one: MetricSeries) -> dict[str, Any]:
    """One metric, column by column."""
    return {
        "name": one.name,
        "step": one.step,
        "value": one.value,
        "min": one.lowest,
        "max": one.highest,
        "wall_time": one.wall_time,
    }


# GET /api/v1/runs/sparklines: a few points of each of many runs.

sparklines_router = APIRouter(tags=["runs"])

COLUMNS = ("step", "value", "low", "high", "global_batch")
DETAILS = ("state", "wall_time")


class SparklinesQuery(BaseModel):
    """Of which runs, in how many points."""

    model_config = ConfigDict(extra="forbid")

    ids: Annotated[
        str,
        Field(min_length=1, max_length=10_000, description="UUIDs, separated by commas", json_schema_extra=UUIDS),
    ]
    points: Annotated[int, Field(ge=1, le=100)] = 28
    details: Annotated[bool, Field(description="with states, times and events")] = False


@sparklines_router.get("/runs/sparklines", response_class=JsonColumns, responses=columns_of(SparklinesAnswer))
async def get_sparklines(query: Annotated[SparklinesQuery, Query()], session: PlainReadSession) -> JsonColumns:
    """By run, columns of equal length as of /runs/{run_id}/noise-scale; runs without steps are left out."""
    found = await sparklines.of_runs(session, read_ids(query.ids), max_points=query.points)
    names = COLUMNS + DETAILS if query.details else COLUMNS
    answers = {str(run_id): {name: getattr(one, name) for name in names} for run_id, one in found.items()}
    if query.details:
        for run_id, one in found.items():
            answers[str(run_id)]["events"] = event_answers(one.events)
    return JsonColumns({"runs": answers})
