"""A config as JSON has it, without secrets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from noisescale_core.masking.names import ends_in_a_secret, names_a_secret, names_a_secret_text
from noisescale_core.masking.texts import MASK, is_secret_value, masked_text

NAMES_OF_NAMES = ("name", "key", "variable", "header")
"""Where lists of settings say what each is called: `{"name": "HF_TOKEN", "value": "…"}`."""


def masked(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with its secrets replaced by `[masked]`."""
    return {key: _under(str(key), value) for key, value in config.items()}


def _under(name: str, value: Any) -> Any:
    """The value as it may be shown under this name."""
    if names_a_secret(name) and not (isinstance(value, int | float) and not ends_in_a_secret(name)):
        return value if isinstance(value, bool) or value in (None, "", [], {}) else MASK
    return _texts_masked(value) if names_a_secret_text(name) else _inside(value)


def _texts_masked(value: Any) -> Any:
    match value:
        case str():
            return MASK if value else value
        case Mapping():
            return {key: _texts_masked(item) for key, item in value.items()}
        case list() | tuple():
            return [_texts_masked(item) for item in value]
        case _:
            return value


def _inside(value: Any) -> Any:
    match value:
        case str():
            return masked_text(value)
        case Mapping():
            return _setting(masked(value))
        case list() | tuple():
            return list(_listed(value))
        case _:
            return value


def _setting(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of a list of settings, whose name is a value itself."""
    name = next((entry[key] for key in NAMES_OF_NAMES if isinstance(entry.get(key), str)), None)
    value = entry.get("value")
    if name is not None and isinstance(value, str) and is_secret_value(name, value):
        return entry | {"value": MASK}
    return entry


def _listed(values: Sequence[Any]) -> Iterator[Any]:
    """A list; behind a flag or a name of a secret stands the secret: `["--api-key", "…"]`."""
    before: Any = None
    for value in values:
        is_text = isinstance(before, str) and isinstance(value, str) and not value.startswith("-")
        is_announced = is_text and _announces(before, len(values))
        yield MASK if is_announced and is_secret_value(before.lstrip("-"), value) else _inside(value)
        before = value


def _announces(text: str, length: int) -> bool:
    is_flag = text.startswith("-") and "=" not in text and " " not in text
    return is_flag or (length == 2 and " " not in text and "=" not in text)
