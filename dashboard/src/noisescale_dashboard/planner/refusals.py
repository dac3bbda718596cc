"""What the planner shows where there is no plan: a refusal beside its field, too little to plan with, no such task."""

from collections.abc import Mapping
from typing import Any

from dash import html

from noisescale_dashboard.api.transport import ApiProblem
from noisescale_dashboard.planner import query as planner_query
from noisescale_dashboard.planner import words as sentences
from noisescale_dashboard.planner.query import FIELDS, View
from noisescale_dashboard.planner.scope import Scope
from noisescale_dashboard.shell import states
from noisescale_dashboard.shell.parts import link
from noisescale_dashboard.words.number_format import unbroken
from noisescale_dashboard.words.sentences import preference_word


def of_scope(scope: Scope, view: View) -> dict[str, Any]:
    """What the page shows of any scope, also where there is no plan for it."""
    return {
        "planner-crumb.children": scope.title,
        "planner-pref-word.children": (
            "by the price below" if planner_query.has_price(view) else preference_word(view["pref"])
        ),
        "planner-spot-words.children": sentences.spot_words(view),
        "planner-note.children": None,
        "planner-body.className": "",
    }


def field_errors(beside: Mapping[str, str]) -> dict[str, Any]:
    """What is refused, beside its fields."""
    beside_fields = {f"planner-f-{name}.error": beside.get(name) for name in FIELDS}
    return {**beside_fields, "planner-target.error": beside.get("target")}


def refused(problem: ApiProblem, scope: Scope, view: View, *, is_shown: bool) -> dict[str, Any]:
    """A refusal beside its field, with what is shown left in its place; no plan where run or task tell too little."""
    beside, told_above = planner_query.refusal(problem)
    errors = field_errors(beside)
    if problem.status != 422:
        return {**of_scope(scope, view), **not_found(problem, view, is_shown=is_shown)}
    if any(field.rsplit(".", 1)[-1] in ("run_id", "task") for field, _ in problem.errors):
        return {**of_scope(scope, view), **errors, **_too_little(problem, scope)}
    changes = {**of_scope(scope, view), **errors, "planner-refused.children": told_above}
    # beside the fields too, but on a phone these are out of sight
    told = [f"{FIELDS[name].label if name in FIELDS else name}: {message}" for name, message in beside.items()]
    said = unbroken(". ".join(told) or problem.detail)
    return {**changes, "planner-head.children": "Not planned: see the limits", "planner-lede.children": said}


def _too_little(problem: ApiProblem, scope: Scope) -> dict[str, Any]:
    hint = " Give critical_batch instead"
    told = [
        message.removesuffix(hint)
        for field, message in problem.errors
        if field.rsplit(".", 1)[-1] in ("run_id", "task")
    ]
    return {
        "planner-cards.hidden": True,
        "planner-figures.data": None,
        "planner-head.children": "Not enough is known to plan yet",
        "planner-lede.children": f"Not enough data to plan {scope.title[:60]}.",
        "planner-missing.children": html.Section(
            [
                html.H2("What is missing", className="tt"),
                html.P(unbroken(" ".join(told)), className="t2"),
                html.P("Or type a critical batch under “Numbers of your own”.", className="t2"),
            ],
            className="card empty",
        ),
        "planner-limits-card-subtitle.children": scope.title[:60],
        "planner-basis.children": None,
        "planner-what-ifs.children": None,
        "planner-ways.children": None,
        "planner-beyond.children": None,
        "planner-refused.children": None,
    }


def nothing_yet() -> dict[str, Any]:
    """What changes where there is neither a task nor a run."""
    return {
        "planner-cards.hidden": True,
        "planner-head.children": "Nothing to plan yet",
        "planner-lede.children": (
            "A plan takes the critical batch of a task from its runs and sweeps, or as it is typed under “Numbers of "
            "your own”."
        ),
        "planner-missing.children": states.no_runs(is_filtered=False),
    }


def not_found(problem: ApiProblem, view: View, *, is_shown: bool) -> dict[str, Any]:
    """What changes when the API does not answer: nothing that is already shown goes away."""
    if is_shown and not problem.is_missing:
        return {"planner-note.children": states.paused(None)}
    found = states.no_such_run() if view.get("run") else _no_such_task()
    return {
        "planner-missing.children": found if problem.is_missing else states.not_loaded(problem),
        "planner-cards.hidden": True,
        "planner-figures.data": None,
        "planner-body.className": "",
        "planner-head.children": "Planner",
        "planner-lede.children": None,
        "planner-crumb.children": "not found" if problem.is_missing else "not loaded",
    }


def _no_such_task() -> html.Section:
    text = "It was deleted or renamed, the address is wrong, or it belongs to someone else."
    return html.Section(
        [
            html.H2("No such task", className="tt"),
            html.P(text, className="t2"),
            html.P(link("Plan the newest task", "/planner", class_name="btn")),
        ],
        className="card empty",
    )
