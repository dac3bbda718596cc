"""In a real Chromium: from the release of a drag to the finer chart, the cost of live pages, tabs that stay open."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from harness import AS_LOCAL_USER
from playwright.sync_api import Browser, CDPSession, Page
from served_data import Served, Use
from stored_data import Stored

CHART = "#run-noise .scatterlayer .trace"
ZOOMS = 12
SETTLE_SECONDS = 5
PATIENCE_MS = 120_000
"""For a page to be loaded: many are opened at once, and some machines are busy."""
REDRAWN = """
() => new Promise((done) => {
  const graph = document.querySelector("#run-noise .js-plotly-plot"), begin = performance.now();
  const drawn = () => JSON.stringify(graph.data.map((trace) => [trace.x && trace.x.length, trace.x && trace.x[0]]));
  const before = drawn();
  const look = () => {
    if (drawn() !== before) requestAnimationFrame(() => done(performance.now() - begin));
    else if (performance.now() - begin > 10000) done(-1);
    else requestAnimationFrame(look);
  };
  look();
})
"""
"""Milliseconds until other points are drawn, and the frame after; -1 if they never are."""


def shown(page: Page) -> None:
    """Make a tab in the background behave like the one in front, and wait for it."""
    page.set_default_timeout(PATIENCE_MS)
    page.add_init_script("Object.defineProperty(document, 'hidden', {value: false, configurable: true})")


def zoom_times(browser: Browser, url: str, stored: Stored) -> list[float]:
    """Seconds from the release of the button to the redrawn chart, at places from the whole run down."""
    page = browser.new_page(extra_http_headers=AS_LOCAL_USER, viewport={"width": 1440, "height": 1000})
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{url}/runs/{stored.long_run.run_id}")
    page.wait_for_selector(CHART, state="attached")
    page.wait_for_timeout(2000)
    found = []
    for number in range(ZOOMS):
        box = page.locator("#run-noise .nsewdrag").first.bounding_box()
        assert box
        left, right = 0.2 + 0.05 * (number % 4), 0.6 + 0.05 * (number % 5)
        page.mouse.move(box["x"] + left * box["width"], box["y"] + 100)
        page.mouse.down()
        page.mouse.move(box["x"] + right * box["width"], box["y"] + 110, steps=4)
        waiting = page.evaluate_handle(f"() => ({{ seconds: ({REDRAWN})() }})")
        page.mouse.up()
        taken = waiting.evaluate("(one) => one.seconds")
        assert taken >= 0, "the chart was not redrawn"
        found.append(taken / 1000)
        page.wait_for_timeout(700)
        if number % 4 == 3:
            page.mouse.dblclick(box["x"] + 200, box["y"] + 100)
            page.wait_for_timeout(1500)
    page.close()
    return found


def cpu_share(served: Served, seconds: float) -> float:
    """CPU seconds of server and Postgres a second."""
    before, begin = served.use().cpu_seconds, time.perf_counter()
    time.sleep(seconds)
    return (served.use().cpu_seconds - before) / (time.perf_counter() - begin)


def open_runs(browser: Browser, url: str, run_ids: Sequence[str]) -> list[Page]:
    """A tab on each of the runs, drawn."""
    pages = [
        browser.new_page(extra_http_headers=AS_LOCAL_USER, viewport={"width": 1440, "height": 1000}) for _ in run_ids
    ]
    for page, run_id in zip(pages, run_ids, strict=True):
        shown(page)
        page.goto(f"{url}/runs/{run_id}")
    for page in pages:
        page.wait_for_selector(CHART, state="attached")
    time.sleep(SETTLE_SECONDS)
    return pages


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Of all tabs and the server at one moment.

    Attributes:
        heap_bytes: JavaScript heap of all tabs after a collection.
        nodes: DOM nodes of all tabs.
        use: Of server and Postgres.
        slowest_seconds: The longest that a tab took to answer a question now.
    """

    heap_bytes: int
    nodes: int
    use: Use
    slowest_seconds: float


def snapshot(sessions: Sequence[CDPSession], served: Served) -> Snapshot:
    """What there is now."""
    heap = nodes = 0
    slowest = 0.0
    for session in sessions:
        start = time.perf_counter()
        session.send("Runtime.evaluate", {"expression": "1 + 1"})
        slowest = max(slowest, time.perf_counter() - start)
        session.send("HeapProfiler.collectGarbage")
        heap += int(session.send("Runtime.getHeapUsage")["usedSize"])
        nodes += int(session.send("Memory.getDOMCounters")["nodes"])
    return Snapshot(heap, nodes, served.use(), slowest)


def watch_tabs(
    browser: Browser, served: Served, paths: Sequence[str], *, seconds: float, every: float
) -> list[Snapshot]:
    """Snapshots of tabs that stay open for so long, the first when all are drawn."""
    context = browser.new_context(extra_http_headers=AS_LOCAL_USER, viewport={"width": 1440, "height": 1000})
    pages = [context.new_page() for _ in paths]
    for page, path in zip(pages, paths, strict=True):
        shown(page)
        page.goto(served.url + path)
        page.wait_for_load_state("load")
    time.sleep(4 * SETTLE_SECONDS)
    sessions = [context.new_cdp_session(page) for page in pages]
    for session in sessions:
        session.send("HeapProfiler.enable")
    end, found = time.perf_counter() + seconds, [snapshot(sessions, served)]
    while time.perf_counter() < end or len(found) < 2:
        pages[0].wait_for_timeout(1000 * min(every, max(0.1, end - time.perf_counter())))
        found.append(snapshot(sessions, served))
    context.close()
    return found
