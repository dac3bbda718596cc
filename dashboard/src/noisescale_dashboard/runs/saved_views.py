"""Views of the list of runs that a reader has named: kept in the reader's browser, each of them an address."""

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, html

from noisescale_dashboard.shell import shell
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import icon

MAX_NAME = 40


def controls() -> list[Child]:
    """The choice of a view, and what names, keeps and forgets one."""
    choice = dmc.Select(
        id="runs-saved",
        data=[],
        placeholder="Saved views",
        clearable=True,
        searchable=True,
        size="xs",
        w=150,
        leftSection=icon("bookmark", "sm"),
        nothingFoundMessage="None saved in this browser",
        **aria({"aria-label": "Saved views"}),
    )
    form = html.Details(
        [
            html.Summary("Save view", className="btn"),
            html.Div(
                [
                    dmc.TextInput(
                        id="runs-save-name",
                        placeholder="Name",
                        inputProps={"maxLength": MAX_NAME},
                        size="xs",
                        **aria({"aria-label": "Name of the view"}),
                    ),
                    html.Div(
                        [
                            html.Button("Save", id="runs-save", type="button", className="btn"),
                            html.Button("Forget", id="runs-forget", type="button", className="btn", hidden=True),
                        ],
                        className="row",
                    ),
                    html.P("Kept in this browser; the address alone shows anyone the same.", className="dim small"),
                ],
                className="dropdown grid",
            ),
        ],
        className="details",
    )
    return [choice, form]


def register(app: Dash) -> None:
    """All of it runs in the browser; assets/modules/runs/saved-views.js."""
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "savedViews"),
        Output("runs-saved", "data"),
        Output("runs-saved", "value"),
        Output("runs-forget", "hidden"),
        Input("saved-views", "data"),
        Input("runs-view", "data"),
    )
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "openSavedView"),
        Output("runs-save-name", "value"),
        Input("runs-saved", "value"),
        State("saved-views", "data"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "keepView"),
        Output("saved-views", "data"),
        Input("runs-save", "n_clicks"),
        Input("runs-save-name", "n_submit"),
        Input("runs-forget", "n_clicks"),
        State("runs-save-name", "value"),
        State("runs-saved", "value"),
        State("saved-views", "data"),
        prevent_initial_call=True,
    )
