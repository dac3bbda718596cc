"""The answer of a recommendation as JSON: the run and its noise scale, then the advice, field by field."""

from uuid import UUID

from noisescale_core.advice.limited import LimitedBatch
from noisescale_core.advice.parts import (
    Calibration,
    Caution,
    DecisionWord,
    ExchangeRate,
    Interval,
    LearningRateAdvice,
    NowAndThen,
    Predicted,
    Waste,
)
from noisescale_core.advice.plan import Schedule
from noisescale_core.advice.predictions import HadWeUsed, Parallelism, Predictions
from noisescale_core.advice.surer import Surer
from noisescale_core.theory.change import Change
from noisescale_server.api.critical_by_definition import CriticalByDefinition
from noisescale_server.api.schemas_runs import Answer, LatestNoiseScale


class RecommendationAnswer(Answer):
    """The advice; null where nothing can be said. What each field means: `noisescale_core.advice.answer`."""

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
    rounding_regret: float | None
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
    next_steps: tuple[Surer, ...]
    limited: LimitedBatch | None
    predictions: Predictions | None
    counterfactual: HadWeUsed | None
    parallelism: Parallelism | None
    rescaling: tuple[Change, ...] | None
    schedule: Schedule | None
    schedule_missing: str | None
    critical_batch_by_definition: CriticalByDefinition | None = None


class SeveralRecommendations(Answer):
    """The recommendations of several runs, in the order of their ids."""

    recommendations: list[RecommendationAnswer]
