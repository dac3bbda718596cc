"""A million runs of fifty rows on one Postgres: pages, ingestion beside an empty database, retention, vacuum, disk.

What the pages Runs and Overview ask is asked as they ask it: their own functions, with the API's client, over loopback,
one page at a time. Some half an hour, most of it to load; `--smoke` takes four hundred runs. `--folder` keeps the
database, and measures it again when it is there.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from uuid import UUID, uuid4

import asyncpg
import httpx

sys.path.append(str(Path(__file__).parent / "dashboard"))
from harness import AS_LOCAL_USER, percentile
from million_runs import ROWS_OF_A_RUN, Shares, copy, send_templates, some_names, until_judged
from payloads import MeasurementBatches, run_batch
from results_file import Figure, write
from served_data import Served, served
from smoke import size

from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.overview import page as overview
from noisescale_dashboard.runs import listing, to_change
from noisescale_dashboard.runs.view import NO_VIEW

SHARES = size(Shares(runs=1_000_000, live=2_000, trials=100_000), Shares(runs=400, live=20, trials=50))
REPEATS, SLOW_REPEATS = size((40, 5), (2, 1))
SECONDS_OF_A_TURN = size(10.0, 0.5)
SENDERS = 4
DELETED = size(500, 10)
VISITOR = AS_LOCAL_USER
OVERVIEW = {"project": None, "scope": "running", "pref": "0.5"}
TABLES = ("run", "stream", "stream_place", "measurement", "rollup", "sweep_run")
AT_MOST = {"runs": "at most 60", "search": "at most 100", "overview": "at most 150"}

OF_TWO_CALLS = ("Runs, next page", "Overview, panels and events")

Ask = Callable[[int], Awaitable[object]]


def pages(api: ApiClient) -> dict[str, tuple[str, Ask]]:
    """What is asked, by name, each with its target."""
    view = dict(NO_VIEW)

    def runs(**changes: object) -> Ask:
        return lambda _: listing.find(api, VISITOR, view | changes, None, narrow=False)

    def search(number: int) -> Awaitable[object]:
        words = some_names(number)
        return listing.find(api, VISITOR, view | {"q": words[number % len(words)], "since": "any"}, None, narrow=False)

    def search_for(place: int) -> Ask:
        return lambda number: listing.find(
            api, VISITOR, view | {"q": some_names(number)[place], "since": "any"}, None, narrow=False
        )

    async def next_page(_: int) -> None:
        first = await listing.find(api, VISITOR, view, None, narrow=False)
        began.append(time.perf_counter())
        await listing.find(api, VISITOR, view, first.next_cursor, narrow=False)

    async def look_over(_: int) -> None:
        asked = overview.query(OVERVIEW, datetime.now(UTC))
        page = await api.runs(VISITOR, asked)
        await overview.find(api, VISITOR, page.runs, asked, total=page.total, preference=0.5)

    async def panels(_: int) -> None:
        page = await api.runs(VISITOR, overview.query(OVERVIEW, datetime.now(UTC)))
        began.append(time.perf_counter())
        await overview.find_series(api, VISITOR, [run.id for run in page.runs])

    began: list[float] = []
    BEGAN.append(began)
    return {
        "Runs": (AT_MOST["runs"], runs()),
        "Runs, next page": (AT_MOST["runs"], next_page),
        "Runs, those to change": (AT_MOST["runs"], lambda _: api.runs(VISITOR, to_change.query(view))),
        "Runs, newest first": (AT_MOST["runs"], runs(sort="-updated_at", trials="show")),
        "Runs, of any age": (AT_MOST["runs"], runs(since="any")),
        "Runs, running": (AT_MOST["runs"], runs(status="running")),
        "Runs, of one project": (AT_MOST["runs"], runs(project="project 3")),
        "projects of the switch": (AT_MOST["runs"], lambda _: api.projects(VISITOR)),
        "search, words of every frequency": (AT_MOST["search"], search),
        "search, a part of every fortieth name": (AT_MOST["search"], search_for(0)),
        "search, four letters of few names": (AT_MOST["search"], search_for(1)),
        "search, what no run is called": (AT_MOST["search"], search_for(-1)),
        "Overview": (AT_MOST["overview"], look_over),
        "Overview, panels and events": (AT_MOST["overview"], panels),
        "not by an index: by loss, of any age": ("", runs(since="any", sort="loss", trials="show")),
        "not by an index: folded, by name, of any age": ("", runs(since="any", sort="name")),
        "not by an index: Overview of 30 days": ("", lambda _: _overview_of(api, "30d")),
        "not by an index: grouped by optimizer": ("", runs(group="optimizer", since="any")),
    }


BEGAN: list[list[float]] = []


async def _overview_of(api: ApiClient, scope: str) -> object:
    asked = overview.query(OVERVIEW | {"scope": scope}, datetime.now(UTC))
    page = await api.runs(VISITOR, asked)
    return await overview.find(api, VISITOR, page.runs, asked, total=page.total, preference=0.5)


async def time_pages(place: Served) -> list[Figure]:
    """p50 and p99 of each, in turns, after a round that warms up; and what each takes of a processor."""
    api = ApiClient(base_url=place.url, timeout_seconds=60)
    asked = pages(api)
    seconds: dict[str, list[float]] = {name: [] for name in asked}
    for number in range(REPEATS + 1):
        for name, (target, ask) in asked.items():
            if not target and number > SLOW_REPEATS:
                continue
            BEGAN[-1][:] = [time.perf_counter()]
            await ask(number)
            if number:
                seconds[name].append(time.perf_counter() - BEGAN[-1][-1])
    figures = []
    for name, (target, _) in asked.items():
        figures.append(Figure(f"{name}: p50", 1e3 * percentile(seconds[name], 0.5), "ms", target))
        figures.append(Figure(f"{name}: p99", 1e3 * percentile(seconds[name], 0.99), "ms"))
    for name, (target, ask) in asked.items():
        if target and name not in OF_TWO_CALLS:
            spent = place.use().cpu_seconds
            for number in range(REPEATS):
                await ask(number)
            taken = 1e3 * (place.use().cpu_seconds - spent) / REPEATS
            figures.append(Figure(f"{name}: of a processor, server and Postgres", taken, "ms"))
    return figures


async def ingest(url: str) -> float:
    """Rows a second of jobs that send fifty rows a batch, a new run every thousand rows."""
    ends = time.monotonic() + SECONDS_OF_A_TURN

    async def job(client: httpx.AsyncClient, seed: int) -> int:
        num_rows = 0
        while time.monotonic() < ends:
            run_id, path = uuid4(), f"/api/v1/streams/{uuid4()}/batches"
            source = MeasurementBatches(run_id, ROWS_OF_A_RUN, seed, compressed=False)
            (await client.post(path, content=run_batch(run_id, name=f"sender {seed}"))).raise_for_status()
            for batch in range(20):
                if time.monotonic() < ends:
                    (await client.post(path, content=source.body(batch * ROWS_OF_A_RUN))).raise_for_status()
                    num_rows += ROWS_OF_A_RUN
        return num_rows

    began = time.monotonic()
    headers = AS_LOCAL_USER | {"Content-Type": "application/json"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client:
        rows = await asyncio.gather(*(job(client, seed) for seed in range(SENDERS)))
    return sum(rows) / (time.monotonic() - began)


async def turn(place: Served) -> tuple[float, float]:
    """Rows a second, and rows that server and Postgres store in a second of one processor, however busy it is."""
    spent = place.use().cpu_seconds
    rate = await ingest(place.url)
    return rate, rate * SECONDS_OF_A_TURN / (place.use().cpu_seconds - spent)


async def ingestion(full: Served, empty: Served) -> list[Figure]:
    """Full, empty, empty, full, twice; and what the rows that came take on disk."""
    await turn(empty), await turn(full)
    before = await sizes(full.database)
    found: dict[Served, list[tuple[float, float]]] = {full: [], empty: []}
    for place in 2 * (full, empty, empty, full):
        found[place].append(await turn(place))
    grown = sum((await sizes(full.database)).values()) - sum(before.values())
    many, none = (fmean(rate for rate, _ in found[place]) for place in (full, empty))
    per_cpu, per_cpu_of_none = (fmean(rows for _, rows in found[place]) for place in (full, empty))
    return [
        Figure("ingestion, a million runs there", many, "rows/s"),
        Figure("ingestion, an empty database", none, "rows/s"),
        Figure("ingestion, full ÷ empty, in turns A-B-B-A", many / none, "", "at least 0.9"),
        Figure("ingestion, a million runs there, of one processor", per_cpu, "rows/s"),
        Figure("ingestion, an empty database, of one processor", per_cpu_of_none, "rows/s"),
        Figure("ingestion, full ÷ empty, of one processor", per_cpu / per_cpu_of_none, "", "at least 0.9"),
        Figure(
            "disk that ingestion takes a row, all tables and indexes",
            grown / (SECONDS_OF_A_TURN * sum(rate for rate, _ in found[full])),
            "bytes/row",
        ),
    ]


async def sizes(database: str) -> dict[str, int]:
    """Bytes on disk by table, indexes and partitions included."""
    connection = await asyncpg.connect(database)
    rows = await connection.fetch(
        "SELECT regexp_replace(relname, '_p\\d\\d$', '') AS name, sum(pg_total_relation_size(relid))::bigint AS bytes"
        " FROM pg_stat_user_tables GROUP BY 1"
    )
    await connection.close()
    return {row["name"]: row["bytes"] for row in rows}


async def disk(database: str) -> list[Figure]:
    """By run, by row, by table."""
    found = await sizes(database)
    rows = SHARES.runs * ROWS_OF_A_RUN
    figures = [
        Figure("disk of the database", sum(found.values()) / 2**30, "GiB"),
        Figure("disk a run of fifty rows", sum(found.values()) / SHARES.runs / 1024, "KiB"),
        Figure("disk a stored row, table and indexes of measurements", found["measurement"] / rows, "bytes"),
        Figure("disk a stored row, all there is", sum(found.values()) / rows, "bytes"),
    ]
    figures += [Figure(f"disk of {name}", found[name] / 2**20, "MiB") for name in TABLES]
    connection = await asyncpg.connect(database)
    indexes = await connection.fetch(
        "SELECT indexrelname AS name, pg_relation_size(indexrelid) AS bytes FROM pg_stat_user_indexes"
        " WHERE relname = 'run' ORDER BY 1"
    )
    await connection.close()
    return [*figures, *(Figure(f"disk of {row['name']}", row["bytes"] / 2**20, "MiB") for row in indexes)]


async def keeping(place: Served) -> list[Figure]:
    """A round of retention that finds nothing to fold, what deleted runs leave, and a vacuum of what changes."""
    connection = await asyncpg.connect(place.database, command_timeout=None)
    project = await connection.fetchval("SELECT id FROM project WHERE name = 'project 3'")
    await connection.execute("INSERT INTO project_retention (project_id, fold_after_days) VALUES ($1, 30)", project)
    figures = [Figure("retention of a project, nothing to fold", await _retain(place), "s")]
    await connection.execute("DELETE FROM project_retention")
    ids: list[UUID] = [
        row[0]
        for row in await connection.fetch(
            "SELECT id FROM run WHERE finish_status = 'failed' AND trial_of IS NULL LIMIT $1", DELETED
        )
    ]
    async with httpx.AsyncClient(base_url=place.url, headers=AS_LOCAL_USER, timeout=60) as client:
        began = time.perf_counter()
        for run_id in ids:
            (await client.delete(f"/api/v1/runs/{run_id}")).raise_for_status()
        figures.append(Figure("a run deleted", 1e3 * (time.perf_counter() - began) / len(ids), "ms"))
    figures.append(Figure(f"rows of {len(ids):,} deleted runs purged", await _retain(place), "s"))
    for table in ("run", "measurement", "rollup"):
        began = time.perf_counter()
        await connection.execute(f"VACUUM (ANALYZE) {table}")
        figures.append(Figure(f"vacuum of {table}, nothing else going on", time.perf_counter() - began, "s"))
    await connection.close()
    return figures


async def _retain(place: Served) -> float:
    command = str(Path(sys.executable).with_name("noisescale"))
    environment = os.environ | {"NOISESCALE_DATABASE_URL": place.database}
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(command, "retention", env=environment)
    if await process.wait() != 0:
        raise SystemExit("noisescale retention failed")
    return time.perf_counter() - began


async def load(place: Served) -> list[Figure]:
    """Send the templates, copy them, and leave the tables as autovacuum would."""
    began = time.perf_counter()
    jobs = await send_templates(place.url)
    await until_judged(place.database)
    await copy(place.database, jobs, SHARES)
    connection = await asyncpg.connect(place.database, command_timeout=None)
    await connection.execute("VACUUM (ANALYZE)")
    await connection.execute("CHECKPOINT")
    num_runs, num_rows = await connection.fetchrow("SELECT count(*), (SELECT count(*) FROM measurement) FROM run")
    await connection.close()
    return [
        Figure("runs", num_runs, ""),
        Figure("rows", num_rows, ""),
        Figure("until they are loaded", time.perf_counter() - began, "s"),
    ]


async def heard_now(database: str) -> None:
    """Let those that are live have sent something just now."""
    connection = await asyncpg.connect(database, command_timeout=None)
    statement = "UPDATE run SET updated_at = now(), heard_at = now() WHERE finish_status IS NULL AND heard_at > $1"
    last = await connection.fetchval("SELECT max(heard_at) - interval '20 minutes' FROM run")
    await connection.execute(statement, last)
    await connection.execute("VACUUM (ANALYZE) run")
    await connection.close()


async def measure(full: Served, empty: Served, figures: list[Figure]) -> Sequence[Figure]:
    """All of it; pages first, as the rest changes the database."""
    await heard_now(full.database)
    for ask in (disk(full.database), time_pages(full), ingestion(full, empty), keeping(full)):
        found = await ask
        for one in found:
            print(f"{one.name}: {one.value:,.4g} {one.unit}", flush=True)
        figures += found
    return figures


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the database stays")
    folder = parser.parse_args().folder
    # runs that were live when they were loaded are so when they are read
    os.environ |= {"NOISESCALE_SILENT_AFTER_SECONDS": "21600", "NOISESCALE_CRASHED_AFTER_SECONDS": "86400"}
    with ExitStack() as stack:
        full = stack.enter_context(served(folder))
        empty = stack.enter_context(served())
        is_there = folder is not None and (folder / "stored.json").exists()
        figures = [] if is_there else asyncio.run(load(full))
        if folder is not None:
            (folder / "stored.json").touch()
        command = "python benchmarks/benchmark_million_runs.py" + (" --folder FOLDER" if folder is not None else "")
        write("million_runs", asyncio.run(measure(full, empty, figures)), command=command)


if __name__ == "__main__":
    main()
