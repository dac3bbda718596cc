"""The server on the page of settings: what each project has stored, its health and its version."""

import time
from importlib.metadata import version
from typing import Any
from urllib.parse import urlencode

from dash import Dash, Input, Output, ctx, html
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.server import Server, Stored
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import card, link
from noisescale_dashboard.words.number_format import count, duration, si

COLUMNS = ("Project", "Runs", "Records", "On disk, about")


def data() -> html.Section:
    """The card of what is stored, before its first data."""
    return card(
        "Data",
        "What each project has stored; its part of the database by its records",
        html.Div(id="settings-stored", className="scrollx-in", tabIndex="0"),
        card_id="settings-data-title",
        footer="Runs are deleted in the list of runs, and all their data go with them.",
    )


def health() -> html.Section:
    """The card of the server's health, before its first data."""
    return card("Health", "Of this server, just now", html.Div(id="settings-health"), card_id="settings-health-title")


def register(app: Dash, api: ApiClient) -> None:
    """What the API says of the server, once the page is there."""

    @app.callback(
        Output("settings-stored", "children"), Output("settings-health", "children"), Input("settings-stored", "id")
    )
    async def load_server(there: str | None) -> tuple[Any, ...]:
        if there is None:
            raise PreventUpdate
        begin = time.perf_counter()
        try:
            found = await api.server(visitor_headers(ctx.headers))
        except ApiProblem as problem:
            told = html.P(f"Not loaded: {problem.title}.", className="t2")
            return told, told
        return table(found.projects), facts(found, time.perf_counter() - begin)


def table(projects: tuple[Stored, ...]) -> Child:
    """A row a project, the largest first."""
    if not projects:
        return html.P("Nothing yet.", className="t2")
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in COLUMNS]))
    rows = [
        html.Tr(
            [
                html.Td(link(one.project[:60], f"/runs?{urlencode({'project': one.project})}")),
                html.Td(count(one.num_runs)),
                html.Td(si(one.num_records)),
                html.Td(bytes_words(one.num_bytes)),
            ]
        )
        for one in projects
    ]
    return html.Table([head, html.Tbody(rows)], className="tb list", **aria({"aria-label": "What is stored"}))


def bytes_words(size: int) -> str:
    """1,536,000 → "1.5 MB"."""
    said = si(float(size), 2)
    number = said.rstrip("kMGT")
    return f"{number} {said[len(number) :]}B"


def facts(found: Server, seconds: float) -> Child:
    """Server, dashboard and database with their versions, and how long the server took to answer."""
    told = (
        ("Server", f"noisescale {found.version}, answered in {duration(seconds)}"),
        ("Dashboard", version("noisescale-dashboard")),
        ("Database", f"PostgreSQL {found.database}"),
    )
    return html.Table(
        html.Tbody([html.Tr([html.Th(name, scope="row"), html.Td(words)]) for name, words in told]),
        className="tb list",
        **aria({"aria-label": "Health of this server"}),
    )
