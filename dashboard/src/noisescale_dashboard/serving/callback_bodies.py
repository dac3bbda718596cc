"""Which bodies call a callback: those that have its inputs and outputs, each with a value of the callback's own types.

Anybody may send anything to Dash's one endpoint. What no page sends is told so before a callback sees it, so that an
error inside of one is ours.
"""

import inspect
import json
from collections.abc import Mapping
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, defstruct

from noisescale_dashboard.planner.query import FIELDS, FLAGS

# What pages keep in the browser and send back with a callback: the fields that callbacks read, each with its type.
#
# Whoever calls a callback may send another value. A test sends odd ones for each field of each of them.

Fields = dict[str, Any]

_WRITTEN = r"-?\d{1,12}(\.\d{1,20})?(e[+-]?\d{1,2})?"
Word = str | None
Number = float | None
Share = Annotated[float, Meta(ge=0, le=1)]
WrittenShare = Annotated[str, Meta(pattern=r"^(0|1|0?\.\d{1,9})$")]
WrittenNumber = Annotated[str, Meta(pattern=f"^{_WRITTEN}$")]
Window = Annotated[str, Meta(pattern=f"^(auto|{_WRITTEN})$")]


def _store(name: str, required: Fields, optional: Fields | None = None, *, is_closed: bool = False) -> Any:
    """The type of an object with these fields; of others, too, unless it is closed."""
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [*required.items()]
    fields += [(field, kind, UNSET) for field, kind in (optional or {}).items()]
    return defstruct(name, fields, forbid_unknown_fields=is_closed)


def _list_of(kind: Any) -> Any:
    return GenericAlias(list, (kind,))


_RANGE: Final[Fields] = {"from": Number, "to": Number}
_RUN_SAID: Final[Fields] = {"name": str, "tags": list[str], "remarks": str}
_ADDRESSED: Final[Fields] = {"project": Word, "task": Word}
RUNS_CHANGE: Final = _store(
    "RunsChange",
    {},
    {"ids": list[str], "archived": bool, "add_tags": list[str], "remove_tags": list[str]},
    is_closed=True,
)
RUNS_VIEW: Final = _store(
    "RunsView",
    {
        "q": str, "status": Word, "decision": Word, "tag": str, "since": str, "shelf": str, "batch_min": Number,
        "batch_max": Number, "noise_min": Number, "noise_max": Number, "group": Word, "cols": str, "sort": str,
        "where": str, "trials": str, "open": str,
        "page": Annotated[int, Meta(ge=0)], **_ADDRESSED,
    },
)  # fmt: skip
RUN_VIEW: Final = _store(
    "RunView",
    {
        "x": str, "w": Window, "layer": Word, "kind": str, "show": str, "linked": bool, "envelope": bool,
        "outside": bool, **_RANGE,
    },
)  # fmt: skip
LAYERS_ASKED: Final = _store(
    "LayersAsked", {"layers": str, "term": Literal["noise", "trace_cov", "grad_sq_norm"], **_RANGE}
)
COMPARE_VIEW: Final = _store(
    "CompareView",
    {"tab": str, "runs": list[str], "x": str, "y": str, "size": str, "same": bool, **_ADDRESSED},
    {"colors": list[int | None] | None, "base": Word},
)
PLANNER_VIEW: Final = _store(
    "PlannerView",
    {"pref": Share, "y": str},
    {**_ADDRESSED, "run": Word, **dict.fromkeys(("target", *FIELDS, *FLAGS), Number)},
)
COST_VIEW: Final = _store(
    "CostView",
    {
        "tab": Literal["ImageNet", "CIFAR10", "SQuAD", "own", "growth"], "goal": Literal["min", "max"], "metric": Word,
        "target": Number, "price": Number, "spot": Number, **_ADDRESSED,
    },
)  # fmt: skip
_POSITIVE: Final = Annotated[float, Meta(gt=0, le=1e15)]
LEARN_RUN: Final[Fields] = {
    "value": _POSITIVE, "low": Number, "high": Number, "batch": _POSITIVE, "noun": str, "run_id": Word, "name": str,
}  # fmt: skip
PROBLEM: Final = _store(
    "Problem",
    {"request": str, "status": int | None, "title": str, "detail": str},
    {"errors": list[tuple[str, str]]},
    is_closed=True,
)
PLANNER_SCOPE: Final = _store(
    "PlannerScope", {"kind": str, "run_id": Word, "run_name": Word, **_ADDRESSED}, {"problem": PROBLEM | None}
)

