"""The whole advice, as `GET …/recommendation` and `run.recommendation()` give it."""

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Which batch size to use, why, how sure, and what it would change; None where nothing can be said.

    Attributes:
        decision: What to do.
        headline: The same in a few words.
        reason: Why, in one sentence.
        effect: What following it would change, or what is possible where limits exclude each other.
        current_batch_size: In examples.
        recommended_batch_size: Inside the limits, a whole batch that can be run.
        rounding_regret: What rounding to it costs, as a share.
        interval: Of the best batch at the price, by both errors, without limits.
        statistical_interval: The same by the measurement's error alone.
        calibration: What is known of κ.
        exchange_rate: What a step is worth.
        preference: As it was said; 0.5 where nothing was; None where the price was said otherwise.
        critical_batch: B_crit = κ × noise scale.
        learning_rate: That goes with the recommended batch.
        example_efficiency: φ / (B + φ) now and then.
        step_efficiency: B / (B + φ) now and then.
        predicted: Steps and examples to the same loss, relative to now.
        waste: Of the run so far.
        warnings: What to know before following it.
        next_step: The next cheapest thing that would make it surer.
        next_steps: All of those, with what each costs.
        limited: The best batch inside the limits, before rounding.
        predictions: The rest of the plan at several batches.
        counterfactual: The run so far at the recommended batch.
        parallelism: How many devices the run can use.
        rescaling: What to set with the recommended batch.
        schedule: For the rest of the run.
        schedule_missing: Why there is none.
    """

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
