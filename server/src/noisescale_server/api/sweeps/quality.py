"""GET /api/v1/sweeps/{sweep_id}/quality: whether larger batches end at a worse metric."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.analysis.sweeps.large_batch_quality import Quality
from noisescale_server.api.platform.deps import ReadSession
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.api.sweeps.sweeps import SweepId
from noisescale_server.services.sweeps import large_batch_quality
from noisescale_server.services.sweeps.sweeps import Goal

router = APIRouter(tags=["sweeps"])


class SweepQualityQuery(BaseModel):
    """How sure."""

    model_config = ConfigDict(extra="forbid")

    level: Annotated[float, Field(ge=0.5, le=0.999, description="confidence level of the differences")] = 0.95


class SweepQualityAnswer(Answer):
    """The metric against the batch size under three budgets; empty for fewer than two batch sizes."""

    sweep_id: UUID
    metric: str | None
    goal: Goal
    level: float
    comparisons: tuple[Quality, ...]


@router.get("/sweeps/{sweep_id}/quality")
async def get_sweep_quality(
    sweep_id: SweepId, query: Annotated[SweepQualityQuery, Query()], session: ReadSession
) -> SweepQualityAnswer:
    """At equal steps, at equal examples and given time: the metric of each batch size, against the smallest one's."""
    row, found = await large_batch_quality.of_sweep(session, sweep_id, level=query.level)
    return SweepQualityAnswer(
        sweep_id=row.sweep.id,
        metric=row.sweep.metric,
        goal="max" if row.sweep.goal == "max" else "min",
        level=query.level,
        comparisons=found,
    )
