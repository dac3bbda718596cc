"""A config as JSON has it, without secrets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from noisescale_core.masking.names import ends_in_a_secret, names_a_secret, names_a_secret_number, names_a_secret_text
from noisescale_core.masking.texts import MASK, is_secret_value, masked_text

SMALLEST_SECRET_NUMBER = 1000
"""Smaller ones under the name of a secret count or choose something."""
NAMES_OF_NAMES = ("name", "key", "variable", "header")
"""Where lists of settings say what each is called: `{"name": "HF_TOKEN", "value": "…"}`."""


def masked(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with its secrets replaced by `[masked]`, also where they are keys."""
    return _with_masked_keys({key: _under(str(key), value) for key, value in config.items()})


def _with_masked_keys(config: Mapping[Any, Any]) -> dict[Any, Any]:
    """The same entries; of keys that would be masked alike the second is `[masked] 2`."""
    shown: dict[Any, Any] = {}
    for key, value in config.items():
        name = masked_text(key) if isinstance(key, str) else key
        number = 1
        while name in shown:
            number += 1
            name = f"{masked_text(key)} {number}"
        shown[name] = value
    return shown


def _under(name: str, value: Any) -> Any:
    """The value as it may be shown under this name."""
    if names_a_secret(name) and not (isinstance(value, int | float) and not ends_in_a_secret(name)):
        return value if isinstance(value, bool) or value in (None, "", [], {}) else MASK
    if names_a_secret_text(name):
        return _values_masked(value, with_numbers=names_a_secret_number(name))
    return _inside(value)


def _values_masked(value: Any, *, with_numbers: bool) -> Any:
    match value:
        case str():
            return MASK if value else value
        case bool():
            return value
        case int() | float():
            return MASK if with_numbers and abs(value) >= SMALLEST_SECRET_NUMBER else value
        case Mapping():
            return _with_masked_keys(
                {key: _values_masked(item, with_numbers=with_numbers) for key, item in value.items()}
            )
        case list() | tuple():
            return [_values_masked(item, with_numbers=with_numbers) for item in value]
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
