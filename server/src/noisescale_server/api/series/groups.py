"""GET /api/v1/runs/{run_id}/groups: the noise scale per layer."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.api.platform.columns import LayersAnswer, columns_of
from noisescale_server.api.platform.deps import ReadSession, RunId, Step, Text, check_range
from noisescale_server.api.platform.json_response import JsonColumns
from noisescale_server.api.series.noise_scale import estimate_answer
from noisescale_server.services.series import layers
from noisescale_server.services.series.layers import AskedLayers, Layer

router = APIRouter(tags=["noise scale"])

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
async def get_groups(run_id: RunId, query: Annotated[GroupsQuery, Query()], session: ReadSession) -> JsonColumns:
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
