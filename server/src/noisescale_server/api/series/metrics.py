"""GET /api/v1/runs/{run_id}/metrics: evaluation loss, accuracy, score."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.api.platform.columns import JsonColumns, MetricsAnswer, columns_of
from noisescale_server.api.platform.deps import ReadSession, RunId, Step, Text, check_range
from noisescale_server.services.series import metrics
from noisescale_server.services.series.metrics import AskedMetrics, MetricSeries

router = APIRouter(tags=["metrics"])

MAX_LIMIT = 200


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


@router.get("/runs/{run_id}/metrics", response_class=JsonColumns, responses=columns_of(MetricsAnswer))
async def get_metrics(run_id: RunId, query: Annotated[MetricsQuery, Query()], session: ReadSession) -> JsonColumns:
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
