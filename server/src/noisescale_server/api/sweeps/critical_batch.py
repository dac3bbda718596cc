"""GET /api/v1/sweeps/{sweep_id}/critical-batch and /critical-batches: S_min, E_min and B_crit, or why not."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.api.platform.deps import ReadSession, TwentyIds, read_ids
from noisescale_server.api.sweeps.critical_batch_schemas import CriticalBatchAnswer, SeveralCriticalBatches, target_fit
from noisescale_server.api.sweeps.schemas import MAX_TARGETS, Value
from noisescale_server.api.sweeps.sweeps import SweepId
from noisescale_server.services.sweeps import critical_batch
from noisescale_server.services.sweeps.critical_batch import SweptTargets

router = APIRouter(tags=["sweeps"])

MOST_AT_ONCE = 20
"""Sweeps of one question: a fit that is not kept yet takes its time."""
Level = Annotated[float, Field(ge=0.5, le=0.999, description="confidence level of the intervals")]


class CriticalBatchQuery(BaseModel):
    """Which targets, and how sure."""

    model_config = ConfigDict(extra="forbid")

    target: Annotated[list[Value], Field(max_length=MAX_TARGETS, description="default: those of the sweep")] = []
    level: Level = 0.95
    bootstrap: Annotated[bool, Field(description="also draw the seeds again; takes some 0.1 s a target")] = False


class CriticalBatchesQuery(BaseModel):
    """Of which sweeps, and how sure."""

    model_config = ConfigDict(extra="forbid")

    ids: TwentyIds
    level: Level = 0.95


@router.get("/sweeps/critical-batches")
async def get_critical_batches(
    query: Annotated[CriticalBatchesQuery, Query()], session: ReadSession
) -> SeveralCriticalBatches:
    """Of several sweeps the hardest target alone, for a list of them; ids without a sweep or target are left out."""
    found = await critical_batch.of_sweeps(session, read_ids(query.ids, MOST_AT_ONCE), level=query.level)
    return SeveralCriticalBatches(sweeps=[_answer(one, query.level) for one in found])


@router.get("/sweeps/{sweep_id}/critical-batch")
async def get_critical_batch(
    sweep_id: SweepId, query: Annotated[CriticalBatchQuery, Query()], session: ReadSession
) -> CriticalBatchAnswer:
    """For each target: steps at each batch size, the fit with intervals or the refusal, regimes and the curve."""
    found = await critical_batch.of_sweep(
        session, sweep_id, targets=query.target, level=query.level, with_bootstrap=query.bootstrap
    )
    return _answer(found, query.level)


def _answer(found: SweptTargets, level: float) -> CriticalBatchAnswer:
    sweep = found.row.sweep
    return CriticalBatchAnswer(
        sweep_id=sweep.id,
        metric=sweep.metric,
        goal="max" if sweep.goal == "max" else "min",
        unit=sweep.unit,
        level=level,
        targets=[target_fit(one) for one in found.targets],
    )
