"""The frame of every page: side bar, top bar, and the state that belongs to the reader (theme, width)."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html
from dash.exceptions import PreventUpdate

from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.questions.access import GUESTS
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.figures.parts.theme import FONT, dark_of_light
from noisescale_dashboard.shell import team_views
from noisescale_dashboard.shell.explained import Child, Children, aria, listed, tips
from noisescale_dashboard.shell.parts import icon, link

NAMESPACE = "noisescale"
MIN_TO_SWITCH = 2
PAGES = (
    ("overview", "Overview", "/"),
    ("runs", "Runs", "/runs"),
    ("compare", "Compare", "/compare"),
    ("sweeps", "Sweeps", "/sweeps"),
    ("planner", "Planner", "/planner"),
    ("clock", "Cost", "/cost"),
    ("info", "Learn", "/learn"),
    ("settings", "Settings", "/settings"),
)
"""Icon, word and address of the pages in the navigation, in its order; a page stands here once it exists."""
REPRODUCE = ("check", "Reproduce", "/reproduce")
"""The same of the page that has a place in the navigation only where the server has a reproduction."""


ALL_PROJECTS = {"value": "", "label": "All projects"}


def layout() -> dmc.MantineProvider:
    """Everything that stays while the reader goes from page to page."""
    return dmc.MantineProvider(
        defaultColorScheme="auto",
        theme={"primaryColor": "blue", "fontFamily": FONT, "defaultRadius": 6},
        children=html.Div(
            [
                html.A("Skip to the content", href="#content", className="skip"),
                dcc.Location(id="address", refresh="callback-nav"),
                dcc.Store(id="narrow"),
                dcc.Store(id="theme"),
                dcc.Store(id="palettes", data=dark_of_light()),
                # named by the reader on the page of runs, linked on every page; assets/modules/runs/saved-views.js
                dcc.Store(id="saved-views", storage_type="local"),
                # asked while nothing else asks, so that every page knows when the server is gone and when it is back
                dcc.Store(id="beat"),
                dcc.Store(id="reproduced"),
                dcc.Store(id="beat-answer"),
                html.Div(
                    [icon("clock", "sm"), html.Span(id="outage-words")],
                    id="outage",
                    className="note outage",
                    hidden=True,
                    role="status",
                ),
                html.Aside(_side_bar(), className="side"),
                html.Div(id="page", className="main"),
                tips(),
            ],
            id="shell",
            className="shell",
        ),
    )


async def shell_class(api: ApiClient, visitor: Mapping[str, str]) -> str:
    """The class of the frame: what would be refused to guests is not shown to them (assets/34-comments.css).

    Args:
        api: Asked who is looking.
        visitor: Headers of the call.
    """
    try:
        await api.me(visitor)
    except ApiProblem as problem:
        if problem.status not in GUESTS:
            return "shell"
    else:
        return "shell"
    try:
        await api.projects(visitor)
    except ApiProblem:
        # a link shows one run, and no list
        return "shell guest by-link"
    return "shell guest"


def _side_bar() -> list[Child]:
    brand = link([html.Span(className="mark"), html.Span("noisescale")], "/", class_name="brand")
    return [
        brand,
        html.Nav(navigation("/"), id="nav", className="nav", **aria({"aria-label": "Pages"})),
        html.Nav(id="side-views", className="side-views", **aria({"aria-label": "Saved views"})),
    ]


def navigation(pathname: str, *, has_reproduction: bool = False) -> list[Child]:
    """Links to the pages; the one that this address belongs to is marked."""
    here = pathname.strip("/").split("/")[0]
    *first, learn, last = PAGES
    pages = (*first, REPRODUCE, learn, last) if has_reproduction else PAGES
    return [
        link([icon(name), html.Span(word)], address, class_name="on" if is_here else "", is_current=is_here, title=word)
        for name, word, address in pages
        for is_here in (address.strip("/") == here,)
    ]


def page(crumbs: Sequence[Child], body: Children, *, live_state: Children = None) -> list[Child]:
    """A page in its frame: top bar with the path, then the content."""
    path = html.Nav([html.Span(className="mark only-m"), *crumbs], className="crumb", **aria({"aria-label": "Path"}))
    toggle = html.Button(
        html.Span(className="i theme-icon", **aria({"aria-hidden": "true"})),
        id="theme-toggle",
        className="ib b",
        **aria({"aria-label": "Switch between light and dark"}),
    )
    top = html.Header(
        [path, html.Span(className="sp"), _project(), team_views.menu(), _find(), *listed(live_state), toggle],
        className="top",
    )
    return [top, html.Main(listed(body), className="page", id="content", tabIndex="-1")]


def _project() -> html.Div:
    """Which project the lists are of, on every page; in the address as `project=` (assets/modules/shell/project.js)."""
    return html.Div(
        dmc.Select(
            id="project",
            data=[ALL_PROJECTS],
            value="",
            allowDeselect=False,
            searchable=True,
            size="xs",
            w=158,
            **aria({"aria-label": "Project"}),
        ),
        id="project-box",
        className="project",
        hidden=True,
    )


def _find() -> dmc.TextInput:
    """Part of a run's name, from any page; the list of runs has its own field (assets/modules/shell/find.js)."""
    return dmc.TextInput(
        id="find",
        placeholder="Find a run",
        leftSection=icon("search", "sm"),
        rightSection=html.Kbd("/"),
        className="search find",
        size="xs",
        w=210,
        **aria({"aria-label": "Find a run"}),
    )


