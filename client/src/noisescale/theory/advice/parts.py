"""What a recommendation is made from, and what it is made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from noisescale.estimators.uncertainty import NoiseScaleEstimate

Share = Callable[[float, float], float]
"""An efficiency: (noise scale, batch size), both in examples → share of the best possible progress."""

DecisionWord = Literal["increase", "decrease", "keep", "insufficient_evidence"]


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float
    level: float = 0.95


@dataclass(frozen=True, slots=True)
class Preference:
    """What the reader values; nothing stated balances steps and examples at the critical batch as it is estimated now.

    Attributes:
        preference: 0 fewest examples … 1 fewest steps, ends excluded; None where it was not said.
        examples_per_step: Examples one would spend to save an optimizer step; overrides `preference`.
    """

    preference: float | None = None
    examples_per_step: float | None = None

    @property
    def is_stated(self) -> bool:
        """Whether the reader said what a step is worth."""
        return self.preference is not None or self.examples_per_step is not None


@dataclass(frozen=True, slots=True)
class SpentPoint:
    """A stretch of the run: examples spent in it, its batch size and its noise scale."""

    examples: float
    batch_size: float | None
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class RunSoFar:
    """What a recommendation is made from.

    Attributes:
        noise_scale: Estimate over the latest window, in examples.
        batch_size: Global batch now, in examples.
        optimizer: Class name of the optimizer.
        learning_rate: Learning rate now.
        example: What is sampled independently, as a word: "image", "sequence".
        unit: Display unit, plural: "images", "tokens".
        spent: The run so far, oldest first, for the waste.
        usd_spent: Money so far, if a price is known.
        reason: Reason code of the client where there is no estimate at all.
        flags: Bits that the rows of the latest window carry.
    """

    noise_scale: NoiseScaleEstimate
    batch_size: float | None
    optimizer: str | None = None
    learning_rate: float | None = None
    example: str = "example"
    unit: str = "examples"
    family: str | None = None
    spent: Sequence[SpentPoint] = ()
    usd_spent: float | None = None
    reason: str | None = None
    flags: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with the batch size.

    Attributes:
        decision: Increase or decrease only where the whole interval lies on one side of the present batch.
        batch_size: Recommended batch in examples, rounded to 2^k or 3·2^k; None while nothing can be said.
        low: Lower end of its 95 % interval, model error included.
        high: Upper end.
        reason: One sentence.
    """

    decision: DecisionWord
    batch_size: int | None
    low: float | None
    high: float | None
    reason: str


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
        usd: The same share of the money, or None without a price.
        text: What kind of number this is.
    """

    examples: Interval
    fraction: Interval
    covered: float
    usd: Interval | None
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
        state: Calibrated from one sweep or branch of one's own on.
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
        source: Which words it was said in.
        text: Those words, as a sentence.
    """

    examples_per_step: float
    source: Literal["preference", "examples_per_step"]
    text: str


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The answer of `GET …/recommendation`; see docs/rest.md. None where nothing can be said."""

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
