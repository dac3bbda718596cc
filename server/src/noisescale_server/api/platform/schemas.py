"""What bodies and answers of every room are made of: names, texts, numbers, configs."""

import json
import math
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from noisescale_core.masking import masked
from noisescale_server.api.platform.deps import CONTROL_CHARACTERS, refuse_control_characters

MAX_CONFIG_BYTES = 64 * 1024

MAX_CONFIG_DEPTH = 8


def refuse_blank(text: str) -> str:
    """The text itself.

    Raises:
        ValueError: When nothing but white space is in it.
    """
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def refuse_unprintable(text: str) -> str:
    """The text itself, which may have lines.

    Raises:
        ValueError: When another control character is in it.
    """
    refuse_control_characters(text.replace("\n", " ").replace("\t", " "))
    return text


def check_config(config: dict[str, Any]) -> dict[str, Any]:
    """The config itself: JSON that Postgres and every reader can hold.

    Raises:
        ValueError: For a number that is not finite, a NUL or lone surrogate, more than 8 levels or 64 KiB; says where.
    """
    _check_json(config, "", 1)
    size = len(json.dumps(config, ensure_ascii=False).encode())
    if size > MAX_CONFIG_BYTES:
        raise ValueError(f"has {size} bytes as JSON, at most {MAX_CONFIG_BYTES} are kept: leave large values out")
    return config


def _check_json(value: object, path: str, depth: int) -> None:
    if depth > MAX_CONFIG_DEPTH + 1:
        raise ValueError(f"is nested deeper than {MAX_CONFIG_DEPTH} levels at {path[:80]}: flatten it")
    match value:
        case str():
            _check_text(value, path)
        case float() if not math.isfinite(value):
            raise ValueError(f"has a number that is not finite at {path[:80]}: send null or text")
        case dict():
            for key, item in value.items():
                _check_text(key, path)
                _check_json(item, f"{path}.{key}" if path else key, depth + 1)
        case list():
            for position, item in enumerate(value):
                _check_json(item, f"{path}[{position}]", depth + 1)


def _check_text(text: str, path: str) -> None:
    if "\x00" in text:
        raise ValueError(f"has a NUL character at {path[:80] or 'a key'}: Postgres cannot keep it")


NOT_BLANK = {"pattern": rf"^[^{CONTROL_CHARACTERS}]*[^{CONTROL_CHARACTERS}\s][^{CONTROL_CHARACTERS}]*$"}
"""What OpenAPI says of texts that `refuse_control_characters` and `refuse_blank` read."""

LINES = {"pattern": rf"^([^{CONTROL_CHARACTERS}]|\n|\t)*$"}

Name = Annotated[
    str,
    Field(min_length=1, max_length=256, json_schema_extra=NOT_BLANK),
    AfterValidator(refuse_control_characters),
    AfterValidator(refuse_blank),
]

Config = Annotated[dict[str, Any], AfterValidator(check_config), AfterValidator(masked)]

PositiveNumber = Annotated[float, Field(gt=0, allow_inf_nan=False)]

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def as_whole(value: object) -> object:
    """90.0 is a whole number in JSON, too."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Body(BaseModel):
    """A request body: types as sent, no unknown field."""

    model_config = ConfigDict(strict=True, extra="forbid")


class Answer(BaseModel):
    """Part of an answer; built by us, so it is not checked again."""

    model_config = ConfigDict(ser_json_inf_nan="null")
