"""From the JSON of `docs/rest.md` to the answer's dataclasses, also of a server that is older or newer than we are.

Names that are not known are passed by, and a part that cannot be read is None.
"""

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

Part = TypeVar("Part")


def as_part(kind: type[Part], value: Mapping[str, object], **given: Any) -> Part:
    """The dataclass that JSON says, field by field; what it lacks or garbles has the default.

    Args:
        kind: A dataclass whose fields have defaults or are given.
        value: A JSON object.
        given: Fields that the JSON does not say.
    """
    kinds = kinds_of(kind)  # type: ignore[arg-type]  # mypy takes type[T] for no hashable
    names = (value.keys() & kinds.keys()) - given.keys()
    known = {name: found for name in names if (found := read(kinds[name], value[name])) is not None}
    return kind(**(known | given))


def read(kind: object, value: object) -> object:
    """The value as this kind: a number, a text, a part, a tuple of them; None where it is none.

    Args:
        kind: As in the annotation of a field.
        value: As JSON gives it.
    """
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        kinds = [one for one in typing.get_args(kind) if one is not type(None)]
        return read(kinds[0], value)
    if typing.get_origin(kind) is typing.Literal:
        return value if isinstance(value, str) else None  # a newer server may know more words
    if typing.get_origin(kind) is tuple:
        return _read_all(typing.get_args(kind)[0], value)
    if is_dataclass(kind) and isinstance(kind, type):
        return _read_part(kind, value)
    if kind is float:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    return value if isinstance(kind, type) and isinstance(value, kind) else None


def _read_all(kind: object, value: object) -> tuple[object, ...] | None:
    if not isinstance(value, list | tuple):
        return None
    found = tuple(read(kind, one) for one in value)
    return None if None in found else found


def _read_part(kind: type, value: object) -> object:
    """The part, unless something is missing in it that is never None."""
    if not isinstance(value, Mapping):
        return None
    kinds, found = kinds_of(kind), {}
    for one in fields(kind):
        item = read(kinds[one.name], value.get(one.name))
        if item is not None:
            found[one.name] = item
        elif one.default is MISSING:
            if type(None) not in typing.get_args(kinds[one.name]):
                return None
            found[one.name] = None
    return kind(**found)


@cache
def kinds_of(kind: type) -> Mapping[str, object]:
    """From each field of a dataclass to what it holds."""
    return typing.get_type_hints(kind)
