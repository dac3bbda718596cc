"""The panel of a plan: what is planned, what a step is worth, limits with sliders, machines and their prices."""

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import html

from noisescale_dashboard.answers.plans import TradeOff
from noisescale_dashboard.planner.query import (
    FIELDS,
    KNOWN,
    MACHINES,
    MAIN,
    MORE,
    SPOT,
    SPOT_DEFAULTS,
    WORTH,
    Field,
)
from noisescale_dashboard.planner.scope import target_value
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import icon, preference_slider
from noisescale_dashboard.words.number_format import exactly

CARD = "planner-limits-card"
TIME_UNITS = (("min", "min"), ("h", "h"), ("d", "days"))
"""In which the deadline is written; the address holds hours."""
SLIDER_STEPS = 100
"""Positions of a slider; the last one is "no limit"."""


def layout() -> html.Section:
    """The panel before its first data."""
    head = html.Div(
        [
            html.Div(
                [
                    html.H2("Limits", className="tt", id=f"{CARD}-title"),
                    html.Div(id=f"{CARD}-subtitle", className="st"),
                ]
            ),
            html.Span(className="sp"),
            html.Button("Clear", id="planner-clear", className="btn small", type="button"),
            html.Button(
                icon("x"),
                className="ib b only-m",
                type="button",
                **aria({"aria-label": "Close limits", "data-planner-sheet": "close"}),
            ),
        ],
        className="hd",
    )
    body = html.Div(
        [
            _scope(),
            preference_slider("planner", html.Span("fewest examples")),
            *(_with_slider(name, field) for name, field in MAIN.items()),
            _switch("stay", "Fixed number of devices"),
            *(_number(name, field) for name, field in MACHINES.items()),
            _switch("spot", "On spot"),
            html.Div(
                [html.P(id="planner-spot-words", className="dim small"), *(_number(*one) for one in SPOT.items())],
                id="planner-spot-fields",
                hidden=True,
            ),
            _fold(
                "What a step is worth",
                "planner-worth-fold",
                [*(_number(*one) for one in WORTH.items()), _switch("fixed", "Fastest on the same devices")],
            ),
            _fold("More limits", "planner-more-fold", [_number(*one) for one in MORE.items()]),
            _fold(
                "Numbers of your own",
                "planner-known-fold",
                [
                    html.P("Use these instead of a task, or next to what its runs have shown.", className="dim small"),
                    *(_number(*one) for one in KNOWN.items()),
                ],
            ),
            html.P(id="planner-refused", className="refused small", role="status"),
            html.Div(id="planner-basis"),
        ],
        className="bd",
    )
    return html.Section([head, body], className="card planner-panel", **aria({"aria-labelledby": f"{CARD}-title"}))


def _scope() -> html.Div:
    choices = [
        dmc.Select(id=f"planner-{name}", label=label, data=[], size="xs", allowDeselect=False, searchable=searchable)
        for name, label, searchable in (
            ("task", "Task", True),
            ("run", "Plan for", False),
            ("target", "Target", False),
        )
    ]
    *always, target = choices
    return html.Div([*always, html.Div(target, id="planner-target-box", hidden=True)], className="planner-scope")


def _with_slider(name: str, field: Field) -> html.Div:
    slider = dmc.Slider(
        id=f"planner-s-{name}",
        min=0,
        max=SLIDER_STEPS,
        step=1,
        value=SLIDER_STEPS,
        label=None,
        size="sm",
        thumbLabel=f"{field.label}: {field.meaning}; the right end is no limit",
    )
    return html.Div([_number(name, field), slider], className="fld with-slider")


def _number(name: str, field: Field) -> Child:
    box = dmc.NumberInput(
        id=f"planner-f-{name}",
        label=field.label,
        value="",
        hideControls=True,
        debounce=True,
        size="xs",
        suffix="" if name == "deadline_h" else field.suffix,
        thousandSeparator=",",
        placeholder="none" if name in MAIN else "",
        **aria({"aria-label": f"{field.label}: {field.meaning}"}),
    )
    if name != "deadline_h":
        return html.Div(box, className="planner-field", title=field.meaning)
    unit = dmc.Select(
        id="planner-unit",
        data=[{"value": value, "label": label} for value, label in TIME_UNITS],
        value="h",
        allowDeselect=False,
        size="xs",
        w=66,
        **aria({"aria-label": "Unit of the deadline"}),
    )
    return html.Div([box, unit], className="planner-field has-unit", title=field.meaning)


def _switch(name: str, label: str) -> html.Div:
    return html.Div(dmc.Switch(id=f"planner-{name}", label=label, checked=False, size="xs"), className="planner-switch")


def _fold(title: str, fold_id: str, children: list[Any]) -> html.Details:
    count = html.Span(id=f"{fold_id}-count", className="dim")
    return html.Details([html.Summary([title, count]), *children], id=fold_id, className="more fold")


def placeholders(plan: TradeOff | None, *, is_on_spot: bool) -> dict[str, str]:
    """What counts where the reader has said nothing, for the fields that show it.

    Args:
        plan: With what a step takes; None before the first answer.
        is_on_spot: Whether the assumed interruptions count.
    """
    step = None if plan is None else plan.step
    known: Mapping[str, float | None] = {
        "price": None if step is None else step.usd_per_device_hour,
        "step_s": None if step is None else step.seconds,
        "devices": 1 if plan is not None and plan.is_on_one_device else None,
        **(SPOT_DEFAULTS if is_on_spot else {}),
    }
    said = {name: f"{value:.3g}" for name, value in known.items() if value is not None}
    return {name: said.get(name, "none" if name in MAIN else "") for name in FIELDS}


def target_choices(plan: TradeOff, chosen: float | None) -> list[dict[str, str]]:
    """The usual target of the task, and those that its newest sweep names; the chosen one is among them.

    Args:
        plan: With the targets.
        chosen: In the address; None for the usual one.
    """
    named = sorted({*plan.targets.values, *([chosen] if chosen is not None else [])})
    metric = (plan.targets.metric or "target").replace("_", " ")[:24]
    return [
        {"value": target_value(None), "label": "The usual one"},
        *({"value": target_value(one), "label": f"{metric} {exactly(one)}"} for one in named),
    ]


def ranges(plan: TradeOff) -> dict[str, list[float]]:
    """Between which values each slider goes: what the batches of the plan take, and the devices that run them."""
    found = {
        "deadline_h": [row.hours.value for row in plan.rows],
        "budget_usd": [row.usd.value for row in plan.rows],
        "devices": [1.0, *(row.num_devices for row in plan.rows)],
    }
    known = {name: [value for value in values if value] for name, values in found.items()}
    return {name: [min(values), max(values)] for name, values in known.items() if values and min(values) < max(values)}
