"""The dashboard as an application: the only place where pages, API client and server meet."""

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
from dash import Dash, Input, Output, State, html
from dash.exceptions import PreventUpdate
from fastapi import FastAPI
from fastapi.middleware.gzip import GZipMiddleware
from plotly.io import json as plotly_json

from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.outages import OutageHeader
from noisescale_dashboard.api.question_fields import for_scripts
from noisescale_dashboard.compare import page as compare
from noisescale_dashboard.cost import page as cost
from noisescale_dashboard.learn import page as learn
from noisescale_dashboard.overview import page as overview
from noisescale_dashboard.planner import first_batch
from noisescale_dashboard.planner import page as planner
from noisescale_dashboard.record import page as record
from noisescale_dashboard.report import page as run_report
from noisescale_dashboard.reproduce import page as reproduce
from noisescale_dashboard.run import page as run
from noisescale_dashboard.runs import export as runs_export
from noisescale_dashboard.runs import page as runs
from noisescale_dashboard.serving import dash_errors
from noisescale_dashboard.serving.modules import Modules
from noisescale_dashboard.serving.packed_assets import PackedAssets, named_in
from noisescale_dashboard.serving.page_routes import PageRoutes, is_id
from noisescale_dashboard.serving.settings import DashboardSettings
from noisescale_dashboard.settings import page as settings_page
from noisescale_dashboard.shell import first_run, shell, states
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.sweeps import list_page as sweeps
from noisescale_dashboard.sweeps import page as sweep

ASSETS = Path(__file__).parent / "assets"
SAME_PROCESS = "http://127.0.0.1"
"""Base address of calls that never leave the process; only its form matters."""
INDEX = """<!DOCTYPE html>
<html lang="en" data-question='{question}'>
<head>
{%metas%}
<title>{%title%}</title>
<link rel="icon" type="image/svg+xml" href="/assets/mark.svg">
<link rel="preload" href="/assets/fonts/inter.woff2" as="font" type="font/woff2" crossorigin>
<script src="/assets/boot/first-theme.js"></script>
{modules}
{%css%}
</head>
<body>
{%app_entry%}
<footer>{%config%}{%scripts%}{%renderer%}</footer>
</body>
</html>"""
META_TAGS = [
    {"name": "viewport", "content": "width=device-width, initial-scale=1"},
    {"name": "color-scheme", "content": "light dark"},
]


def mount(app: FastAPI) -> None:
    """Put the dashboard on `app`, after its API routes; entry point of the group `noisescale.asgi`.

    It reads the API of the same process, or the one at NOISESCALE_DASHBOARD_API_URL. A server that was filled for one
    reading (`app.state.read_from`) always shows its own data.
    """
    settings = DashboardSettings()
    if getattr(app.state, "read_from", None) is not None:
        settings = settings.model_copy(update={"api_url": None})
    transport = None if settings.api_url else httpx.ASGITransport(app=app)
    _install(app, settings, _client(settings, transport))


def create_app(settings: DashboardSettings, api: ApiClient | None = None) -> FastAPI:
    """The dashboard alone, reading `api` or the address in the settings."""
    app = FastAPI(openapi_url=None)
    _install(app, settings, api or _client(settings, None))
    return app


def _client(settings: DashboardSettings, transport: httpx.AsyncBaseTransport | None) -> ApiClient:
    return ApiClient(
        base_url=settings.api_url or SAME_PROCESS, transport=transport, timeout_seconds=settings.api_timeout_seconds
    )


