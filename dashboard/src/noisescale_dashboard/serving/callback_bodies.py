"""Which bodies call a callback: those that have its inputs and outputs, each with a value of the callback's own types.

Anybody may send anything to Dash's one endpoint. What no page sends is told so before a callback sees it, so that an
error inside of one is ours.
"""

import inspect
import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from noisescale_dashboard.serving.stores import STORES

AGAIN: Final = "load the page again"


class Bodies:
    """The callbacks of one dashboard, by their outputs as Dash writes them."""

    def __init__(self, callbacks: Mapping[str, Mapping[str, Any]]) -> None:
        self._callbacks = callbacks
        self._kinds = cache(_kinds)

    def whats_wrong(self, body: Any) -> str | None:
        """Why this body calls no callback; None where it does. None as a body is one that Dash could not read."""
        if not isinstance(body, dict):
            return f"the body is not the JSON of a callback, or nested too deeply: {AGAIN}"
        output = body.get("output")
        if not isinstance(output, str):
            return f"output is missing, or of another type: {AGAIN}"
        callback = self._callbacks.get(output)
        if callback is None or "callback" not in callback:
            return f"no callback has this output: {AGAIN}, the server may be of another release"
        return (
            _wrong_outputs(body.get("outputs"), callback)
            or _wrong_parts("inputs", body.get("inputs"), callback)
            or _wrong_parts("state", body.get("state", []), callback)
            or _wrong_triggers(body.get("changedPropIds"), callback)
            or _wrong_values([*body["inputs"], *body.get("state", [])], self._kinds(callback["callback"]))
        )


def _wrong_outputs(sent: Any, callback: Mapping[str, Any]) -> str | None:
    has_many = isinstance(callback["output"], list | tuple)
    named = [_named(part) for part in sent] if isinstance(sent, list) and has_many else [_named(sent)]
    wanted = callback["output"] if has_many else [callback["output"]]
    if named != [f"{one.component_id}.{one.component_property}" for one in wanted]:
        return f"outputs are not those of {_known(callback)}: {AGAIN}"
    return None


def _wrong_parts(name: str, sent: Any, callback: Mapping[str, Any]) -> str | None:
    wanted = [f"{part['id']}.{part['property']}" for part in callback[name]]
    if not isinstance(sent, list) or [_named(part) for part in sent] != wanted:
        return f"{name} are not those of {_known(callback)}: {AGAIN}"
    return None


def _wrong_triggers(sent: Any, callback: Mapping[str, Any]) -> str | None:
    known = [f"{part['id']}.{part['property']}" for part in callback["inputs"]]
    if not isinstance(sent, list) or not all(isinstance(one, str) and one in known for one in sent):
        return f"changedPropIds are not inputs of {_known(callback)}: {AGAIN}"
    return None


def _wrong_values(parts: list[dict[str, Any]], kinds: tuple[Any, ...]) -> str | None:
    for place, part in enumerate(parts):
        name = _named(part)
        kind = kinds[place] if place < len(kinds) else Any
        try:
            msgspec.convert(part.get("value"), STORES.get(name or "", kind))
            # no browser writes numbers that are none, nor halves of characters
            json.dumps(part.get("value"), allow_nan=False, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            said = str(error).encode(errors="replace").decode()
            return f"{name} has a value that no page sends ({said}): {AGAIN}"
    return None


def _kinds(callback: Any) -> tuple[Any, ...]:
    """The types of a callback's arguments, as far as it names them one by one."""
    parameters = inspect.signature(inspect.unwrap(callback)).parameters.values()
    # what a page has not set yet is None
    return tuple(one.annotation | None for one in parameters if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _named(part: Any) -> str | None:
    """A part of a body as Dash names it, without what tells two callbacks with the same output apart."""
    if not isinstance(part, dict):
        return None
    name, property_name = part.get("id"), part.get("property")
    if not isinstance(name, str) or not isinstance(property_name, str):
        return None
    return f"{name}.{property_name.split('@')[0]}"


def _known(callback: Mapping[str, Any]) -> str:
    first = callback["output"][0] if isinstance(callback["output"], list | tuple) else callback["output"]
    return f"the callback of {first.component_id}.{first.component_property}"