def register(app: Dash, api: ApiClient) -> None:
    """Theme, width, project, whether the API can answer, and whether it has a reproduction."""

    @app.callback(Output("beat-answer", "data"), Input("beat", "data"))
    async def answer(beat: float | None) -> float | None:
        if beat is None:
            raise PreventUpdate
        # whether it did is in the header of this answer
        with suppress(ApiProblem):
            await api.ready(visitor_headers(ctx.headers))
        return beat

    @app.callback(Output("project", "data"), Output("project-box", "hidden"), Input("project", "id"))
    async def load_projects(_component_id: str) -> tuple[list[dict[str, str]], bool]:
        try:
            names = [project.name for project in await api.projects(visitor_headers(ctx.headers))]
        except ApiProblem:
            # the page itself says what is wrong with the API
            raise PreventUpdate from None
        # one project needs no switch
        return [ALL_PROJECTS, *({"value": name, "label": name[:80]} for name in names)], len(names) < MIN_TO_SWITCH

    app.clientside_callback(
        ClientsideFunction(NAMESPACE, "projectSwitch"),
        Output("project", "value"),
        Input("address", "search"),
        Input("project", "value"),
        Input("project", "data"),
    )

    @app.callback(Output("shell", "className"), Input("shell", "id"))
    async def tell_guests_apart(_component_id: str) -> str:
        return await shell_class(api, visitor_headers(ctx.headers))

    team_views.register(app, api, NAMESPACE)

    @app.callback(Output("reproduced", "data"), Input("reproduced", "id"))
    async def look_for_reproductions(_store: str) -> bool:
        try:
            return bool((await api.reproductions(visitor_headers(ctx.headers), {"limit": 1})).total)
        except ApiProblem:
            # the page says what is wrong with the API; without the link the page has an address still
            return False

    @app.callback(
        Output("nav", "children", allow_duplicate=True),
        Input("reproduced", "data"),
        State("address", "pathname"),
        prevent_initial_call=True,
    )
    def name_the_page(has_reproduction: bool | None, pathname: str | None) -> list[Child]:
        if not has_reproduction or pathname is None:
            raise PreventUpdate
        return navigation(pathname, has_reproduction=True)

    app.clientside_callback(
        ClientsideFunction(NAMESPACE, "watchWidth"), Output("narrow", "data"), Input("narrow", "id")
    )
    app.clientside_callback(
        ClientsideFunction(NAMESPACE, "linkedViews"), Output("side-views", "children"), Input("saved-views", "data")
    )
    app.clientside_callback(
        ClientsideFunction(NAMESPACE, "findRun"),
        Output("find", "value"),
        Input("find", "n_submit"),
        State("find", "value"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction(NAMESPACE, "switchTheme"),
        Output("theme", "data"),
        Input("theme-toggle", "n_clicks"),
        State("theme", "data"),
    )
