"""GET /api/v1/runs/{run_id}/learning-rate: whether the rate is too low, right or too high, now and along the run."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_core.advice.learning_rate.rate_coefficients import Schedule
from noisescale_core.advice.learning_rate.rate_verdict import Word
from noisescale_server.api.platform.deps import PlainReadSession, RunId
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.services import learning_rate
from noisescale_server.services.learning_rate import RateAtStep, RateSeries

router = APIRouter(tags=["recommendation"])


class LearningRateQuery(BaseModel):
    """In how many points."""

    model_config = ConfigDict(extra="forbid")

    points: Annotated[int, Field(ge=1, le=1_000, description="of the series at most")] = 200


class LearningRatePoint(Answer):
    """What was known at a step; octaves are log2(rate / best rate)."""

    step: int
    learning_rate: float | None
    verdict: Word | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    octaves: float | None
    low: float | None
    high: float | None


class PathAnswer(Answer):
    """The path of the parameters that the verdict rests on."""

    start: int
    num_updates: int
    sum_update_sq_norm: float
    update_sq_norm_variance: float
    sq_distance: float
    momentum: float


class LearningRateAnswer(Answer):
    """The verdict, the path that it rests on, and the same along the run."""

    run_id: str
    step: int | None
    optimizer: str | None
    learning_rate: float | None
    verdict: Word | None
    headline: str
    reason: str
    octaves: float | None
    low: float | None
    high: float | None
    factor: float | None
    factor_low: float | None
    factor_high: float | None
    probability: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    push: float | None
    push_low: float | None
    push_high: float | None
    progress: float | None
    schedule: Schedule
    calibration: str | None
    promised_fall: float | None
    promised_fall_low: float | None
    promised_fall_high: float | None
    num_promised_updates: int
    kept_share: float | None
    kept_share_low: float | None
    kept_share_high: float | None
    kept_share_reason: str | None
    path: PathAnswer | None
    points: list[LearningRatePoint]


@router.get("/runs/{run_id}/learning-rate")
async def get_learning_rate(
    run_id: RunId, query: Annotated[LearningRateQuery, Query()], session: PlainReadSession
) -> LearningRateAnswer:
    """Whether the learning rate is too low, right or too high, from the path of the parameters; with odds."""
    return learning_rate_answer(await learning_rate.of_run(session, run_id, max_points=query.points))


def learning_rate_answer(found: RateSeries) -> LearningRateAnswer:
    """The verdict as JSON."""
    now, run = found.verdict, found.run
    said = {name: getattr(now, name) for name in LearningRateAnswer.model_fields.keys() & type(now).__slots__}
    return LearningRateAnswer(
        **said,
        run_id=str(run.id),
        step=found.points[-1].step if found.points else None,
        optimizer=run.optimizer,
        learning_rate=run.latest_lr,
        path=_path_answer(found),
        points=[_point_answer(point) for point in found.points],
    )


def _path_answer(found: RateSeries) -> PathAnswer | None:
    if found.start is None or not found.points:
        return None
    path = found.points[-1].path
    return PathAnswer(
        start=found.start,
        num_updates=int(path.num_updates),
        sum_update_sq_norm=path.sum_sq_norm,
        update_sq_norm_variance=path.variance,
        sq_distance=path.sq_distance,
        momentum=path.momentum,
    )


def _point_answer(point: RateAtStep) -> LearningRatePoint:
    one = point.verdict
    return LearningRatePoint(
        step=point.step,
        learning_rate=point.learning_rate,
        verdict=one.verdict,
        ratio=one.ratio,
        ratio_low=one.ratio_low,
        ratio_high=one.ratio_high,
        octaves=one.octaves,
        low=one.low,
        high=one.high,
    )
