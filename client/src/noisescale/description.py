"""What a run is called and made of, in the form that the server takes."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from noisescale.guard import logger
from noisescale_core.errors import ConfigError
from noisescale_core.masking import masked, masked_text

MAX_NAME = 256
MAX_TAG = 64
MAX_TAGS = 32
MAX_CONFIG_BYTES = 64 * 1024
MAX_CONFIG_DEPTH = 8


@dataclass(frozen=True, slots=True)
class RunDescription:
    """The body of `POST /api/v1/runs` without its id; see `docs/rest.md`.

    Raises:
        ConfigError: For a value that the server would refuse.
    """

    project: str = "default"
    task: str = "default"
    name: str | None = None
    example: str = "example"
    unit: str = "examples"
    units_per_example: float = 1.0
    config: Mapping[str, object] = field(default_factory=dict)
    tags: Sequence[str] = ()
    num_devices: int = 1
    device: str | None = None
    usd_per_device_hour: float | None = None
    family: str | None = None
    planned_steps: int | None = None

    def __post_init__(self) -> None:
        for field_name in ("project", "task", "name", "example", "unit", "device", "family"):
            _check_text(field_name, getattr(self, field_name), MAX_NAME)
        if isinstance(self.tags, str) or len(self.tags) > MAX_TAGS or len(set(self.tags)) < len(self.tags):
            raise ConfigError(f"tags must be at most {MAX_TAGS} different texts in a list, got {self.tags!r}")
        for tag in self.tags:
            _check_text("tags", tag, MAX_TAG)
        _check_number("units_per_example", self.units_per_example, is_positive=True)
        _check_number("num_devices", self.num_devices, is_positive=True)
        _check_number("usd_per_device_hour", self.usd_per_device_hour, is_positive=False)
        _check_number("planned_steps", self.planned_steps, is_positive=True)
        if not isinstance(self.config, Mapping):
            raise ConfigError(f"config must be a dictionary, got {type(self.config).__name__}: try config=vars(args)")

    def to_json(self) -> dict[str, object]:
        """The JSON body; secrets in `config` are masked."""
        body: dict[str, object] = {
            "project": self.project,
            "task": self.task,
            "tags": [masked_text(tag) for tag in self.tags],
            "config": storable_config(self.config),
            "example": self.example,
            "unit": self.unit,
            "units_per_example": float(self.units_per_example),
            "num_devices": int(self.num_devices),
        }
        optional: dict[str, object] = {
            "name": None if self.name is None else masked_text(self.name),
            "device": self.device,
            "usd_per_device_hour": None if self.usd_per_device_hour is None else float(self.usd_per_device_hour),
            "family": self.family,
            "planned_steps": None if self.planned_steps is None else int(self.planned_steps),
        }
        return body | {name: value for name, value in optional.items() if value is not None}


def storable_config(config: Mapping[str, object]) -> dict[str, object]:
    """The config as JSON that the server keeps: secrets `[masked]`, what is no JSON as text, at most 64 KiB.

    The largest entries are left out first where it is larger, and the log says so.
    """
    stored = masked({_clean(str(key)): _storable(value, 1) for key, value in config.items()})
    sizes = {key: len(json.dumps([key, value], ensure_ascii=False).encode()) + 2 for key, value in stored.items()}
    left_out: list[str] = []
    while sum(sizes.values()) > MAX_CONFIG_BYTES:
        largest = max(sizes, key=sizes.__getitem__)
        left_out.append(largest)
        del sizes[largest], stored[largest]
    if left_out:
        logger.warning("config has more than %d bytes: %s left out", MAX_CONFIG_BYTES, ", ".join(left_out))
    return stored


def _storable(value: object, depth: int) -> object:
    match value:
        case None | bool() | int():
            # 64 bits are what every reader of JSON and the database can hold
            return value if value is None or abs(value) < 1 << 63 else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return _clean(value)
        case Mapping() if depth < MAX_CONFIG_DEPTH:
            return {_clean(str(name)): _storable(item, depth + 1) for name, item in value.items()}
        case list() | tuple() if depth < MAX_CONFIG_DEPTH:
            return [_storable(item, depth + 1) for item in value]
    return _clean(str(value))


def _clean(text: str) -> str:
    """The text without what Postgres cannot keep: NUL and lone surrogates become U+FFFD."""
    return "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)


def checked_metric_name(name: str) -> str:
    """The name itself.

    Raises:
        ConfigError: For one that the server would refuse.
    """
    _check_text("the name of a metric", name, MAX_NAME)
    return name


def _check_text(name: str, text: object, longest: int) -> None:
    if text is None:
        return
    if not isinstance(text, str) or not text.strip() or len(text) > longest or not text.isprintable():
        raise ConfigError(f"{name} must be a printable text of 1 to {longest} characters, got {str(text)[:80]!r}")


def _check_number(name: str, number: object, *, is_positive: bool) -> None:
    if number is None:
        return
    is_number = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
    if not is_number or number < 0 or (is_positive and number == 0):  # type: ignore[operator]
        raise ConfigError(f"{name} must be a {'positive ' if is_positive else ''}number, got {number!r}")
