"""Prices and defaults of a project on the page of settings: what is assumed where neither a run nor a question says."""

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.projects import ProjectDefaults
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import card, note

WAYS = (
    ("none", "Not set: step times decide, else balanced"),
    ("preference", "Preference: 0 data … 1 time"),
    ("examples_per_step", "Examples that saving a step is worth"),
    ("fixed_hardware", "Fixed hardware: step times say it"),
)
CURRENCIES = ("USD", "EUR", "GBP", "CHF", "CAD", "AUD", "JPY", "CNY", "INR", "KRW", "SEK", "SGD")
FIELDS = ("price", "currency", "rate", "way", "worth")
"""Of the form, in the order of its callback's values."""


def layout() -> html.Section:
    """The card before its first data."""
    choose = dmc.Select(
        id="settings-defaults-project", label="Project", placeholder="choose", searchable=True, size="xs"
    )
    form = [
        dmc.NumberInput(
            id="settings-defaults-price", label="Price of a device-hour", placeholder="not said", min=0, size="xs"
        ),
        dmc.Select(
            id="settings-defaults-currency",
            label="Currency",
            data=list(CURRENCIES),
            value="USD",
            allowDeselect=False,
            size="xs",
        ),
        dmc.NumberInput(
            id="settings-defaults-rate", label="USD for one unit of it", value=1, min=0, size="xs", decimalScale=6
        ),
        dmc.Select(
            id="settings-defaults-way",
            label="What a step is worth",
            data=[{"value": value, "label": label} for value, label in WAYS],
            value="none",
            allowDeselect=False,
            size="xs",
        ),
        dmc.NumberInput(id="settings-defaults-worth", label="How much", placeholder="not said", min=0, size="xs"),
        html.Button("Save", id="settings-defaults-save", type="button", className="btn"),
    ]
    body = [
        html.P(
            "Recommendations, the Planner and the Overview assume these where neither the run nor the question says "
            "otherwise, and say so: “assumes … (project default)”. Amounts are answered in USD.",
            className="t2",
        ),
        html.Div(choose, className="settings-form"),
        html.Div(id="settings-defaults-missing"),
        html.Div(id="settings-defaults-said", role="status"),
        html.Div(form, className="settings-form"),
    ]
    return card(
        "Prices and defaults",
        "What a device costs in a project, and what a step is worth",
        body,
        card_id="settings-defaults-title",
    )


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks: the projects, what the chosen one says, and saving."""

    @app.callback(
        Output("settings-defaults-project", "data"),
        Output("settings-defaults-project", "value"),
        Input("settings-me", "data"),
    )
    async def load_projects(me: dict[str, Any] | None) -> tuple[list[str], Any]:
        if not me:
            raise PreventUpdate
        try:
            names = [one.name for one in await api.projects(visitor_headers(ctx.headers))]
        except ApiProblem:
            return [], None
        return names, names[0] if names else None

    @app.callback(
        *(Output(f"settings-defaults-{name}", "value") for name in FIELDS),
        Output("settings-defaults-missing", "children"),
        Input("settings-defaults-project", "value"),
    )
    async def load_defaults(project: str | None) -> tuple[Any, ...]:
        if not project:
            return None, CURRENCIES[0], 1, "none", None, None
        try:
            found = await api.project_defaults(visitor_headers(ctx.headers), project)
        except ApiProblem as problem:
            return *[no_update] * len(FIELDS), note(problem.detail)
        return found.device_hour_price, found.currency, found.usd_per_unit, found.way, found.worth, None

    @app.callback(
        Output("settings-defaults-said", "children"),
        Input("settings-defaults-save", "n_clicks"),
        State("settings-defaults-project", "value"),
        *(State(f"settings-defaults-{name}", "value") for name in FIELDS),
        prevent_initial_call=True,
    )
    async def save(
        clicks: int | None,
        project: str | None,
        price: float | str | None,
        currency: str,
        rate: float | str | None,
        way: str,
        worth: float | str | None,
    ) -> Child:
        if not clicks:
            raise PreventUpdate
        if not project:
            return note("Choose a project first.")
        wanted = body_of((price, currency, rate, way, worth))
        if isinstance(wanted, str):
            return note(wanted)
        try:
            saved = await api.set_project_defaults(visitor_headers(ctx.headers), project, wanted)
        except ApiProblem as problem:
            return note(problem.detail)
        return note(sentence(project, saved), quiet=True)


def body_of(given: Sequence[Any]) -> dict[str, Any] | str:
    """What the form says, as the API takes it; a sentence where a number is missing."""
    price, currency, rate, way, worth = given
    said: dict[str, Any] = {"currency": currency}
    if price not in (None, ""):
        said["device_hour_price"] = price
    if currency != "USD":
        said["usd_per_unit"] = None if rate in (None, "") else rate
    if way == "fixed_hardware":
        return {**said, "fixed_hardware": True}
    if way == "none":
        return said
    return "Say how much a step is worth." if worth in (None, "") else {**said, way: worth}


def sentence(project: str, said: ProjectDefaults) -> str:
    """What is assumed from now on."""
    price = "no price of a device"
    if said.device_hour_price is not None:
        price = f"{said.device_hour_price:,.6g} {said.currency} a device-hour"
    worth = {
        "none": "what a step is worth is left open",
        "preference": f"a preference of {said.worth}",
        "examples_per_step": f"a step saved is worth {said.worth} examples",
        "fixed_hardware": "the devices stay as they are",
    }[said.way]
    return f"Saved. {project} assumes {price}; {worth}."
