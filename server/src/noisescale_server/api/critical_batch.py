"""GET /api/v1/sweeps/{sweep_id}/critical-batch: S_min, E_min and B_crit for each target, or why not."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.api.deps import ReadSession
from noisescale_server.api.schemas_critical_batch import CriticalBatchAnswer, target_fit
from noisescale_server.api.schemas_sweeps import MAX_TARGETS, Value
from noisescale_server.api.sweeps import SweepId
from noisescale_server.services import critical_batch

router = APIRouter(tags=["sweeps"])


class CriticalBatchQuery(BaseModel):
    """Which targets, and how sure."""

    model_config = ConfigDict(extra="forbid")

    target: Annotated[list[Value], Field(max_length=MAX_TARGETS, description="default: those of the sweep")] = []
    level: Annotated[float, Field(ge=0.5, le=0.999, description="confidence level of the intervals")] = 0.95
    bootstrap: Annotated[bool, Field(description="also draw the seeds again; takes some 0.1 s a target")] = False


@router.get("/sweeps/{sweep_id}/critical-batch")
async def get_critical_batch(
    sweep_id: SweepId, query: Annotated[CriticalBatchQuery, Query()], session: ReadSession
) -> CriticalBatchAnswer:
    """For each target: steps at each batch size, the fit with intervals or the refusal, regimes and the curve."""
    found = await critical_batch.of_sweep(
        session, sweep_id, targets=query.target, level=query.level, with_bootstrap=query.bootstrap
    )
    sweep = found.row.sweep
    return CriticalBatchAnswer(
        sweep_id=sweep.id,
        metric=sweep.metric,
        goal="max" if sweep.goal == "max" else "min",
        unit=sweep.unit,
        level=query.level,
        targets=[target_fit(one) for one in found.targets],
    )
