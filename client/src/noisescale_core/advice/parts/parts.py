"""What a recommendation is made from, and what it is made of."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from noisescale_core.advice.parts import reasons
from noisescale_core.estimators.divergence import Divergence
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate

if TYPE_CHECKING:
    from noisescale_core.advice.parts.known_noise_scale import KnownNoiseScale
    from noisescale_core.estimators.belief import Belief

Share = Callable[[float, float], float]
"""An efficiency: (noise scale, batch size), both in examples → share of the best possible progress."""

RateSource = Literal["preference", "examples_per_step", "usd_per_hour_sooner", "fixed_hardware"]

DecisionWord = Literal[
    "increase", "decrease", "keep", "probably_increase", "probably_decrease", "keep_for_now", "insufficient_evidence"
]
"""Raise or lower where it is cheaper with a probability of 80 % or more, probably from 60 % on; keep where the present
batch is expected to cost little more than the best one, for now where none is known to be better."""

AnyDecision = Literal["start", DecisionWord]
"""Before a run's first step there is a batch to start with."""

Sureness = Literal["sure", "likely", "probably"]
"""That a change is cheaper: 95 % or more, 80 % or more, 60 % or more."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float
    level: float = 0.95


@dataclass(frozen=True, slots=True)
class SpentPoint:
    """A stretch of the run.

    Attributes:
        examples: Examples spent in it.
        batch_size: Its mean global batch.
        value: Its noise scale in examples; None while unresolved.
        low: Lower end of its interval.
        high: Upper end.
        num_steps: Optimizer steps; None where they were not counted.
        seconds: Wall time, None where it is not known or holds a break between jobs.
        learning_rate: At its end.
        is_resolved: The noise scale is resolved, and not tentative.
    """

    examples: float
    batch_size: float | None
    value: float | None
    low: float | None
    high: float | None
    num_steps: float | None = None
    seconds: float | None = None
    learning_rate: float | None = None
    is_resolved: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetting:
    """What a run is made with: a plan, prices and step times, of a task also before its next run's first step.

    Attributes:
        batch_size: Global batch now, or of the next run, in examples.
        optimizer: Class name of the optimizer.
        momentum: Share of an update of SGD that the next one repeats; None where nobody knows, and of others.
        learning_rate: Learning rate now, or of the next run.
        example: What is sampled independently, as a word: "image", "sequence".
        unit: Display unit, plural: "images", "tokens".
        family: Of the task, such as "language".
        spent: Steps so far, oldest first, with their times; of a task those of its earlier run.
        units_per_example: Display units of an example.
        steps_done: Optimizer steps so far.
        planned_steps: Optimizer steps of the whole plan at the present batch; None where none is known.
        num_devices: Devices that are paid for.
        usd_per_device_hour: Price of one for an hour.
        config: What the run was described with, by the names that trainers use.
    """

    batch_size: float | None
    optimizer: str | None = None
    momentum: float | None = None
    learning_rate: float | None = None
    example: str = "example"
    unit: str = "examples"
    family: str | None = None
    spent: Sequence[SpentPoint] = ()
    units_per_example: float = 1.0
    steps_done: int = 0
    planned_steps: int | None = None
    num_devices: int | None = None
    usd_per_device_hour: float | None = None
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def steps_left(self) -> int:
        """Optimizer steps of the plan that are still to take at the present batch; 0 without a plan."""
        return max(0, (self.planned_steps or 0) - self.steps_done)


@dataclass(frozen=True, slots=True)
class RateOff:
    """A learning rate so far from the best one that odds of a batch do not all hold, as the path tells.

    Attributes:
        factor: Best rate over the present one.
        low: Lower end of its 95 % interval.
        high: Upper end.
    """

    factor: float
    low: float
    high: float

    @property
    def is_too_high(self) -> bool:
        """Whether the present rate is the larger one."""
        return self.factor < 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSoFar(RunSetting):
    """A run that has begun, with what was measured in it.

    Attributes:
        noise_scale: Estimate over the latest window, in examples.
        usd_spent: Money so far, if a price is known.
        reason: Reason code of the client where there is no estimate at all.
        flags: Bits that the rows of the latest window carry.
        run_id: UUID of the run; None where it is not stored.
        step: The newest optimizer step that is known; None before the first.
        noise_scale_step: The last step that is in the noise scale; None where that is not known.
        divergence: Since when its loss or gradients are not finite; None where they are.
        has_ended: It takes no more steps: what would need some is for the next run.
        known: The noise scale by all of its looks; None: what `noise_scale` says by itself.
        rate_off: How far the learning rate is off; None where it is not, or nobody knows.
    """

    noise_scale: NoiseScaleEstimate
    usd_spent: float | None = None
    reason: str | None = None
    flags: int = 0
    run_id: str | None = None
    step: int | None = None
    noise_scale_step: int | None = None
    divergence: Divergence | None = None
    has_ended: bool = False
    known: "KnownNoiseScale | None" = None
    rate_off: RateOff | None = None

    @property
    def belief(self) -> "Belief | None":
        """How likely each noise scale is by all of its looks."""
        return None if self.known is None else self.known.belief

    @property
    def progress(self) -> float | None:
        """Share of the plan that is done; without a plan None, and all of it where the run has ended."""
        if self.planned_steps:
            return min(1.0, self.steps_done / self.planned_steps)
        return 1.0 if self.has_ended else None


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with the batch size.

    Attributes:
        decision: By odds and expected cost.
        batch_size: Recommended batch in examples, rounded to 2^k or 3·2^k; None while nothing can be said.
        low: Lower end of its 95 % interval, model error included.
        high: Upper end.
        reason: One sentence.
        probability: That the recommended batch is cheaper than the present one.
        saving: Expected saving, as a share of the present cost.
    """

    decision: DecisionWord
    batch_size: int | None
    low: float | None
    high: float | None
    reason: str
    probability: float | None = None
    saving: float | None = None


