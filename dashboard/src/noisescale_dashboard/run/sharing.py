"""Sharing a run from its page: a link that shows it alone, for some time, and ending what was shared."""

from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, html
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.projects import RunLink
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, is_own_site, visitor_headers
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import icon, note

LIVES = (("24", "for a day"), ("168", "for a week"), ("720", "for 30 days"))


def menu() -> html.Details:
    """What opens under *Share* in the head of the page."""
    form = [
        dmc.Select(
            id="run-share-hours",
            label="The link shows this run alone",
            data=[{"value": hours, "label": words} for hours, words in LIVES],
            value=LIVES[1][0],
            allowDeselect=False,
            size="xs",
        ),
        html.Button("Make a link", id="run-share-make", type="button", className="btn"),
        html.Button("End all links", id="run-share-end", type="button", className="btn"),
    ]
    body = html.Div([html.Div(form, className="settings-form"), html.Div(id="run-share-said", role="status")])
    return html.Details(
        [html.Summary([icon("share", "sm"), "Share"], className="btn"), body], className="run-share for-admins"
    )


def register(app: Dash, api: ApiClient) -> None:
    """Making a link, and ending all of the run."""

    @app.callback(
        Output("run-share-said", "children"),
        Input("run-share-make", "n_clicks"),
        Input("run-share-end", "n_clicks"),
        State("run-share-hours", "value"),
        State("run-id", "data"),
        prevent_initial_call=True,
    )
    async def share(_make: int | None, _end: int | None, hours: str | None, run_id: str | None) -> Any:
        if not ctx.triggered[0]["value"] or not run_id or not is_own_site(ctx.headers):
            raise PreventUpdate
        visitor = visitor_headers(ctx.headers)
        try:
            if ctx.triggered_id == "run-share-end":
                return note(ended(await api.end_run_links(visitor, run_id)), quiet=True)
            return made(await api.make_run_link(visitor, run_id, hours or LIVES[1][0]))
        except ApiProblem as problem:
            return note(problem.detail)


def made(link: RunLink) -> list[Child]:
    """The address, shown this once."""
    address = link.address or ""
    until = link.expires_at[:16].replace("T", " ")
    return [
        html.Pre(address, className="mono code", tabIndex="0"),
        html.P(f"Whoever has it reads this run until {until} UTC. It is not shown again.", className="t2"),
    ]


def ended(number: int) -> str:
    """How many links have ended."""
    return "No link of this run was in force." if not number else f"{number} link{'s' * (number > 1)} ended."
