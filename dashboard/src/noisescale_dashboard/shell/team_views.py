"""Views that a project's team shares: listed, opened, made, renamed and deleted from the header of every page."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.projects import SharedView
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, is_own_site, visitor_headers
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import icon, link
from noisescale_dashboard.words.names import short_names

MAX_NAME, SHORT_NAME = 60, 28
PAGES: Mapping[str, tuple[str, str]] = {
    "overview": ("Overview", "/"),
    "runs": ("Runs", "/runs"),
    "compare": ("Compare", "/compare"),
    "sweeps": ("Sweeps", "/sweeps"),
    "planner": ("Planner", "/planner"),
}
"""The API's word for a page → what it is called, and where it is."""
CHOOSE_A_PROJECT = "Choose a project first: views are shared within a project's team."
NONE_YET = "Nothing is shared yet. Name what this page shows, and everybody in the project finds it here."


def menu() -> html.Details:
    """The menu in the header; the browser knows what the page shows (assets/modules/shell/team-views.js)."""
    form = html.Div(
        [
            dmc.TextInput(
                id="team-views-name",
                placeholder="Name of this view",
                inputProps={"maxLength": MAX_NAME},
                size="xs",
                **aria({"aria-label": "Name of this view"}),
            ),
            html.Button("Share", id="team-views-share", type="button", className="btn"),
        ],
        className="row",
        id="team-views-form",
        hidden=True,
    )
    said = html.Div(
        [
            html.Span(id="team-views-said", role="status"),
            html.Button("Undo", id="team-views-undo", type="button", className="btn small", hidden=True),
        ],
        className="row said",
    )
    return html.Details(
        [
            html.Summary(
                [icon("bookmark", "sm"), html.Span("Views", className="wide-only")],
                className="btn",
                **aria({"aria-label": "Views that the team shares"}),
            ),
            html.Div(
                [
                    html.B("Shared by the team"),
                    html.Div(id="team-views-list"),
                    form,
                    said,
                    dcc.Store(id="team-views-change"),
                    dcc.Store(id="team-views-done"),
                ],
                className="dropdown grid",
            ),
        ],
        className="details team-views",
    )


def register(app: Dash, api: ApiClient, namespace: str) -> None:
    """The list of the project's views, and what is done to them."""
    _register_list(app, api)
    _register_changes(app, api)
    app.clientside_callback(
        ClientsideFunction(namespace, "teamViewWanted"),
        Output("team-views-change", "data"),
        Input("team-views-share", "n_clicks"),
        Input("team-views-name", "n_submit"),
        Input("team-views-undo", "n_clicks"),
        State("team-views-name", "value"),
        State("team-views-done", "data"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction(namespace, "teamViewDone"),
        Output("team-views-said", "children"),
        Output("team-views-undo", "hidden"),
        Output("team-views-name", "value"),
        Output("team-views-share", "children"),
        Input("team-views-done", "data"),
        prevent_initial_call=True,
    )


def _register_list(app: Dash, api: ApiClient) -> None:
    @app.callback(
        Output("team-views-list", "children"),
        Output("team-views-form", "hidden"),
        Input("project", "value"),
        Input("team-views-done", "data"),
    )
    async def load_views(project: str | None, _done: Any) -> tuple[Child, bool]:
        if not project:
            return html.P(CHOOSE_A_PROJECT, className="dim small"), True
        try:
            views = await api.shared_views(visitor_headers(ctx.headers), project)
        except ApiProblem as problem:
            return html.P(f"Not loaded: {problem.detail}", className="dim small"), True
        return listed(views, project), False


def _register_changes(app: Dash, api: ApiClient) -> None:
    @app.callback(
        Output("team-views-done", "data"),
        Input("team-views-change", "data"),
        State("project", "value"),
        prevent_initial_call=True,
    )
    async def change(wanted: dict[str, Any] | None, project: str | None) -> dict[str, Any]:
        if not wanted or not project or not is_own_site(ctx.headers):
            raise PreventUpdate
        try:
            return await changed(api, visitor_headers(ctx.headers), project, wanted)
        except ApiProblem as problem:
            return {"words": f"Not done. {problem.detail}"}


async def changed(
    api: ApiClient, visitor: Mapping[str, str], project: str, wanted: Mapping[str, Any]
) -> dict[str, Any]:
    """What became of a change, with what takes it back.

    Raises:
        ApiProblem: When the API refuses it.
    """
    # what a change leaves out the API refuses, in words
    view_id, name, page, query = (wanted.get(field, "") for field in ("id", "name", "page", "query"))
    if wanted["do"] == "rename":
        await api.rename_shared_view(visitor, project, view_id, name)
        return {"words": f"Renamed to {name}.", "is_done": True}
    if wanted["do"] == "delete":
        known = {one.id: one for one in await api.shared_views(visitor, project)}
        await api.delete_shared_view(visitor, project, view_id)
        gone = known.get(view_id)
        undo = None if gone is None else {"do": "add", "name": gone.name, "page": gone.page, "query": gone.query}
        return {"words": "Deleted.", "undo": undo, "is_done": True}
    await api.share_view(visitor, project, name=name, page=page, query=query)
    return {"words": f"Shared as {name}.", "is_done": True}


def listed(views: Sequence[SharedView], project: str) -> Child:
    """A link a view, with what can be done to it."""
    if not views:
        return html.P(NONE_YET, className="dim small")
    short = short_names([one.name for one in views], at_most=SHORT_NAME)
    return html.Ul([_item(one, name, project) for one, name in zip(views, short, strict=True)], className="views")


def _item(one: SharedView, name: str, project: str) -> html.Li:
    page, _path = PAGES[one.page]
    about = f"{one.name}: {page}, by {one.author}"
    return html.Li(
        [
            html.Div(
                [
                    link(name, address(one, project), class_name="nm", title=about),
                    html.Div(f"{page} · {one.author}", className="dim small by", title=about),
                ]
            ),
            _button("rename", "Rename", one),
            _button("delete", "Delete", one),
        ]
    )


def _button(act: str, words: str, one: SharedView) -> html.Button:
    about = {f"data-view-{act}": one.id, "data-view-name": one.name, "aria-label": f"{words} {one.name}"}
    return html.Button(words, type="button", className="btn small", **aria(about))


def address(one: SharedView, project: str) -> str:
    """Where a view is shown: its page, its own query, and the project that it belongs to."""
    _word, path = PAGES[one.page]
    return f"{path}?{one.query + '&' if one.query else ''}project={quote(project, safe='')}"