@dataclass(frozen=True, slots=True)
class LatestNoiseScale:
    """A noise scale in examples with interval and state.

    Attributes:
        state: How much is known of it.
        value: None while unresolved.
        low: Lower end of the interval, or a bound.
        high: Upper end; None without one.
        level: Of the interval.
        z: |G|² in its own standard errors.
        reason: Why there is no value; None where there is one.
        reason_text: The same in a few words.
        num_updates: Updates of the window.
        num_blocks: Blocks whose spread gives the interval.
        updates_needed: Length of a window that would be resolved; None where nobody can say.
        step: The last step that is in it; None where that is not said.
    """

    state: Literal["resolved", "tentative", "unresolved"]
    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    z: float | None = None
    reason: str | None = None
    reason_text: str | None = None
    num_updates: int | None = None
    num_blocks: int | None = None
    updates_needed: int | None = None
    step: int | None = None

    @classmethod
    def of(cls, found: NoiseScaleEstimate, reason: str | None, step: int | None = None) -> "LatestNoiseScale":
        """An estimate as an answer says it.

        Args:
            found: Of a window, in examples.
            reason: Why it has no value.
            step: The last step that is in it.
        """
        return cls(
            state=found.state.value,
            value=found.value,
            low=found.low,
            high=found.high,
            level=found.level,
            z=found.z,
            reason=reason,
            reason_text=reasons.short(reason),
            num_updates=found.num_updates,
            num_blocks=found.num_blocks,
            updates_needed=found.updates_needed,
            step=step,
        )


@dataclass(frozen=True, slots=True)
class LearningRateAdvice:
    """The learning rate that goes with the recommended batch; a centre for a short search."""

    current: float
    recommended: float
    low: float
    high: float
    rule: str
    candidates: tuple[float, ...]
    text: str


@dataclass(frozen=True, slots=True)
class NowAndThen:
    """A share at the present batch and at the recommended one."""

    now: Interval
    recommended: Interval


@dataclass(frozen=True, slots=True)
class Predicted:
    """Steps and examples to the same loss at the recommended batch, relative to the present one."""

    steps_factor: Interval
    examples_factor: Interval


@dataclass(frozen=True, slots=True)
class Waste:
    """Examples so far that smaller batches would not have needed.

    Attributes:
        examples: Σ B w over the steps, w = B / (B + φ).
        fraction: The same as a share of the examples spent where the noise scale is bounded.
        covered: Share of all examples spent for which that is so.
        usd: The same share of the money; None without a price, and where the devices stay, whatever the batch.
        hours: The same share of the time that was measured; None without any, and where the devices stay.
        text: What kind of number this is.
    """

    examples: Interval
    fraction: Interval
    covered: float
    usd: Interval | None
    hours: Interval | None = None
    text: str = "predicted, by the noise scale at each moment"


@dataclass(frozen=True, slots=True)
class Caution:
    """Something the reader must know before following the advice."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Calibration:
    """How the noise scale is tied to a critical batch size.

    Attributes:
        state: Calibrated from one sweep, branch or followed run of one's own on.
        kappa: κ = B_crit / B_simple.
        kappa_log10_sd: Standard deviation of log₁₀ κ.
        measurements: Sweeps and branches behind it.
        text: The same in words.
    """

    state: Literal["uncalibrated", "calibrated"]
    kappa: Interval
    kappa_log10_sd: float
    measurements: int
    text: str


@dataclass(frozen=True, slots=True)
class ExchangeRate:
    """How many examples one would spend to save an optimizer step, and where that number comes from.

    Attributes:
        examples_per_step: r, for a preference at the estimated critical batch.
        source: Which words it was said in; `preference` also where nobody said any.
        text: Those words, as a sentence.
    """

    examples_per_step: float
    source: RateSource
    text: str


@dataclass(frozen=True, slots=True)
class Odds:
    """How likely the advice is right, and what is at stake; costs are of the same loss at the price of a step.

    Attributes:
        probability: That the recommended batch is cheaper than the present one.
        saving: Expected saving, as a share of the present cost.
        worst_case: What it costs more, as a share, in the worst case of 20; below 0 it saves even then.
        present_regret: Expected extra cost of the present batch over the best one, were it known.
        regret: The same of the recommended batch: what there is to gain by knowing more.
        assumes: What the odds rest on besides the measurement.
    """

    probability: float
    saving: float
    worst_case: float
    present_regret: float
    regret: float
    assumes: str


@dataclass(frozen=True, slots=True)
class AtPreference:
    """The batch for a reader who values steps otherwise.

    Attributes:
        preference: 0 fewest examples … 1 fewest steps.
        batch_size: In examples, rounded.
        text: Who that is.
    """

    preference: float
    batch_size: int
    text: str
