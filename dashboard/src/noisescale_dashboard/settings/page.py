"""The page of settings: is it connected, and who may do what?"""

from typing import Any

from dash import Dash, Input, Output, ctx, dcc, html
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.access import Me
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.settings import alerts as settings_alerts
from noisescale_dashboard.settings import defaults as settings_defaults
from noisescale_dashboard.settings import keeping as settings_keeping
from noisescale_dashboard.settings import keys as settings_keys
from noisescale_dashboard.settings import people as settings_people
from noisescale_dashboard.settings import server as settings_server
from noisescale_dashboard.shell import shell, states
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import card

SECTIONS = (
    ("connection", "Connection"),
    ("defaults", "Prices and defaults"),
    ("keeping", "Keeping and sharing"),
    ("alerts", "Alerts"),
    ("keys", "API keys"),
    ("people", "Members"),
    ("audit", "Audit log"),
    ("stored", "Data"),
    ("health", "Health and version"),
)
WORDS_OF_RIGHTS = (
    ("manage", "may do everything"),
    ("own_keys", "may read, write and make keys"),
    ("read", "may read"),
    ("metrics", "may read the metrics"),
    ("append", "may write, and read back only how far that has arrived"),
    ("cursor", "may read back only how far its own records have arrived"),
)
"""The first right that somebody has says the most."""
CHANGED = (
    Output("settings-sentence", "children"),
    Output("settings-connection", "children"),
    Output("settings-out", "hidden"),
    Output("settings-keys-card", "hidden"),
    Output("settings-people-card", "hidden"),
    Output("settings-audit-card", "hidden"),
    Output("settings-logins", "hidden"),
)


def layout(*, narrow: bool, refresh_seconds: float) -> list[Child]:
    """The page before its first data; nothing on it changes by itself."""
    del narrow, refresh_seconds
    places = html.Nav(
        [html.A(words, href=f"#settings-{name}") for name, words in SECTIONS],
        className="settings-places",
        **aria({"aria-label": "Parts of this page"}),
    )
    connection = card(
        "Connection",
        "What a training job needs to log here",
        html.Div(id="settings-connection"),
        card_id="settings-connection-title",
        footer=html.Form(
            html.Button("Log out", className="btn"), method="POST", action="/logout", id="settings-out", hidden=True
        ),
    )
    body = [
        html.H1("Settings", className="h1"),
        html.P("Who may do what here.", id="settings-sentence", className="lede mb12"),
        html.Div(
            [
                places,
                html.Div(
                    [
                        html.Div(connection, id="settings-connection-card"),
                        html.Div(settings_defaults.layout(), id="settings-defaults-card"),
                        html.Div(settings_keeping.layout(), id="settings-keeping-card"),
                        html.Div(settings_alerts.layout(), id="settings-alerts-card"),
                        html.Div(settings_keys.layout(), id="settings-keys-card", hidden=True),
                        html.Div(settings_people.members(), id="settings-people-card", hidden=True),
                        html.Div(settings_people.log(), id="settings-audit-card", hidden=True),
                        html.Div(settings_server.data(), id="settings-data-card"),
                        html.Div(settings_server.health(), id="settings-health-card"),
                    ],
                    className="grid",
                ),
            ],
            className="settings",
        ),
        dcc.Store(id="settings-me"),
        dcc.Store(id="settings-changes"),
    ]
    return shell.page([html.B("Settings")], body)


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks of the page: who is looking, keys, members, the audit log."""

    @app.callback(*CHANGED, Output("settings-me", "data"), Input("settings-sentence", "id"))
    async def load_me(_there: str | None) -> tuple[Any, ...]:
        if _there is None:
            raise PreventUpdate
        try:
            me = await api.me(visitor_headers(ctx.headers))
        except ApiProblem as problem:
            return "Who you are is not known.", states.not_loaded(problem), True, True, True, True, True, None
        is_local = me.mode == "local"
        return (
            sentence(me),
            snippet(me),
            is_local,
            not me.makes_keys,
            not me.manages or is_local,
            not me.manages,
            "manage" not in me.everywhere,
            {"makes_keys": me.makes_keys, "manages": me.manages, "is_local": is_local},
        )

    @app.callback(Output("first-connection", "children"), Input("first-connection", "id"))
    async def load_connection(there: str | None) -> list[Child]:
        # part of the empty state of any page (states.no_runs)
        if there is None:
            raise PreventUpdate
        try:
            return connection(await api.me(visitor_headers(ctx.headers)))
        except ApiProblem as problem:
            return [html.P(f"How a job finds this server is not loaded: {problem.title}.", className="t2")]

    settings_defaults.register(app, api)
    settings_keeping.register(app, api)
    settings_alerts.register(app, api)
    settings_keys.register(app, api)
    settings_people.register(app, api)
    settings_server.register(app, api)


def sentence(me: Me) -> str:
    """Who is looking, and what they may do where."""
    if me.mode == "local":
        return (
            "This server is for you alone: it answers on this machine only, to anyone who has its link or its key file."
        )
    if me.everywhere:
        return f"You are {me.name} and {rights_text(me.everywhere)}, in every project."
    told = "; ".join(f"{rights_text(rights)} in {project}" for project, rights in me.projects)
    return f"You are {me.name}, who {told}." if told else f"You are {me.name}. Ask an admin for a role in a project."


def rights_text(rights: frozenset[str]) -> str:
    """What these rights let somebody do."""
    return next((words for right, words in WORDS_OF_RIGHTS if right in rights), "may do nothing")


def snippet(me: Me) -> list[Child]:
    """What a job needs: nothing on this machine, an address and a key elsewhere."""
    if me.mode == "local":
        return [
            *connection(me),
            html.Pre('import noisescale\n\nrun = noisescale.init(project="…")', className="mono code", tabIndex="0"),
        ]
    return connection(me)


def connection(me: Me) -> list[Child]:
    """How a job finds this server."""
    if me.mode == "local":
        words = "Jobs of the same user on this machine need nothing: they find address and key by themselves."
        return [html.P(words, className="t2")]
    return [
        html.P("Set these where the job runs. A write key is enough to log; it reads nothing back.", className="t2"),
        html.Pre(
            f"NOISESCALE_URL={me.url}\nNOISESCALE_API_KEY=ns_w_…",
            className="mono code",
            tabIndex="0",
        ),
    ]
