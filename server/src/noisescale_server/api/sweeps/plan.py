"""GET /api/v1/sweeps/{sweep_id}/plan: which batch sizes and learning rates next, and what they cost."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.analysis.sweeps.plan import SweepPlan
from noisescale_server.api.platform.deps import ReadSession
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.api.sweeps.schemas import Value
from noisescale_server.api.sweeps.sweeps import SweepId
from noisescale_server.services.sweeps import plan as sweep_plan

router = APIRouter(tags=["sweeps"])


class SweepPlanQuery(BaseModel):
    """For which target, and how narrow an interval."""

    model_config = ConfigDict(extra="forbid")

    target: Annotated[Value | None, Field(description="default: the hardest of the sweep")] = None
    ratio: Annotated[float, Field(ge=1.05, le=100, description="wanted upper over lower end of B_crit")] = 1.5
    level: Annotated[float, Field(ge=0.5, le=0.999, description="confidence level of that interval")] = 0.95


class SweepPlanAnswer(Answer):
    """What to run next."""

    sweep_id: UUID
    unit: str
    level: float
    plan: SweepPlan


@router.get("/sweeps/{sweep_id}/plan")
async def get_sweep_plan(
    sweep_id: SweepId, query: Annotated[SweepPlanQuery, Query()], session: ReadSession
) -> SweepPlanAnswer:
    """Runs that narrow B_crit's interval most for what they cost, or what a refused sweep needs."""
    row, found = await sweep_plan.of_sweep(
        session, sweep_id, target=query.target, wanted_ratio=query.ratio, level=query.level
    )
    return SweepPlanAnswer(sweep_id=sweep_id, unit=row.sweep.unit, level=query.level, plan=found)
