"""The name of a sweep: a form that changes it."""

from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, is_own_site, visitor_headers
from noisescale_dashboard.shell.parts import icon


def form() -> html.Details:
    """A field for the name, folded away; Enter saves it as the button does."""
    fields = html.Div(
        [
            dmc.TextInput(id="sweep-name", label="Name", size="xs", value=""),
            html.Div(
                [
                    html.Button("Save", id="sweep-name-save", type="button", className="btn"),
                    html.Span(id="sweep-name-said", role="status", className="dim small"),
                ],
                className="row",
            ),
        ],
        className="dropdown",
    )
    return html.Details(
        [html.Summary([icon("tag", "sm"), "Rename"], className="btn"), fields], className="details for-writers"
    )


def register(app: Dash, api: ApiClient) -> None:
    """Saving the name."""

    @app.callback(
        Output("sweep-name-said", "children"),
        Output("sweep-crumb", "children", allow_duplicate=True),
        Output("sweep-name", "placeholder", allow_duplicate=True),
        Input("sweep-name-save", "n_clicks"),
        Input("sweep-name", "n_submit"),
        State("sweep-name", "value"),
        State("sweep-id", "data"),
        prevent_initial_call=True,
    )
    async def rename(_clicks: int | None, _submits: int | None, name: str | None, sweep_id: str) -> tuple[Any, ...]:
        if not ctx.triggered[0]["value"] or not is_own_site(ctx.headers):
            raise PreventUpdate
        wanted = (name or "").strip()
        if not wanted:
            return "Type a name.", no_update, no_update
        try:
            sweep = await api.rename_sweep(visitor_headers(ctx.headers), sweep_id, wanted)
        except ApiProblem as problem:
            return f"Not saved. {problem.detail}", no_update, no_update
        return "Saved.", sweep.name, sweep.name
