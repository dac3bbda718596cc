"""Keywords that went into option objects: the older ones keep working, with a note."""

import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, ParamSpec, TypeVar

from noisescale.guard import Notices
from noisescale_core.errors import ConfigError

P = ParamSpec("P")
R = TypeVar("R")

_notices = Notices()


class Place(NamedTuple):
    """Where an older keyword stands now.

    Attributes:
        parameter: That takes the object.
        kind: Its class.
        field: Of the object.
    """

    parameter: str
    kind: type[Any]
    field: str


def inside(parameter: str, kind: type[Any], *same: str, **renamed: str) -> dict[str, Place]:
    """The places of one object's fields, by their older keywords.

    Args:
        parameter: That takes the object.
        kind: Its class.
        same: Keywords that the fields are called like.
        renamed: From each other keyword to its field.
    """
    fields = {name: name for name in same} | renamed
    return {keyword: Place(parameter, kind, field) for keyword, field in fields.items()}


def takes_older(places: Mapping[str, Place]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function that takes these keywords, too; its signature shows the new ones alone.

    Args:
        places: By older keyword.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(*args, **renewed(call, kwargs))

        call.older = places  # type: ignore[attr-defined]
        return call

    return decorate


def renewed(function: Callable[..., object], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a call with the older ones inside of their objects.

    Args:
        function: That `takes_older`, or any other.
        keywords: As they were given.

    Raises:
        ConfigError: For an older keyword beside the object that it went into.
    """
    places: Mapping[str, Place] = getattr(function, "older", {})
    old = [keyword for keyword in keywords if keyword in places]
    found = {keyword: value for keyword, value in keywords.items() if keyword not in places}
    for keyword in old:
        parameter, kind, field = places[keyword]
        called, now = function.__name__, f"{parameter}=noisescale.{kind.__name__}({field}=...)"
        if keywords.get(parameter) is not None:
            raise ConfigError(f"{called}() got {keyword} beside {parameter}: give {now} alone")
        note = f"{called}({keyword}=...) is {called}({now}) now; the older keyword goes on working"
        _notices.once(f"{called} {keyword}", note, logging.INFO)
        found[parameter] = replace(found.get(parameter) or kind(), **{field: keywords[keyword]})
    return found
