"""GET /api/v1/runs/{run_id}/recommendation: which batch size now, why, how sure, and what it would change."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from noisescale.theory.advice.parts import (
    Calibration,
    Caution,
    DecisionWord,
    ExchangeRate,
    Interval,
    LearningRateAdvice,
    NowAndThen,
    Predicted,
    Preference,
    Waste,
)
from noisescale.theory.advice.plan import Constraints, Schedule
from noisescale.theory.advice.trainer_flags import Trainer, as_flags
from noisescale.theory.change import Change
from noisescale_server.api.answers import estimate_answer
from noisescale_server.api.deps import KnownWholeRuns, ReadSession, RunId, Step
from noisescale_server.api.schemas_runs import Answer, LatestNoiseScale
from noisescale_server.services import run_advice
from noisescale_server.services.errors import refuse
from noisescale_server.services.run_advice import RunAdvice

router = APIRouter(tags=["recommendation"])


class RecommendationQuery(BaseModel):
    """What the reader values, and at which step.

    The ends are left out: they ask for a batch of nothing or of everything.
    """

    model_config = ConfigDict(extra="forbid")

    preference: Annotated[float | None, Field(ge=0.001, le=0.999, description="0 fewest examples … 1 fewest steps")] = (
        None
    )
    examples_per_step: Annotated[
        float | None,
        Field(ge=1e-6, le=1e15, description="examples one would spend to save a step; overrides preference"),
    ] = None
    to_step: Annotated[Step | None, Field(description="as if the run stood at this step")] = None
    max_steps: Annotated[float | None, Field(gt=0, le=1e15, description="steps that may still be taken")] = None
    max_examples: Annotated[float | None, Field(gt=0, le=1e18, description="examples that may still be used")] = None
    examples_per_device: Annotated[int | None, Field(ge=1, le=2**40, description="largest micro-batch that fits")] = (
        None
    )
    num_devices: Annotated[int | None, Field(ge=1, le=2**24, description="data-parallel devices")] = None
    max_micro_batches: Annotated[int | None, Field(ge=1, le=2**24, description="accumulated in a step at most")] = None
    format: Annotated[
        Literal["json"] | Trainer, Field(description="json, or the schedule as plain text for a trainer")
    ] = "json"

    @property
    def constraints(self) -> Constraints:
        """What limits the rest of the run."""
        return Constraints(
            max_steps=self.max_steps,
            max_examples=self.max_examples,
            examples_per_device=self.examples_per_device,
            num_devices=self.num_devices,
            max_micro_batches=self.max_micro_batches,
        )


class LimitedBatch(Answer):
    """The best batch that all limits allow; null where they exclude each other, and the text says what is possible."""

    batch_size: float | None
    binding: tuple[str, ...]
    text: str


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
    rescaling: tuple[Change, ...] | None
    limited: LimitedBatch | None
    schedule: Schedule | None
    schedule_missing: str | None


@router.get("/runs/{run_id}/recommendation", response_model=RecommendationAnswer)
async def get_recommendation(
    run_id: RunId,
    query: Annotated[RecommendationQuery, Query()],
    session: ReadSession,
    whole_runs: KnownWholeRuns,
) -> RecommendationAnswer | PlainTextResponse:
    """Which batch size to use now and for the rest, for a reader who values steps and examples as the query says."""
    wish = Preference(query.preference, query.examples_per_step)
    advice = await run_advice.advise(session, whole_runs, run_id, wish, to_step=query.to_step, given=query.constraints)
    if query.format == "json":
        return recommendation_answer(advice)
    return PlainTextResponse(flags_answer(advice, query.format, query.constraints))


def flags_answer(advice: RunAdvice, trainer: Trainer, given: Constraints) -> str:
    """The schedule as a trainer takes it.

    Raises:
        InvalidInput: Where there is no schedule, with what is missing.
    """
    found, batch_now = advice.plan.schedule, advice.so_far.batch_size
    if found is None or batch_now is None:
        raise refuse("format", f"there is no schedule to write: {advice.plan.missing}", trainer)
    return as_flags(found, trainer, given, batch_now=batch_now, units_per_example=advice.run.units_per_example)


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
        calibration=found.calibration,
        exchange_rate=found.exchange_rate,
        preference=found.preference,
        critical_batch=found.critical_batch,
        learning_rate=found.learning_rate,
        example_efficiency=found.example_efficiency,
        step_efficiency=found.step_efficiency,
        predicted=found.predicted,
        waste=found.waste,
        warnings=found.warnings,
        next_step=found.next_step,
        rescaling=None if advice.rescaling is None else advice.rescaling.changes,
        limited=limited_answer(advice),
        schedule=advice.plan.schedule,
        schedule_missing=advice.plan.missing,
    )


def limited_answer(advice: RunAdvice) -> LimitedBatch | None:
    """The batch inside the limits, or null where nothing can be said."""
    choice = advice.plan.choice
    if choice is None:
        return None
    return LimitedBatch(
        batch_size=choice.batch, binding=tuple(limit.kind.value for limit in choice.binding), text=choice.text
    )
