"""GET /api/v1/runs/sparklines: a few points of each of many runs."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.api.platform.columns import JsonColumns, SparklinesAnswer, columns_of
from noisescale_server.api.platform.deps import UUIDS, ReadSession, read_ids
from noisescale_server.api.series.noise_scale import event_answers
from noisescale_server.services.series import sparklines

router = APIRouter(tags=["runs"])

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


@router.get("/runs/sparklines", response_class=JsonColumns, responses=columns_of(SparklinesAnswer))
async def get_sparklines(query: Annotated[SparklinesQuery, Query()], session: ReadSession) -> JsonColumns:
    """By run, columns of equal length as of /runs/{run_id}/noise-scale; runs without steps are left out."""
    found = await sparklines.of_runs(session, read_ids(query.ids), max_points=query.points)
    names = COLUMNS + DETAILS if query.details else COLUMNS
    answers = {str(run_id): {name: getattr(one, name) for name in names} for run_id, one in found.items()}
    if query.details:
        for run_id, one in found.items():
            answers[str(run_id)]["events"] = event_answers(one.events)
    return JsonColumns({"runs": answers})
