"""GET /api/v1/runs/{run_id}/recommendation: which batch size now, why, how sure, and what it would change."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.api.answers import estimate_answer
from noisescale_server.api.deps import KnownWholeRuns, ReadSession, RunId, Step
from noisescale_server.api.schemas_runs import Answer, LatestNoiseScale
from noisescale_server.services import run_advice
from noisescale_server.services.advice import (
    Caution,
    DecisionWord,
    Interval,
    LearningRateAdvice,
    NowAndThen,
    Predicted,
    Preference,
    Recommendation,
    Waste,
)
from noisescale_server.services.recommendation import KAPPA_LOG10_SD
from noisescale_server.services.run_advice import RunAdvice

Source = Literal["preference", "examples_per_step"]

router = APIRouter(tags=["recommendation"])


class RecommendationQuery(BaseModel):
    """What the reader values, and at which step.

    The ends are left out: they ask for a batch of nothing or of everything.
    """

    model_config = ConfigDict(extra="forbid")

    preference: Annotated[float, Field(ge=0.001, le=0.999, description="0 fewest examples … 1 fewest steps")] = 0.5
    examples_per_step: Annotated[
        float | None,
        Field(ge=1e-6, le=1e15, description="examples one would spend to save a step; overrides preference"),
    ] = None
    to_step: Annotated[Step | None, Field(description="as if the run stood at this step")] = None


class Calibration(Answer):
    """How the noise scale is tied to a critical batch size."""

    state: Literal["uncalibrated"] = "uncalibrated"
    kappa_log10_sd: float = KAPPA_LOG10_SD


class ExchangeRate(Answer):
    """How many examples one would spend to save an optimizer step, and where that number comes from."""

    examples_per_step: float
    source: Source


class RecommendationAnswer(Answer):
    """The advice; null where nothing can be said."""

    run_id: UUID
    step: int | None
    unit: str
    example: str
    units_per_example: float
    noise_scale: LatestNoiseScale
    decision: DecisionWord
    headline: str
    reason: str
    effect: str | None
    current_batch_size: float | None
    recommended_batch_size: int | None
    interval: Interval | None
    statistical_interval: Interval | None
    calibration: Calibration
    exchange_rate: ExchangeRate | None
    preference: float | None
    critical_batch: Interval | None
    learning_rate: LearningRateAdvice | None
    example_efficiency: NowAndThen | None
    step_efficiency: NowAndThen | None
    predicted: Predicted | None
    waste: Waste | None
    warnings: tuple[Caution, ...]
    next_step: str


@router.get("/runs/{run_id}/recommendation")
async def get_recommendation(
    run_id: RunId,
    query: Annotated[RecommendationQuery, Query()],
    session: ReadSession,
    whole_runs: KnownWholeRuns,
) -> RecommendationAnswer:
    """Which batch size to use now, for a reader who values steps and examples as the query says."""
    wish = Preference(query.preference, query.examples_per_step)
    return recommendation_answer(await run_advice.advise(session, whole_runs, run_id, wish, to_step=query.to_step))


def recommendation_answer(advice: RunAdvice) -> RecommendationAnswer:
    """The advice as JSON; see docs/rest.md."""
    found = advice.recommendation
    return RecommendationAnswer(
        run_id=advice.run.id,
        step=advice.step,
        unit=advice.run.unit,
        example=advice.run.example or "example",
        units_per_example=advice.run.units_per_example,
        noise_scale=estimate_answer(advice.so_far.noise_scale, advice.so_far.reason),
        decision=found.decision,
        headline=found.headline,
        reason=found.reason,
        effect=found.effect,
        current_batch_size=found.current_batch_size,
        recommended_batch_size=found.recommended_batch_size,
        interval=found.interval,
        statistical_interval=found.statistical_interval,
        calibration=Calibration(),
        exchange_rate=exchange_rate_answer(found),
        preference=found.preference,
        critical_batch=found.critical_batch,
        learning_rate=found.learning_rate,
        example_efficiency=found.example_efficiency,
        step_efficiency=found.step_efficiency,
        predicted=found.predicted,
        waste=found.waste,
        warnings=found.warnings,
        next_step=found.next_step,
    )


def exchange_rate_answer(found: Recommendation) -> ExchangeRate | None:
    """The price of a step in examples, or null while there is none."""
    if found.exchange_rate is None:
        return None
    source: Source = "preference" if found.preference is not None else "examples_per_step"
    return ExchangeRate(examples_per_step=found.exchange_rate, source=source)
