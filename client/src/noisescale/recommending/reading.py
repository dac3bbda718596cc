"""From the JSON of `docs/rest.md` to a `Recommendation`, also of a server that is older or newer than this client.

Names that are not known are passed by, and a part that cannot be read is None: the whole is in `answer` all the same.
"""

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache

from noisescale.recommending.recommendation import Recommendation, Source, Writer


def recommendation_from(
    answer: Mapping[str, object],
    source: Source,
    *,
    note: str | None = None,
    missing: tuple[str, ...] = (),
    writer: Writer | None = None,
) -> Recommendation:
    """The recommendation that an answer holds.

    Args:
        answer: Of the server, or what the job computes in its place.
        source: Who said it.
        note: Why the server did not answer, where it did not.
        missing: What the answer does not hold, and why.
        writer: Writes the schedule in a trainer's words.
    """
    known = _kinds(Recommendation)
    found = {
        name: value for name in answer.keys() & known.keys() if (value := read(known[name], answer[name])) is not None
    }
    own = {
        "source": source,
        "note": note,
        "missing": missing,
        "writer": writer,
        "answer": dict(answer),
    }
    return Recommendation(**({"reason": ""} | found | own))  # type: ignore[arg-type]  # read() has checked each


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
    kinds, found = _kinds(kind), {}
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
def _kinds(kind: type) -> Mapping[str, object]:
    """From each field to what it holds."""
    return typing.get_type_hints(kind)
