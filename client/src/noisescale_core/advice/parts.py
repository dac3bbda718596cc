"""What a recommendation is made from, and what it is made of."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from noisescale_core.errors import DomainError
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate

Share = Callable[[float, float], float]
"""An efficiency: (noise scale, batch size), both in examples → share of the best possible progress."""

RateSource = Literal["preference", "examples_per_step", "usd_per_hour_sooner", "fixed_hardware"]

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
    """What the reader values, said in one way or in none.

    Nothing stated balances steps and examples at the critical batch as it is estimated now, see decision 0002.

    Attributes:
        preference: 0 fewest examples … 1 fewest steps, ends excluded.
        examples_per_step: Examples one would spend to save an optimizer step.
        usd_per_hour_sooner: What it is worth that the run ends an hour sooner, with devices added as the batch grows.
        fixed_hardware: The devices are what they are: time and money agree, and step times decide.
    """

    preference: float | None = None
    examples_per_step: float | None = None
    usd_per_hour_sooner: float | None = None
    fixed_hardware: bool = False

    def __post_init__(self) -> None:
        """Refuse two prices of one step.

        Raises:
            DomainError: If it was said in more than one way.
        """
        if len(self.ways) > 1:
            raise DomainError(f"{' and '.join(self.ways)} each say what a step is worth, got both: give one of them")

    @property
    def ways(self) -> tuple[str, ...]:
        """The fields by which a price was said."""
        given = {
            "preference": self.preference is not None,
            "examples_per_step": self.examples_per_step is not None,
            "usd_per_hour_sooner": self.usd_per_hour_sooner is not None,
            "fixed_hardware": self.fixed_hardware,
        }
        return tuple(name for name, is_given in given.items() if is_given)

    @property
    def is_stated(self) -> bool:
        """Whether the reader said what a step is worth."""
        return bool(self.ways)


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
        family: Of the task, such as "language".
        spent: The run so far, oldest first, for waste, step times and the growth of the noise scale.
        usd_spent: Money so far, if a price is known.
        reason: Reason code of the client where there is no estimate at all.
        flags: Bits that the rows of the latest window carry.
        units_per_example: Display units of an example.
        steps_done: Optimizer steps so far.
        planned_steps: Optimizer steps of the whole plan at the present batch; None where none is known.
        num_devices: Devices that are paid for.
        usd_per_device_hour: Price of one for an hour.
        config: What the run was described with, by the names that trainers use.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """What the reader has; None where it limits nothing.

    Attributes:
        max_steps: Optimizer steps that may still be taken.
        max_examples: Examples that may still be used.
        max_hours: Wall time that is left.
        max_usd: Money that is left.
        examples_per_device: Largest micro-batch that fits on a device.
        num_devices: Data-parallel devices, which stay as they are whatever the batch.
        max_micro_batches: Micro-batches that may be accumulated in a step; None: any number.
        spot_price_share: Price of interruptible devices divided by that on demand; None: on demand.
        interruptions_per_device_hour: Of interruptible devices.
        restart_hours: From an interruption until training goes on.
        checkpoint_hours: Between checkpoints.
    """

    max_steps: float | None = None
    max_examples: float | None = None
    max_hours: float | None = None
    max_usd: float | None = None
    examples_per_device: int | None = None
    num_devices: int | None = None
    max_micro_batches: int | None = None
    spot_price_share: float | None = None
    interruptions_per_device_hour: float = 0.0
    restart_hours: float = 0.0
    checkpoint_hours: float = 0.0

    @property
    def of_plan(self) -> tuple[str, ...]:
        """The limits that only a plan of the run can be held against."""
        names = ("max_steps", "max_examples", "max_hours", "max_usd")
        return tuple(name for name in names if getattr(self, name) is not None)

    @property
    def multiple_of(self) -> int:
        """Examples that every global batch is a multiple of: devices × micro-batch."""
        return (self.examples_per_device or 1) * (self.num_devices or 1)


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
        hours: The same share of the time that was measured; None without any.
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
        source: Which words it was said in; `preference` also where nobody said any.
        text: Those words, as a sentence.
    """

    examples_per_step: float
    source: RateSource
    text: str
