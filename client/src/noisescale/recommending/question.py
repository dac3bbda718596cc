"""What a caller values and has, as the server and the job are asked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import TypedDict
from urllib.parse import urlencode

from noisescale_core.errors import ConfigError


class Asked(TypedDict, total=False):
    """The keywords of `recommendation()`; what each means: `Question`."""

    preference: float | None
    examples_per_step: float | None
    usd_per_hour_sooner: float | None
    usd_per_device_hour: float | None
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
    batch_sizes: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What decides besides the measurement; None: not said.

    Attributes:
        preference: Between fewest examples (0) and fewest steps (1), both excluded.
        examples_per_step: Examples one would spend to save an optimizer step.
        usd_per_hour_sooner: Dollars one would spend to be done an hour sooner.
        usd_per_device_hour: Price of a device; None: the run's own.
        fixed_hardware: The devices stay as they are, and step times decide what a step is worth.
        max_steps: Optimizer steps that may still be taken.
        max_examples: Examples that may still be used.
        max_hours: Time that is left.
        max_usd: Money that is left.
        examples_per_device: Largest micro-batch that fits on a device.
        num_devices: Data-parallel devices.
        max_micro_batches: Micro-batches that may be accumulated in a step.
        spot_price_share: Price of interruptible devices divided by that on demand.
        interruptions_per_device_hour: Of interruptible devices.
        restart_hours: From an interruption until training goes on.
        checkpoint_hours: Between checkpoints.
        batch_sizes: Batches to be told about besides, in examples.
        optimizer: Class of the optimizer, before a run's first step.
    """

    preference: float | None = None
    examples_per_step: float | None = None
    usd_per_hour_sooner: float | None = None
    usd_per_device_hour: float | None = None
    fixed_hardware: bool | None = None
    max_steps: float | None = None
    max_examples: float | None = None
    max_hours: float | None = None
    max_usd: float | None = None
    examples_per_device: int | None = None
    num_devices: int | None = None
    max_micro_batches: int | None = None
    spot_price_share: float | None = None
    interruptions_per_device_hour: float | None = None
    restart_hours: float | None = None
    checkpoint_hours: float | None = None
    batch_sizes: Sequence[float] = ()
    optimizer: str | None = None

    @classmethod
    def of(cls, asked: Mapping[str, object]) -> "Question":
        """The question of these keywords.

        Raises:
            ConfigError: For a keyword that is not known, or a value that is no positive number.
        """
        known = [one.name for one in fields(cls)]
        unknown = sorted(asked.keys() - set(known))
        if unknown:
            raise ConfigError(f"recommendation() takes no {unknown[0]!r}: known are {', '.join(known)}")
        said = {name: value for name, value in asked.items() if value is not None}
        for name, value in said.items():
            _check(name, value)
        return cls(**{name: _whole(value) if name in _WHOLE else value for name, value in said.items()})  # type: ignore[arg-type]  # checked above

    def address(self, path: str, **more: str) -> str:
        """The path with what was said as its query.

        Args:
            path: Of the server.
            more: Further names and values.
        """
        said = [(one.name, getattr(self, one.name)) for one in fields(self) if one.name != "batch_sizes"]
        query = [(name, _text(value)) for name, value in [*said, *more.items()] if value is not None]
        query += [("batch_size", str(size)) for size in self.batch_sizes]
        return f"{path}?{urlencode(query)}" if query else path


_MAY_BE_ZERO = ("interruptions_per_device_hour", "restart_hours", "checkpoint_hours")
_WHOLE = ("examples_per_device", "num_devices", "max_micro_batches")


def _check(name: str, value: object) -> None:
    if name == "optimizer":
        if not isinstance(value, str):
            raise ConfigError(f"optimizer must be the name of its class, such as 'AdamW', got {value!r}")
    elif name == "fixed_hardware":
        if not isinstance(value, bool):
            raise ConfigError(f"fixed_hardware must be True or False, got {value!r}")
    elif name == "batch_sizes":
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ConfigError(f"batch_sizes must be a list of numbers, got {value!r}")
        for size in value:
            _check_number("each of batch_sizes", size)
    else:
        _check_number(name, value)
        if name in _WHOLE and value != _whole(value):
            raise ConfigError(f"{name} must be a whole number, got {value!r}")


def _check_number(name: str, value: object) -> None:
    if name in _MAY_BE_ZERO and value == 0:
        return
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0 < float(value) < math.inf:  # type: ignore[arg-type]  # a number by now
        raise ConfigError(f"{name} must be a positive number, got {value!r}")


def _whole(value: object) -> int:
    return int(value)  # type: ignore[call-overload,no-any-return]  # a number by now


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
