"""THE question of a recommendation: what a step is worth, what limits the run, and what to tell besides.

A new limit is one line in `Limits`, its kind with its words in `theory/limits.py`, the law that it obeys in `bounds.py`
and the page's field. The server reads its query from these fields, the SDK its keywords, and both refuse what lies
outside the ranges that stand beside them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from numbers import Real
from types import MappingProxyType
from typing import Any, Final, TypedDict

from noisescale_core.errors import ConfigError, DomainError

MAX_BATCHES: Final = 32
"""Batches that one question may name."""

LARGEST: Final = 1e15
SMALLEST: Final = 1e-9
SMALLEST_POSITIVE: Final = math.ulp(0.0)
"""Of a batch that is only told about: any above 0."""


class Asked(TypedDict, total=False):
    """The keywords of `recommendation()`; None: not said. What each means: `Question`."""

    preference: float | None
    examples_per_step: float | None
    usd_per_hour_sooner: float | None
    fixed_hardware: bool | None
    max_steps: float | None
    max_examples: float | None
    max_hours: float | None
    max_usd: float | None
    examples_per_device: int | None
    num_devices: int | None
    max_micro_batches: int | None
    spot_price_share: float | None
    interruptions_per_device_hour: float | None
    restart_hours: float | None
    checkpoint_hours: float | None
    usd_per_device_hour: float | None
    batch_sizes: Sequence[float]


@dataclass(frozen=True, slots=True)
class AllowedRange:
    """Which numbers a field takes.

    Attributes:
        meaning: What the field says, for the OpenAPI and for errors.
        low: Smallest, included.
        high: Largest, included.
        is_whole: A whole number.
    """

    meaning: str
    low: float
    high: float
    is_whole: bool = False


def _number(meaning: str, low: float = SMALLEST, high: float = LARGEST, *, default: float | None = None) -> Any:
    return field(default=default, metadata={"range": AllowedRange(meaning, low, high)})


def _whole(meaning: str, high: int) -> Any:
    return field(default=None, metadata={"range": AllowedRange(meaning, 1, high, is_whole=True)})


def _switch(meaning: str) -> Any:
    return field(default=False, metadata={"meaning": meaning})


def _numbers(meaning: str) -> Any:
    return field(default=(), metadata={"each": AllowedRange(meaning, SMALLEST_POSITIVE, LARGEST)})


@dataclass(frozen=True, kw_only=True)
class Worth:
    """What a step is worth, said in one way or in none.

    Nothing stated balances steps and examples at the critical batch as it is estimated now, see decision 0002.

    Attributes:
        preference: 0 fewest examples … 1 fewest steps, ends excluded: they ask for a batch of nothing or everything.
        examples_per_step: Examples one would spend to save an optimizer step.
        usd_per_hour_sooner: What it is worth that the run ends an hour sooner, with devices added as the batch grows.
        fixed_hardware: The devices are what they are: time and money agree, and step times decide.
    """

    preference: float | None = _number("0 fewest examples … 1 fewest steps", 0.001, 0.999)
    examples_per_step: float | None = _number("examples one would spend to save a step", 1e-6)
    usd_per_hour_sooner: float | None = _number("what it is worth that the run ends an hour sooner")
    fixed_hardware: bool = _switch("the devices stay: step times decide what a step is worth")

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
        return tuple(one.name for one in fields(Worth) if getattr(self, one.name) not in (None, False))

    @property
    def is_stated(self) -> bool:
        """Whether the caller said what a step is worth."""
        return bool(self.ways)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the caller has; None where it limits nothing.

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

    max_steps: float | None = _number("steps that may still be taken")
    max_examples: float | None = _number("examples that may still be used", high=1e18)
    max_hours: float | None = _number("hours that are left", high=1e9)
    max_usd: float | None = _number("money that is left")
    examples_per_device: int | None = _whole("largest micro-batch that fits", 2**40)
    num_devices: int | None = _whole("data-parallel devices, which stay whatever the batch", 2**24)
    max_micro_batches: int | None = _whole("accumulated in a step at most", 2**24)
    spot_price_share: float | None = _number("price of interruptible devices divided by that on demand", high=100)
    interruptions_per_device_hour: float = _number("of interruptible devices", 0, 1e3, default=0.0)
    restart_hours: float = _number("from an interruption until training goes on", 0, 1e6, default=0.0)
    checkpoint_hours: float = _number("between checkpoints", 0, 1e6, default=0.0)

    @property
    def of_plan(self) -> tuple[str, ...]:
        """The limits that only a plan of the run can be held against."""
        return tuple(name for name in OF_PLAN if getattr(self, name) is not None)

    @property
    def multiple_of(self) -> int:
        """Examples that every global batch is a multiple of: devices × micro-batch."""
        return (self.examples_per_device or 1) * (self.num_devices or 1)


OF_PLAN: Final = ("max_steps", "max_examples", "max_hours", "max_usd")


@dataclass(frozen=True, kw_only=True)
class Question(Limits, Worth):
    """What decides besides the measurement.

    Attributes:
        usd_per_device_hour: Price of a device; None: the run's own.
        batch_sizes: Batches to be told about besides the present and the recommended one, in examples.
    """

    usd_per_device_hour: float | None = _number("price of a device; the run's own by default")
    batch_sizes: Sequence[float] = _numbers("batches to predict; may be repeated")
    # fields that nobody has said and that the project fills, with its words: `defaults.py`; no reader's to say
    project_says: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, asked: Mapping[str, object]) -> "Question":
        """The question of these keywords; None and what is left out are not said.

        Raises:
            ConfigError: For a keyword that is not known, a value that is not of its kind or out of its range, or two
                prices of one step.
        """
        unknown = sorted(asked.keys() - FIELDS.keys())
        if unknown:
            raise ConfigError(f"recommendation() takes no {unknown[0]!r}: known are {', '.join(FIELDS)}")
        said = {name: value for name, value in asked.items() if value is not None}
        checked: dict[str, Any] = {name: _checked(FIELDS[name], value) for name, value in said.items()}
        try:
            return cls(**checked)
        except DomainError as error:
            raise ConfigError(str(error)) from error

    @property
    def said(self) -> Mapping[str, Any]:
        """The fields that say something, by name."""
        values = {name: getattr(self, name) for name in FIELDS}
        return {name: value for name, value in values.items() if value != FIELDS[name].default}


FIELDS: Final[Mapping[str, "Field[Any]"]] = MappingProxyType(
    {one.name: one for one in fields(Question) if one.metadata}
)
"""Every field of a question that a reader may say, by name."""

NOTHING_ASKED: Final = Question()


SWITCHES: Final = tuple(name for name, one in FIELDS.items() if one.default is False)
"""What is said by yes."""

LISTS: Final = tuple(name for name, one in FIELDS.items() if "each" in one.metadata)
"""What holds several numbers."""


def range_of(one: "Field[Any]") -> AllowedRange | None:
    """Which numbers a field takes, each of them where it takes several; None for one that is said by yes."""
    found = one.metadata.get("range", one.metadata.get("each"))
    return found if isinstance(found, AllowedRange) else None


def meaning_of(one: "Field[Any]") -> str:
    """What a field says, in a few words."""
    found = range_of(one)
    return str(one.metadata["meaning"]) if found is None else found.meaning


def _checked(one: "Field[Any]", value: object) -> object:
    allowed = range_of(one)
    if allowed is None:
        if not isinstance(value, bool):
            raise ConfigError(f"{one.name} must be True or False, got {value!r}")
        return value
    if one.name not in LISTS:
        return _checked_number(one.name, value, allowed)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(f"{one.name} must be a list of numbers, got {value!r}")
    if len(value) > MAX_BATCHES:
        raise ConfigError(f"{one.name} holds at most {MAX_BATCHES} batches, got {len(value)}: leave some out")
    return [_checked_number(f"each of {one.name}", size, allowed) for size in value]


def _checked_number(name: str, value: Any, allowed: AllowedRange) -> Any:
    is_number = not isinstance(value, bool) and isinstance(value, Real)
    number = float(value) if is_number else math.nan
    if not (0 < number < math.inf or number == allowed.low == 0):
        raise ConfigError(f"{name} must be a positive number, got {value!r}")
    if not allowed.low <= number <= allowed.high:
        raise ConfigError(f"{name} must be between {allowed.low:g} and {allowed.high:g}, got {value!r}")
    if not allowed.is_whole:
        return value
    if number != int(number):
        raise ConfigError(f"{name} must be a whole number, got {value!r}")
    return int(number)
