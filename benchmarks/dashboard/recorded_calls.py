"""The requests that the pages really make: each view is opened in Chromium, and what it asks for is written down."""

import json
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import httpx
import uvicorn
from playwright.sync_api import Page, Request, sync_playwright
from smoke import size

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmark_page import CHROMIUM, FLAGS
from harness import AS_LOCAL_USER
from open_pages import PATIENCE_MS
from stored_data import Stored

from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.app import create_app
from noisescale_dashboard.serving.settings import DashboardSettings

CALLBACK = "/_dash-update-component"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ROUND_MS, QUIET_ROUNDS, PATIENCE = 400, 4, 50


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a page.

    Attributes:
        page: Whose.
        name: The same for requests that differ in ids and values alone.
        path: With its query.
        body: Of a callback; None for a GET of the API.
    """

    page: str
    name: str
    path: str
    body: str | None = None


class Recorder(httpx.AsyncBaseTransport):
    """Passes requests on to the server and remembers those that only read."""

    def __init__(self) -> None:
        self._inner = httpx.AsyncHTTPTransport()
        self.paths: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The server's answer."""
        if request.method == "GET":
            self.paths.append(request.url.raw_path.decode())
        return await self._inner.handle_async_request(request)


@contextmanager
def recording_dashboard(url: str) -> Iterator[tuple[str, Recorder]]:
    """Address of a dashboard in this process that reads the server's API, and what it reads."""
    recorder = Recorder()
    api = ApiClient(base_url=url, transport=recorder, timeout_seconds=60)
    app = create_app(DashboardSettings(api_url=url), api)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.02)
        assert thread.is_alive(), "the dashboard did not start"
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", recorder
    server.should_exit = True
    thread.join(10)


def views(stored: Stored) -> dict[str, tuple[str, ...]]:
    """Addresses by page; each holds all of its view."""
    long, middle = f"/runs/{stored.long_run.run_id}", stored.steps // 2
    sweep = f"/sweeps/{stored.sweep_ids[0]}"
    return {
        "Overview": ("/", "/?scope=7d", "/?scope=30d&pref=0.8", "/?scope=30d&project=project+3"),
        "Runs": (
            "/runs",
            "/runs?status=running",
            "/runs?q=run+99&since=any",
            "/runs?project=project+3&sort=-loss",
            "/runs?task=task+7&tag=even&sort=name",
            "/runs?group=optimizer",
            "/runs?group=config.width&since=any&cols=task,config.seed",
            "/runs?shelf=archived&since=any",
        ),
        "Run of 10 million steps": (
            long,
            *(f"{long}?x={x}" for x in ("units", "time", "loss")),
            f"{long}?w=5",
            f"{long}?from={middle}&to={middle + stored.steps // 100}",
            f"{long}?from={middle}&to={middle + 1_000}",
            f"{long}?layer=blocks.3.weight",
            f"{long}?pref=0.8&max_hours=500&num_devices=16",
        ),
        "Run": (f"/runs/{stored.jobs[0].run_id}",),
        "Sweeps": ("/sweeps", "/sweeps?tab=published"),
        "Sweep": (sweep, f"{sweep}?target=0.42", f"{sweep}?regimes=slopes", f"/sweeps/{stored.sweep_ids[-1]}"),
        "Compare": ("/compare?tab=tasks", f"/compare?runs={stored.jobs[0].run_id},{stored.long_run.run_id}"),
        "Planner": ("/planner", "/planner?deadline_h=18&budget_usd=400&devices=64"),
    }


def record(url: str, stored: Stored) -> list[Call]:
    """Every call of every view, each once, and one that asks for nothing."""
    found: dict[tuple[str, str, str | None], Call] = {}
    with recording_dashboard(url) as (address, recorder), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(extra_http_headers=AS_LOCAL_USER, viewport={"width": 1440, "height": 1000})
        page.set_default_timeout(PATIENCE_MS)
        for name, paths in islice(views(stored).items(), size(None, 1)):
            for path in paths[: size(None, 1)]:
                for call in _of_view(page, recorder, address, name, path):
                    found.setdefault((call.name, call.path, call.body), call)
        browser.close()
    return [Call("for comparison", "the simplest request", "/livez"), *found.values()]


def _of_view(page: Page, recorder: Recorder, address: str, name: str, path: str) -> list[Call]:
    bodies: list[str] = []

    def hear(request: Request) -> None:
        if CALLBACK in request.url and request.post_data:
            bodies.append(request.post_data)

    recorder.paths.clear()
    page.on("request", hear)
    page.goto(address + path)
    _settle(page, bodies, recorder.paths)
    if path == "/runs":
        page.locator("#runs-next").click()
        _settle(page, bodies, recorder.paths)
    page.remove_listener("request", hear)
    asked = [Call(name, name_of_path(one), one) for one in recorder.paths]
    return asked + [Call(name, f"callback {output_of(body)}", CALLBACK, body) for body in bodies]


def _settle(page: Page, *asked: Sequence[object]) -> None:
    """Return once nothing more has been asked for a while: what a live page asks every five seconds comes later."""
    known, quiet = -1, 0
    for _ in range(PATIENCE):
        quiet, known = (quiet + 1, known) if sum(map(len, asked)) == known else (0, sum(map(len, asked)))
        if quiet == QUIET_ROUNDS:
            return
        page.wait_for_timeout(ROUND_MS)


def name_of_path(path: str) -> str:
    """The path without ids, and the names in its query."""
    where, _, query = path.partition("?")
    names = sorted({part.partition("=")[0] for part in query.split("&") if part})
    return UUID.sub("{id}", where) + (f"?{'&'.join(names)}" if names else "")


def output_of(body: str) -> str:
    """The first thing that a callback sets."""
    return str(json.loads(body)["output"]).strip(".").split("...")[0]
