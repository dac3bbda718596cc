"""GET /api/v1/comparison: noise scales against critical batches over tasks, one's own and published ones."""

import asyncio
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.analysis.sweeps import published as published_sweeps
from noisescale_server.api.comparison.schemas import ComparisonAnswer, comparison_answer
from noisescale_server.api.platform.deps import ReadSession, Text
from noisescale_server.services.comparison import comparison, reference_comparison
from noisescale_server.services.comparison.comparison import Average, Comparisons

router = APIRouter(tags=["comparison"])

MAX_TASKS = 200
MAX_RUNS = 200


class ComparisonQuery(BaseModel):
    """Which tasks, by which average."""

    model_config = ConfigDict(extra="forbid")

    project: Text | None = None
    task: Annotated[list[Text], Field(max_length=MAX_TASKS, description="names; default: all")] = []
    run: Annotated[
        list[UUID], Field(max_length=MAX_RUNS, description="runs whose noise scale is taken, with their tasks")
    ] = []
    average: Annotated[Average, Field(description="which average statistics and order are of")] = "run_average"


@router.get("/comparison")
async def get_comparison(
    request: Request, query: Annotated[ComparisonQuery, Query()], session: ReadSession
) -> ComparisonAnswer:
    """Each task's noise scale and critical batch, how well one predicts the other, and the same as published."""
    known: Comparisons = request.app.state.comparisons
    found = await comparison.compare(
        session, known, project=query.project, tasks=query.task or None, run_ids=query.run, average=query.average
    )
    published = reference_comparison.published(request.app.state.reference_values)
    # the first call of a process fits them all
    sweeps = await asyncio.to_thread(published_sweeps.published_sweeps)
    return comparison_answer(found, published, sweeps)
