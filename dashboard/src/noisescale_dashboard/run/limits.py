"""The fold "Plan with limits": what a step is worth and what the rest of the run may take, all kept in the address."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, html

from noisescale_dashboard.answers.advice import Recommendation
from noisescale_dashboard.answers.plans import Limit
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.question_fields import BALANCED, on_run
from noisescale_dashboard.api.question_fields import FIELDS as QUESTION_FIELDS
from noisescale_dashboard.api.transport import ApiProblem
from noisescale_dashboard.planner.query import FIELDS as PLANNER_FIELDS
from noisescale_dashboard.planner.query import SPOT as PLANNER_SPOT
from noisescale_dashboard.shell import shell
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import icon
from noisescale_dashboard.words.number_format import unbroken

PRICES, LIMITS, SPOT = on_run("price"), on_run("limit"), on_run("spot")
SWITCHES = tuple(one.asks for one in QUESTION_FIELDS if one.is_switch)
"""What is said by yes; 1 in the address."""
FIELDS = {**PRICES, **LIMITS, **SPOT}
"""The API's word, which also stands in the address, to a label and what it means."""

PLANNER_WORDS = {field.asks: name for name, field in PLANNER_FIELDS.items()} | {
    "num_devices": "devices",
    "fixed_hardware": "fixed",
}
"""The API's word to that of the planner's address."""


def layout() -> html.Details:
    """The form before its first data."""
    buttons = [
        html.Button("Plan", id="run-limits-apply", className="btn primary", type="button"),
        html.Button("Clear", id="run-limits-clear", className="btn", type="button"),
    ]
    return html.Details(
        [
            html.Summary(["Plan with limits", html.Span(id="run-limits-count")]),
            _group("What a step is worth", "One of the three, or the preference above.", PRICES),
            _group("Limits of the rest", "As many as there are.", LIMITS),
            _group("On spot", "For interruptible devices.", SPOT),
            html.Div([*buttons, html.Span(className="sp"), planner_link()], className="row wrap"),
            html.P(id="run-limits-refused", className="refused small", role="status"),
        ],
        id="run-limits-fold",
        className="more fold",
    )


def _group(title: str, about: str, fields: Mapping[str, tuple[str, str]]) -> html.Fieldset:
    boxes = [_field(name, *words) for name, words in fields.items()]
    legend = html.Legend([html.B(title), html.Span(about, className="between")])
    return html.Fieldset([legend, html.Div(boxes, className="limit-fields")], className="limits")


def _field(name: str, label: str, meaning: str) -> Child:
    if name in SWITCHES:
        return dmc.Switch(id=f"run-limit-{name}", label=label, description=meaning, checked=False, size="xs")
    return dmc.NumberInput(
        id=f"run-limit-{name}",
        label=label,
        description=meaning,
        value="",
        hideControls=True,
        size="xs",
        **aria({"aria-label": f"{label}: {meaning}"}),
    )


def planner_link() -> html.A:
    """A link to the planner, before its address is known: it carries the limits of the view."""
    words: list[Child] = [icon("planner", "sm"), "Open in the planner"]
    return html.A(words, id="run-planner", href="/planner", className="btn", **aria({"data-go": "page"}))


def planner_address(run_id: str, view: Mapping[str, Any]) -> str:
    """The planner for the rest of a run, at the price and inside the limits of its page's view."""
    said: dict[str, Any] = {"run": run_id}
    said |= {} if has_price(view) or view.get("pref") in (None, BALANCED) else {"pref": view["pref"]}
    said |= {PLANNER_WORDS[name]: value for name, value in asked(view).items()}
    # the card's devices stay whatever the batch
    said |= {"stay": 1} if view.get("num_devices") is not None else {}
    if view.get("spot_price_share") is not None:
        # the planner assumes what it is not told of interruptions, the card nothing
        said |= {"spot": 1, **{name: said.get(name, 0) for name in PLANNER_SPOT}}
    return f"/planner?{urlencode(said)}"


def register(app: Dash) -> None:
    """Fields and address in both directions, in the browser alone (assets/modules/run/limits.js)."""
    values = [(f"run-limit-{name}", "checked" if name in SWITCHES else "value") for name in FIELDS]
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "limitsShown"),
        *(Output(*one) for one in values),
        Output("run-limits-fold", "open"),
        Output("run-limits-count", "children"),
        Output("run-pref", "disabled"),
        Input("run-pref-view", "data"),
    )
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "limitsApplied"),
        Input("run-limits-apply", "n_clicks"),
        Input("run-limits-clear", "n_clicks"),
        *(Input(f"run-limit-{name}", "n_submit") for name in FIELDS if name not in SWITCHES),
        *(State(*one) for one in values),
        State("run-view", "data"),
        prevent_initial_call=True,
    )


def asked(view: Mapping[str, Any]) -> dict[str, Any]:
    """Price and limits of a view as a query of the API."""
    return {name: view[name] for name in FIELDS if view.get(name) is not None}


async def allowed(
    api: ApiClient, visitor: Mapping[str, str], run_id: str, view: Mapping[str, Any]
) -> tuple[Limit, ...]:
    """The batches that each limit of the view allows, also where it does not bind; none where they cannot be told."""
    if not any(view.get(name) is not None for name in LIMITS):
        return ()
    try:
        return await api.limits(visitor, run_id, view["pref"], asked(view))
    except ApiProblem:
        # the recommendation says what is missing
        return ()


def has_price(view: Mapping[str, Any]) -> bool:
    """Whether the view says what a step is worth, so that the slider does not."""
    return any(view.get(name) is not None for name in PRICES)


REFUSED = (*(Output(f"run-limit-{name}", "error") for name in FIELDS), Output("run-limits-refused", "children"))
"""What stands beside the fields after a refusal, and what belongs to none of them."""


def refusal(problem: ApiProblem | None) -> tuple[Any, ...]:
    """For each of `REFUSED` what the API did not accept; all empty after an answer."""
    if problem is None:
        return (*[None] * len(FIELDS), None)
    by_field = {field.rsplit(".", 1)[-1]: message for field, message in problem.errors}
    beside = [by_field.get(name) for name in FIELDS]
    return (*beside, None if any(beside) else problem.detail)


def outcome(advice: Recommendation) -> list[Child]:
    """What a step is worth by the reader's own words, and which limit binds."""
    said: list[Child] = []
    worth = advice.exchange_rate
    if worth is not None and worth.source != "preference" and worth.text:
        said.append(html.P(unbroken(f"{worth.text[0].upper()}{worth.text[1:].rstrip('.')}."), className="why"))
    limited = advice.limited
    if limited is None or limited.batch_size is None or not limited.binding:
        return said
    return [*said, *(html.P(unbroken(text), className="why") for text in _untold(advice)[:1])]


def possible(advice: Recommendation) -> list[str]:
    """Which limits exclude each other and what is possible instead, where no batch meets them."""
    return _untold(advice) if advice.limited is not None and advice.limited.batch_size is None else []


def _untold(advice: Recommendation) -> list[str]:
    # the reason may say the same: a sentence is said once
    limited, told = advice.limited, (advice.short_reason, advice.reason or "", advice.effect or "")
    return [text for text in (limited.text, limited.possible) if text and text not in told] if limited else []
