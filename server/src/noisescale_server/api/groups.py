"""GET /api/v1/runs/{run_id}/groups: the noise scale per layer."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.api.deps import ReadSession, RunId, Step, check_range
from noisescale_server.api.json_response import JsonColumns
from noisescale_server.api.noise_scale import estimate_answer
from noisescale_server.api.schemas_columns import LayersAnswer, columns_of
from noisescale_server.services import layers
from noisescale_server.services.layers import Layer

router = APIRouter(tags=["noise scale"])

TERMS = ("trace_cov", "trace_cov_se", "grad_sq_norm", "grad_sq_norm_se")


class GroupsQuery(BaseModel):
    """Which steps, in how many points a layer."""

    model_config = ConfigDict(extra="forbid")

    from_: Annotated[Step | None, Field(alias="from")] = None
    to: Step | None = None
    points: Annotated[int, Field(ge=1, le=500)] = 60


@router.get("/runs/{run_id}/groups", response_class=JsonColumns, responses=columns_of(LayersAnswer))
async def get_groups(run_id: RunId, query: Annotated[GroupsQuery, Query()], session: ReadSession) -> JsonColumns:
    """Every layer in network order: its estimate over the range, and a short series; see docs/rest.md."""
    check_range("from", query.from_, "to", query.to)
    found = await layers.of_run(session, run_id, low=query.from_, high=query.to, max_points=query.points)
    return JsonColumns({"groups": [layer_answer(layer) for layer in found.layers], "from": found.low, "to": found.high})


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
