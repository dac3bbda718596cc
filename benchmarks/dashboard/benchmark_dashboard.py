"""The dashboard with 10,000 runs and one of 10 million steps while a hundred jobs send; results/dashboard.csv.

Every call that a page makes, zooming, live pages, and tabs that stay open. Times of calls are those of their client
over loopback, one call at a time, so they hold the server's waiting for Postgres and for the ingestion. Some 20 minutes
on a machine that does nothing else; `--smoke` writes nothing. Ends with the number of targets missed.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

from playwright.sync_api import Browser, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))
import call_times
import open_pages
from benchmark_page import CHROMIUM, FLAGS
from call_times import Times
from harness import percentile
from ingestion_load import Load, sending
from open_pages import Snapshot
from recorded_calls import record
from results_file import write_rows
from served_data import Served, served
from smoke import IS_SMOKE, size
from stored_data import Job, Stored, store

Row = dict[str, str | int | float]
COLUMNS = ("page", "call", "p50", "p99", "unit", "n", "target", "met", "kB", "ingestion (rows/s)")
QUICK, SOON, CHEAP = "p50 at most 50, p99 at most 200", "p99 at most 300", "p50 at most 5"
STEADY, NO_STALL = "no growth: at most 3", "no stall: at most 1000"
LIMITS = {QUICK: (50.0, 200.0), SOON: (300.0, 300.0), CHEAP: (5.0, None), STEADY: (3.0, None), NO_STALL: (None, 1000.0)}
"""Largest p50 and p99 of each target, in the unit of its row."""
LIVE_RUNS, NUM_TABS = size((5, 20), (1, 10))


def rows_of_calls(times: Sequence[Times], load: Load) -> Iterator[Row]:
    """A row a kind of call."""
    for one in times:
        yield {
            "page": one.page,
            "call": one.name,
            "p50": 1e3 * percentile(one.seconds, 0.5),
            "p99": 1e3 * percentile(one.seconds, 0.99),
            "unit": "ms",
            "n": len(one.seconds),
            "target": QUICK,
            "kB": one.num_bytes / 1e3,
            "ingestion (rows/s)": load.rows_per_second,
        }


def in_browser(
    browser: Browser, place: Served, stored: Stored, places: dict[str, int], seconds: float
) -> Iterator[Row]:
    """Zooming, and what live pages cost beyond the ingestion of what they show."""
    half = len(stored.jobs) // 2
    with sending(place.url, stored, places) as load:
        zooms = open_pages.zoom_times(browser, place.url, stored)
        alone = [open_pages.cpu_share(place, seconds)]
        shares = {}
        for age, jobs in (
            ("begun an hour ago", stored.jobs[:LIVE_RUNS]),
            ("begun now", stored.jobs[half:][:LIVE_RUNS]),
        ):
            with_pages = _share_with_pages(browser, place, jobs, seconds)
            # what comes in costs more with every minute: each share is that beyond what stands before and after it
            alone.append(open_pages.cpu_share(place, seconds))
            shares[age] = with_pages - mean(alone[-2:])
    rate = {"ingestion (rows/s)": load.rows_per_second, "n": 1}
    yield {
        "page": "Run of 10 million steps", "call": "zoom, from release to redrawn", "p50": 1e3 * percentile(zooms, 0.5),
        "p99": 1e3 * max(zooms), "unit": "ms", "target": SOON, **rate, "n": len(zooms),
    }  # fmt: skip
    cpu = {"page": "Run", "unit": "% of a core", **rate}
    call = f"ingestion alone, server and Postgres, {len(alone)} times {seconds:g} s, least and most"
    yield {"call": call, "p50": 100 * min(alone), "p99": 100 * max(alone), **cpu}
    for age, share in shares.items():
        call = f"{LIVE_RUNS} live pages of runs {age}, beyond that, {seconds:g} s"
        yield {"call": call, "p50": 100 * share, "target": CHEAP, **cpu}


def _share_with_pages(browser: Browser, place: Served, jobs: Sequence[Job], seconds: float) -> float:
    pages = open_pages.open_runs(browser, place.url, [str(job.run_id) for job in jobs])
    share = open_pages.cpu_share(place, seconds)
    for page in pages:
        page.close()
    return share


def tab_paths(stored: Stored) -> list[str]:
    """Twenty tabs: runs under way, the long run, and every other page."""
    others = [f"/runs/{stored.long_run.run_id}", "/", "/", "/runs", "/runs", "/compare", "/planner", "/sweeps"]
    others.append(f"/sweeps/{stored.sweep_ids[0]}")
    runs = [f"/runs/{job.run_id}" for job in stored.jobs]
    return [*others, *runs[: NUM_TABS - len(others)]]


def rows_of_tabs(found: Sequence[Snapshot], seconds: float, load: Load) -> Iterator[Row]:
    """Growth from the first half to the second, and the slowest answer of a tab."""
    half = len(found) // 2
    columns = {
        "JavaScript heap of all tabs": [one.heap_bytes / 1e6 for one in found],
        "DOM nodes of all tabs": [one.nodes / 1e3 for one in found],
        "memory of the server": [one.use.server_bytes / 1e6 for one in found],
        "connections of the server": [float(one.use.server_connections) for one in found],
        "sessions of Postgres": [float(one.use.postgres_sessions) for one in found],
    }
    units = ("MB", "thousand", "MB", "", "")
    after = f"{NUM_TABS} tabs, {seconds:g} s"
    rate = {"n": len(found), "ingestion (rows/s)": load.rows_per_second}
    for (name, values), unit in zip(columns.items(), units, strict=True):
        # kept connections come and go with requests: what is never given back shows in their least number
        mean_or_least = mean if unit else min
        first, second = mean_or_least(values[:half]), mean_or_least(values[half:])
        yield {
            "page": after,
            "call": f"{name}, at first / at the end",
            "p50": values[0],
            "p99": values[-1],
            "unit": unit,
            **rate,
        }
        growth = 100 * (second / first - 1)
        yield {
            "page": after,
            "call": f"{name}: second half against first, {'means' if unit else 'least'}",
            "p50": growth,
            "unit": "%",
            "target": STEADY,
            **rate,
        }
    slowest = max(one.slowest_seconds for one in found)
    yield {
        "page": after,
        "call": "slowest answer of a tab",
        "p99": 1e3 * slowest,
        "unit": "ms",
        "target": NO_STALL,
        **rate,
    }


def judged(row: Row) -> Row:
    """The row with whether it meets its target, where it has one."""
    if "target" not in row:
        return row
    limits = zip(("p50", "p99"), LIMITS[str(row["target"])], strict=True)
    is_met = all(limit is None or float(row[name]) <= limit for name, limit in limits)
    return {**row, "met": "yes" if is_met else "no"}


def measure(place: Served, stored: Stored, arguments: argparse.Namespace) -> Iterator[Row]:
    """All rows."""
    places: dict[str, int] = {}
    with sending(place.url, stored, places):
        calls = record(place.url, stored)
    with sending(place.url, stored, places) as load:
        times = call_times.measure(place.url, calls, arguments.repeats)
    yield from rows_of_calls(times, load)
    if IS_SMOKE:  # pages in a browser take minutes at any size, and tests open them all
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield from in_browser(browser, place, stored, places, arguments.live_seconds)
        with sending(place.url, stored, places) as load:
            found = open_pages.watch_tabs(
                browser, place, tab_paths(stored), seconds=arguments.tab_seconds, every=arguments.tab_seconds / 20
            )
        yield from rows_of_tabs(found, arguments.tab_seconds, load)
        browser.close()


def _rounded(row: Row) -> Row:
    return {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()}


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=size(10_000, 40))
    parser.add_argument("--steps", type=int, default=size(10_000_000, 5_000))
    parser.add_argument("--steps-of-each", type=int, default=size(128, 40))
    parser.add_argument("--repeats", type=int, default=size(60, 1))
    parser.add_argument("--live-seconds", type=float, default=size(60.0, 2.0))
    parser.add_argument("--tab-seconds", type=float, default=size(600.0, 2.0))
    arguments = parser.parse_args()
    rows: list[Row] = []
    with served() as place:
        filled = store(
            place.url, place.database, num_runs=arguments.runs, steps_of_each=arguments.steps_of_each,
            steps=arguments.steps, num_jobs=size(100, 8),
        )  # fmt: skip
        stored = asyncio.run(filled)
        for row in map(judged, measure(place, stored, arguments)):
            rows.append(row)
            print(*(f"{name}: {value}" for name, value in _rounded(row).items()), sep="  ", flush=True)
    missed = [f"{row['page']}: {row['call']}" for row in rows if row.get("met") == "no"]
    print(f"{len(missed)} of {sum('met' in row for row in rows)} targets missed", *missed, sep="\n  ")
    columns = dict.fromkeys(COLUMNS, "")
    whole = [columns | _rounded(row) for row in rows]
    write_rows("dashboard", whole, command="python benchmarks/dashboard/benchmark_dashboard.py")


if __name__ == "__main__":
    main()
