"""Keeping and sharing of a project on the page of settings: how long rows stay, and whether everybody may read."""

from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, html
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.projects import Keeping
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import card, note

MOST_DAYS = 36_500
NOT_ALLOWED = "Only where the server is started with NOISESCALE_PUBLIC_PROJECTS=true"


def layout() -> html.Section:
    """The card before its first data."""
    form = [
        dmc.NumberInput(
            id="settings-keeping-days",
            label="Fold rows after days without data",
            placeholder="never",
            min=1,
            max=MOST_DAYS,
            allowDecimal=False,
            size="xs",
        ),
        dmc.Switch(
            id="settings-keeping-public",
            label="Everybody may read it",
            description=NOT_ALLOWED,
            size="xs",
        ),
        html.Button("Save", id="settings-keeping-save", type="button", className="btn"),
    ]
    body = [
        html.P(
            "Of the project chosen under Prices and defaults. Rows of old runs that are folded stay in buckets of 32 "
            "steps: charts are no finer than these then, and all other figures stay. It cannot be undone.",
            className="t2",
        ),
        html.Div(id="settings-keeping-missing"),
        html.Div(id="settings-keeping-said", role="status"),
        html.Div(form, className="settings-form"),
    ]
    return card(
        "Keeping and sharing",
        "Of a project: how long rows stay, and who reads without a login",
        body,
        card_id="settings-keeping-title",
    )


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks: what the chosen project says, and saving."""

    @app.callback(
        Output("settings-keeping-days", "value"),
        Output("settings-keeping-public", "checked"),
        Output("settings-keeping-public", "disabled"),
        Output("settings-keeping-public", "description"),
        Output("settings-keeping-missing", "children"),
        Input("settings-defaults-project", "value"),
    )
    async def load_keeping(project: str | None) -> tuple[Any, ...]:
        if not project:
            return "", False, True, "", None
        try:
            found = await api.keeping(visitor_headers(ctx.headers), project)
        except ApiProblem as problem:
            return "", False, True, "", note(problem.detail)
        is_closed = not (found.is_allowed or found.is_public)
        return found.days or "", found.is_public, is_closed, NOT_ALLOWED if is_closed else "", None

    @app.callback(
        Output("settings-keeping-said", "children"),
        Input("settings-keeping-save", "n_clicks"),
        State("settings-defaults-project", "value"),
        State("settings-keeping-days", "value"),
        State("settings-keeping-public", "checked"),
        prevent_initial_call=True,
    )
    async def save_keeping(
        clicks: int | None, project: str | None, days: float | str | None, is_public: bool | None
    ) -> Child:
        if not clicks:
            raise PreventUpdate
        if not project:
            return note("Choose a project first.")
        try:
            saved = await api.keep(
                visitor_headers(ctx.headers),
                project,
                days=None if days in (None, "") else days,
                is_public=bool(is_public),
            )
        except ApiProblem as problem:
            return note(problem.detail)
        return note(sentence(project, saved), quiet=True)


def sentence(project: str, said: Keeping) -> str:
    """What holds from now on."""
    rows = "keeps every row" if said.days is None else f"folds rows of runs after {said.days} days without data"
    readers = "everybody may read it" if said.is_public else "only its people read it"
    return f"Saved. {project} {rows}; {readers}."
