"""How long a browser takes to the first chart of a Run page, and what it loads, beside an empty Dash page with a graph.

Both are served by uvicorn with compression, with a cold cache each time, and in turn, so that a change of the machine's
speed hits both.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import httpx
from harness import AS_LOCAL_USER, free_port, percentile, server
from payloads import MeasurementBatches, run_batch
from playwright.sync_api import Browser, Request, sync_playwright
from results_file import Figure, write
from smoke import size

ROUNDS = size(10, 1)
WARM_UPS = size(1, 0)
CHROMIUM = os.environ.get("NOISESCALE_CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FIRST_CHART = ".js-plotly-plot .main-svg .scatterlayer .trace"
EMPTY_PAGE = """
import sys, uvicorn, dash, plotly.graph_objects as go
from dash import dcc
from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware
server = FastAPI()
app = dash.Dash(server=server, serve_locally=True)
app.layout = dcc.Graph(figure=go.Figure(go.Scatter(y=[1, 3, 2])))
server.add_middleware(GZipMiddleware)
uvicorn.run(server, port=int(sys.argv[1]), log_level="error")
"""


def seconds_to_first_chart(browser: Browser, url: str) -> tuple[float, int, int]:
    """Seconds to the first drawn trace, bytes received over the network, and requests beyond this machine."""
    context = browser.new_context(extra_http_headers=AS_LOCAL_USER, viewport={"width": 1440, "height": 1000})
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    received = 0
    strangers: list[str] = []

    def loaded(event: dict[str, float]) -> None:
        nonlocal received
        received += int(event["encodedDataLength"])

    def asked(request: Request) -> None:
        if not request.url.startswith(("http://127.0.0.1", "data:", "blob:")):
            strangers.append(request.url)

    session.on("Network.loadingFinished", loaded)
    page.on("request", asked)
    start = time.perf_counter()
    page.goto(url)
    page.wait_for_selector(FIRST_CHART, state="attached")
    seconds = time.perf_counter() - start
    page.wait_for_timeout(1500)
    context.close()
    return seconds, received, len(strangers)


def store_run(url: str) -> str:
    """A run of 2,000 steps; its id."""
    run_id, path = uuid4(), f"{url}/api/v1/streams/{uuid4()}/batches"
    json = AS_LOCAL_USER | {"Content-Type": "application/json"}
    httpx.post(path, content=run_batch(run_id, name="page"), headers=json).raise_for_status()
    source = MeasurementBatches(run_id, 1000, seed=1)
    for first in (0, 1000):
        gzip = json | {"Content-Encoding": "gzip"}
        httpx.post(path, content=source.body(first), headers=gzip, timeout=60).raise_for_status()
    return str(run_id)


def wait(url: str) -> None:
    """Return once something answers."""
    for _ in range(200):
        try:
            httpx.get(url)
            return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise RuntimeError(f"nothing at {url}")


def compare(ours: str, empty: str) -> list[Figure]:
    """Both pages in turn, after one warm-up each."""
    times: dict[str, list[float]] = {ours: [], empty: []}
    received = strangers = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for index in range(WARM_UPS + ROUNDS):
            for url in (ours, empty, empty, ours):
                seconds, size, unknown = seconds_to_first_chart(browser, url)
                if index >= WARM_UPS:
                    times[url].append(seconds)
                if url == ours:
                    received, strangers = size, strangers + unknown
        browser.close()
    ratio = percentile(times[ours], 0.5) / percentile(times[empty], 0.5)
    return [
        Figure("Run page, first chart, median", percentile(times[ours], 0.5), "s"),
        Figure("empty Dash page with one graph, median", percentile(times[empty], 0.5), "s"),
        Figure("ratio of the medians", ratio, "×", "at most 1.5"),
        Figure("Run page, received over the network, cold", received / 1e6, "MB", "at most 3"),
        Figure("requests beyond the machine", strangers, "requests", "0"),
    ]


def main() -> None:
    """Entry point."""
    with server() as url, tempfile.TemporaryDirectory() as folder:
        port = free_port()
        script = Path(folder) / "empty_page.py"
        script.write_text(EMPTY_PAGE)
        process = subprocess.Popen([sys.executable, str(script), str(port)])
        try:
            run_id = store_run(url)
            empty = f"http://127.0.0.1:{port}/"
            wait(empty)
            figures = compare(f"{url}/runs/{run_id}", empty)
        finally:
            process.terminate()
            process.wait()
    write("page", figures)


if __name__ == "__main__":
    main()