STORES: Final[Mapping[str, Any]] = {
    "overview-view.data": _store("OverviewView", {"scope": str, "pref": WrittenShare, "project": Word}) | None,
    "overview-shown.data": _store("OverviewShown", {"stamps": dict[str, Any]}) | None,
    "project.value": Word,
    "team-views-change.data": _store(
        "ViewChange", {"do": Literal["add", "rename", "delete"]}, {"id": str, "name": str, "page": str, "query": str}
    )
    | None,
    "runs-view.data": RUNS_VIEW | None,
    "runs-cursors.data": Annotated[list[Word], Meta(min_length=1)],
    "runs-grid.selectedRows": _list_of(_store("ChosenRun", {"id": str}, {"tags": list[str]})) | None,
    "runs-new-tag.value": Word,
    "runs-copy-asked.data": _store("RunToCopy", {"id": str}) | None,
    "runs-trainer.value": Word,
    "runs-done.data": _store("RunsDone", {"words": str}, {"undo": _list_of(RUNS_CHANGE), "doomed": list[str]}) | None,
    "run-id.data": str,
    "run-said.data": _store("RunSaid", _RUN_SAID) | None,
    "run-change.data": _store("LastChange", {}, {"undo": _store("RunChange", {}, _RUN_SAID, is_closed=True)}) | None,
    "run-pinned.data": _store("Pinned", {"project": str, "is_baseline": bool}) | None,
    "run-comment-change.data": _store(
        "CommentChange", {"do": Literal["add", "edit", "delete"]}, {"id": str, "text": str}
    )
    | None,
    "run-series-view.data": RUN_VIEW | None,
    "run-beside-asked.data": _store("BesideAsked", {"view": RUN_VIEW}) | None,
    "run-pref-view.data": _store("RunPreference", {"pref": Share}) | None,
    "run-layers-asked.data": LAYERS_ASKED | None,
    "sweep-id.data": str,
    "sweeps-view.data": _store("SweepsView", {"tab": str, "workload": Word}, {"project": Word}) | None,
    "record-asked.data": int | None,
    "cost-view.data": COST_VIEW | None,
    "first-tokens.value": Word | float,
    "first-params.value": Word | float,
    "first-sequence.value": Word | float,
    "first-optimizer.value": Word | None,
    "first-mixture.checked": bool | None,
    "first-worth.value": WrittenShare | None,
    "sweeps-rows.data": _store("SweepsRows", {"fitted": list[str]}, {"project": Word}) | None,
    "sweep-view.data": _store("SweepView", {"target": WrittenNumber | Number, "regimes": str}) | None,
    "sweep-shown.data": _store("SweepShown", {"kind": str, "target": Number, "unit": str}) | None,
    "sweep-ratio.value": WrittenNumber | None,
    "learn-octaves.value": Annotated[float, Meta(ge=-16, le=16)] | None,
    "learn-run.data": _store("LearnRun", LEARN_RUN) | None,
    "compare-view.data": COMPARE_VIEW | None,
    "compare-shown.data": _store("CompareShown", {"tab": str, "at": Any}) | None,
    "planner-wanted.data": _store("PlannerWanted", {"named": list[Word], "view": PLANNER_VIEW}) | None,
    "planner-asked.data": _store("PlannerAsked", {"view": PLANNER_VIEW, "scope": PLANNER_SCOPE}) | None,
    "settings-person.value": Word,
    "settings-changes.data": int | str | None,
    "settings-me.data": _store("Me", {"makes_keys": bool, "manages": bool}) | None,
}
"""By the id and the property, as Dash names them."""


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
