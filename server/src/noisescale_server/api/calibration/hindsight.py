"""GET /api/v1/hindsight: how often was the advice right here?"""

from dataclasses import asdict

from fastapi import APIRouter

from noisescale_server.api.platform.deps import ReadSession, Text
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.services.calibration import hindsight

router = APIRouter(tags=["recommendation"])


class BinAnswer(Answer):
    """Changes whose odds were said alike: what was said and what came true, with a 95 % interval."""

    low: float
    high: float
    num_answers: int
    said: float
    came_true: float
    came_true_low: float
    came_true_high: float


class ShareAnswer(Answer):
    """What was said at one share of the plan: decided and right as shares, median costs over the best batch."""

    share: float
    num_answers: int
    decided: float
    right: float | None
    regret: float
    regret_kept: float
    regret_of_price: float


class HindsightAnswer(Answer):
    """Stated odds against what came true, over runs of sweeps, at prices from 1/16 to 16 critical batches."""

    num_runs: int
    bins: list[BinAnswer]
    records: list[ShareAnswer]


@router.get("/hindsight")
async def get_hindsight(session: ReadSession, project: Text | None = None) -> HindsightAnswer:
    """What the advice of then was worth, by what sweeps say now: the newest 50 runs of sweeps that were fitted."""
    found = await hindsight.of_project(session, project)
    return HindsightAnswer.model_validate(asdict(found))
