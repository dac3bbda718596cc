"""GET /api/v1/published-sweeps: MLPerf's reference points and language models' sweeps, fitted as one's own are."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict

from noisescale_server.analysis.sweeps import published as published_sweeps
from noisescale_server.analysis.sweeps.fitting.refusal import Refusal
from noisescale_server.analysis.sweeps.published import (
    LICENCE,
    SOURCE,
    PublishedModelBatch,
    PublishedPoint,
    PublishedSweep,
)
from noisescale_server.analysis.sweeps.turning.detection import FEWEST_BATCH_SIZES
from noisescale_server.api.platform.deps import Text
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.api.sweeps.critical_batch import FitAnswer, fit_answer

router = APIRouter(tags=["sweeps"])


class PublishedSweepQuery(BaseModel):
    """Which workloads."""

    model_config = ConfigDict(extra="forbid")

    workload: Text | None = None


class PublishedSweepAnswer(Answer):
    """One workload: a fit, or a refusal.

    Data to the target, `min_steps` and `min_examples` are in `unit`, and steps of a language model in steps.
    `has_room_for_turn` says whether there are batch sizes enough to look for a rise at small ones.
    """

    suite: str
    workload: str
    version: str
    source: str
    unit: str
    tokens_per_example: int | None
    points: tuple[PublishedPoint, ...]
    fit: FitAnswer | None
    refusal: Refusal | None
    has_room_for_turn: bool


class PublishedSweepList(Answer):
    """Published sweeps, and critical batches of language models without their sweeps.

    `source` and `licence` are MLPerf's; each sweep has its own source.
    """

    sweeps: list[PublishedSweepAnswer]
    critical_batches: tuple[PublishedModelBatch, ...]
    total: int
    source: str = SOURCE
    licence: str = LICENCE


@router.get("/published-sweeps")
async def list_published_sweeps(query: Annotated[PublishedSweepQuery, Query()]) -> PublishedSweepList:
    """All workloads, or those of one name, in any case."""
    # the first call of a process fits them all
    known = await asyncio.to_thread(published_sweeps.published_sweeps)
    wanted = None if query.workload is None else query.workload.casefold()
    found = [_answer(one) for one in known if wanted in (None, one.workload.name.casefold())]
    batches = published_sweeps.published_critical_batches()
    return PublishedSweepList(sweeps=found, critical_batches=batches, total=len(found))


def _answer(one: PublishedSweep) -> PublishedSweepAnswer:
    return PublishedSweepAnswer(
        suite=one.workload.suite,
        workload=one.workload.name,
        version=one.workload.version,
        source=one.workload.source,
        unit=one.workload.unit,
        tokens_per_example=one.workload.tokens_per_example,
        points=one.workload.points,
        fit=fit_answer(one.outcome),
        refusal=one.outcome if isinstance(one.outcome, Refusal) else None,
        has_room_for_turn=len(one.workload.points) >= FEWEST_BATCH_SIZES,
    )