def _install(app: FastAPI, settings: DashboardSettings, api: ApiClient) -> None:
    # before Dash, which answers whatever path is left
    run_report.register(app, api)
    runs_export.add_download(app, api)
    modules = Modules(ASSETS / "modules")
    modules.mount(app)
    dashboard = Dash(
        "noisescale_dashboard",
        server=app,  # type: ignore[arg-type]  # annotated for Flask; a FastAPI app selects that backend
        assets_folder=str(ASSETS),
        assets_path_ignore=["boot", "modules"],  # the page itself names what is in these
        title="noisescale",
        update_title="",
        index_string=INDEX.replace("{question}", for_scripts()).replace("{modules}", modules.preloads()),
        meta_tags=META_TAGS,
        serve_locally=True,
        suppress_callback_exceptions=True,
        add_log_handler=False,
    )
    # its walk over every number of a figure in Python takes three times as long as json's encoder in C
    plotly_json.config.default_engine = "json"
    # no callback uses a socket, and with it every open tab would hold one
    dashboard.backend.websocket_capability = False
    dashboard.renderer = modules.then(dashboard.renderer)
    dashboard.layout = shell.layout()
    for page in (
        shell,
        first_run,
        overview,
        runs,
        run,
        sweeps,
        sweep,
        compare,
        planner,
        first_batch,
        cost,
        reproduce,
        record,
        learn,
        settings_page,
    ):
        page.register(dashboard, api)
    _register_routing(dashboard, settings)
    # Dash waits with this for a request for "/" or for an endpoint of its own: a first visitor with a wrong address
    # would get a page without scripts
    dashboard._setup_server()
    _put_first(app, "/_dash-update-component")
    dash_errors.register(app, dashboard.callback_map)
    present: list[object] = [middleware.cls for middleware in app.user_middleware]
    if not any(isinstance(one, type) and issubclass(one, GZipMiddleware) for one in present):
        # Dash compresses nothing: 5.6 MB of scripts would go out instead of 1.7
        app.add_middleware(GZipMiddleware, minimum_size=500)
    app.add_middleware(OutageHeader)
    app.add_middleware(PageRoutes, script_hashes=dashboard.csp_hashes())
    # outermost of the dashboard's: what is the same for everybody passes no other; the gate of a server is around it
    head = dashboard._generate_scripts_html() + dashboard._generate_css_dist_html() + dashboard.index_string
    app.add_middleware(PackedAssets, addresses=named_in(head))


def _put_first(app: FastAPI, path: str) -> None:
    """Let the route of what pages ask for most be found first, not after every route of the API."""
    routes = app.router.routes
    routes.sort(key=lambda route: getattr(route, "path", None) != path)


def _register_routing(dashboard: Dash, settings: DashboardSettings) -> None:
    @dashboard.callback(
        Output("page", "children"),
        Output("nav", "children"),
        Input("address", "pathname"),
        Input("narrow", "data"),
        State("reproduced", "data"),
    )
    def show_page(
        pathname: str | None, narrow: bool | None, has_reproduction: bool | None
    ) -> tuple[list[Child], list[Child]]:
        if pathname is None or narrow is None:
            raise PreventUpdate
        navigation = shell.navigation(pathname, has_reproduction=bool(has_reproduction))
        return page_at(pathname, narrow=narrow, settings=settings), navigation


def page_at(pathname: str, *, narrow: bool, settings: DashboardSettings) -> list[Child]:
    """The page of an address."""
    parts = [unquote(part) for part in pathname.split("/") if part]
    look: dict[str, Any] = {"narrow": narrow, "refresh_seconds": settings.refresh_seconds}
    match parts:
        case []:
            return overview.layout(**look)
        case ["runs"]:
            return runs.layout(**look)
        case ["runs", run_id] if is_id(run_id):
            return run.layout(run_id, **look)
        case ["compare"]:
            return compare.layout(**look)
        case ["planner"]:
            return planner.layout(**look)
        case ["planner", "first"]:
            return first_batch.layout(**look)
        case ["cost"]:
            return cost.layout(**look)
        case ["reproduce"]:
            return reproduce.layout(None, **look)
        case ["reproduce", reproduction_id] if is_id(reproduction_id):
            return reproduce.layout(reproduction_id, **look)
        case ["record"]:
            return record.layout(**look)
        case ["learn"]:
            return learn.layout(**look)
        case ["settings"]:
            return settings_page.layout(**look)
        case ["sweeps"]:
            return sweeps.layout(**look)
        case ["sweeps", sweep_id] if is_id(sweep_id):
            return sweep.layout(sweep_id, **look)
        case ["runs", _]:
            return shell.page([html.B("Not found")], states.no_such_run())
        case ["sweeps", _]:
            return shell.page([html.B("Not found")], states.no_such_sweep())
        case _:
            return shell.page([html.B("Not found")], states.no_such_page())
