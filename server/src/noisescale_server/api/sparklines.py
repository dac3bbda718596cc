"""GET /api/v1/runs/sparklines: a few points of each of many runs."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.api.deps import UUIDS, ReadSession
from noisescale_server.api.json_response import JsonColumns
from noisescale_server.api.runs import read_ids
from noisescale_server.api.schemas_columns import SparklinesAnswer, columns_of
from noisescale_server.services import sparklines

router = APIRouter(tags=["runs"])


class SparklinesQuery(BaseModel):
    """Of which runs, in how many points."""

    model_config = ConfigDict(extra="forbid")

    ids: Annotated[
        str,
        Field(min_length=1, max_length=10_000, description="UUIDs, separated by commas", json_schema_extra=UUIDS),
    ]
    points: Annotated[int, Field(ge=1, le=100)] = 28


@router.get("/runs/sparklines", response_class=JsonColumns, responses=columns_of(SparklinesAnswer))
async def get_sparklines(query: Annotated[SparklinesQuery, Query()], session: ReadSession) -> JsonColumns:
    """By run, columns of equal length as of /runs/{run_id}/noise-scale; runs without steps are left out."""
    found = await sparklines.of_runs(session, read_ids(query.ids), max_points=query.points)
    return JsonColumns({"runs": {str(run_id): asdict(one) for run_id, one in found.items()}})
