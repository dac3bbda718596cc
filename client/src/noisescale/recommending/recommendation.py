"""A recommendation as a caller of the SDK gets it: every field of the answer, and a short text when printed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from noisescale.recommending import printed
from noisescale.recommending.measured import Measured
from noisescale_core.advice.limited import LimitedBatch
from noisescale_core.advice.parts import (
    Calibration,
    Caution,
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

Source = Literal["server", "job", "nowhere"]

Writer = Callable[[str], str]
"""From a trainer's name to the schedule in its words, or to a sentence why there is none."""

NO_WRITER = "a schedule needs a recommendation first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Which batch size now, why, how sure, and what it would change; print it. None where nothing can be said.

    Batches, the noise scale and intervals of both are in examples.

    Attributes:
        source: "server"; "job", computed here; "nowhere": there is no answer, and `reason` says why.
        note: Why the server did not answer, where it did not.
        decision: "increase", "decrease", "keep" or "insufficient_evidence"; before a run's first step "start".
        headline: The decision in a few words.
        reason: Why, with the noise scale and the interval of the best batch.
        effect: What it would change, cost beside gain.
        next_step: The cheapest thing to be surer.
        next_steps: All of those, with what each costs.
        run_id: Of the run; None before its first step.
        step: Optimizer step that the advice stands at.
        unit: What batches are shown in, plural.
        example: What is sampled independently, in the singular.
        units_per_example: Units in one example.
        noise_scale: What the advice rests on.
        current_batch_size: In use now.
        recommended_batch_size: Inside the limits, a size that can be run.
        rounding_regret: What rounding to it costs, as a share.
        interval: Of the best batch, statistical and model error together.
        statistical_interval: Of the best batch, from the measurement alone.
        exchange_rate: What a step is worth in examples.
        preference: Between fewest examples (0) and fewest steps (1), where one was asked for.
        calibration: How the noise scale is tied to a critical batch size.
        critical_batch: B_crit with its interval.
        learning_rate: To go with the batch.
        rescaling: What else to set with it; None where nothing is known to.
        limited: The batch that all limits allow, before it is rounded.
        schedule: For the rest of the run.
        schedule_missing: What is missing for one.
        predicted: Steps and examples against the present batch.
        predictions: The rest of the plan at the present, the recommended and any asked batch.
        counterfactual: The run so far, had it used the recommended batch.
        parallelism: How many devices the run can use.
        example_efficiency: Share of the best progress an example makes.
        step_efficiency: Share of the best progress a step makes.
        waste: Examples that smaller batches would not have needed.
        warnings: What to know before following the advice.
        missing: What this answer does not hold, and why.
        answer: Everything that was said, by the names of `docs/rest.md`, also what this version knows nothing of.
    """

    reason: str
    source: Source = "nowhere"
    note: str | None = None
    decision: str = "insufficient_evidence"
    headline: str = "No recommendation"
    effect: str | None = None
    next_step: str | None = None
    next_steps: tuple[Surer, ...] = ()
    run_id: str | None = None
    step: int | None = None
    unit: str = "examples"
    example: str = "example"
    units_per_example: float = 1.0
    noise_scale: Measured | None = None
    current_batch_size: float | None = None
    recommended_batch_size: float | None = None
    rounding_regret: float | None = None
    interval: Interval | None = None
    statistical_interval: Interval | None = None
    exchange_rate: ExchangeRate | None = None
    preference: float | None = None
    calibration: Calibration | None = None
    critical_batch: Interval | None = None
    learning_rate: LearningRateAdvice | None = None
    rescaling: tuple[Change, ...] | None = None
    limited: LimitedBatch | None = None
    schedule: Schedule | None = None
    schedule_missing: str | None = None
    predicted: Predicted | None = None
    predictions: Predictions | None = None
    counterfactual: HadWeUsed | None = None
    parallelism: Parallelism | None = None
    example_efficiency: NowAndThen | None = None
    step_efficiency: NowAndThen | None = None
    waste: Waste | None = None
    warnings: tuple[Caution, ...] = ()
    missing: tuple[str, ...] = ()
    answer: Mapping[str, object] = field(default_factory=dict, repr=False)
    writer: Writer | None = field(default=None, repr=False, compare=False)

    def flags(self, trainer: str) -> str:
        """The schedule in a trainer's words; a comment that says why, where there is none.

        Args:
            trainer: "megatron", "torchtitan", "nanogpt" or "huggingface".
        """
        if self.writer is None:
            return f"# no flags for {trainer}: {self.schedule_missing or self.reason or NO_WRITER}\n"
        return self.writer(trainer)

    def __str__(self) -> str:
        return printed.as_text(self)
