"""Citus on one machine beside one PostgreSQL: the same programs, in the same hour, in turns; nobody calls it scaling.

Both are databases of one process with Citus loaded: one has no extension and keeps everything, the other is spread over
two workers. What differs is what it costs to be spread.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from results_file import Figure, write
from smoke import size

sys.path.extend(map(str, (Path(__file__).parents[1] / "tests").glob("**/support")))

import asyncpg
import httpx

from app_in_process import client_of, running_app
from citus_cluster import CitusCluster
from factories import make_batch, make_measurements
from noisescale_server.cli.commands import bring_up_to_date
from noisescale_server.embedded.cluster import DATABASE
from noisescale_server.process import app_role
from noisescale_server.process.settings import Settings

ROWS = 500
NUM_JOBS = 4
SECONDS = size(10.0, 1.0)
NUM_RUNS = size(10_000, 100)
NUM_READS = size(100, 3)
LONG_RUN_BATCHES = size(40, 2)
TURNS = ("one", "citus", "citus", "one")

RUNS = """
INSERT INTO run (id, project_id, task_id, name, first_step, latest_step, latest_loss)
SELECT gen_random_uuid(), project.id, task.id, 'run ' || i, 0, i, 1.0 / i
FROM generate_series(1, $1) AS i, project JOIN task ON task.project_id = project.id
"""


async def send(client: httpx.AsyncClient, num_batches: int | None, ends: float) -> tuple[str, int]:
    """The run of a job that sends batches one after the other, and how many rows were acknowledged."""
    run_id, stream_id, number = uuid4(), uuid4(), 0
    while (num_batches is None or number < num_batches) and time.monotonic() < ends:
        rows = make_measurements(first_seq=2 + number * ROWS, steps=range(number * ROWS, (number + 1) * ROWS))
        first = 1 if number == 0 else 2 + number * ROWS
        body = make_batch(run_id=run_id, first_seq=first, crc32=number, with_run=number == 0, measurements=rows)
        answer = await client.post(f"/api/v1/streams/{stream_id}/batches", json=body)
        assert answer.status_code == 200, answer.text
        number += 1
    return str(run_id), number * ROWS


async def p50_ms(client: httpx.AsyncClient, path: str) -> float:
    """The median of answers one after the other, the first ones left out."""
    took = []
    for _ in range(NUM_READS + 3):
        began = time.perf_counter()
        answer = await client.get(path)
        took.append(1000 * (time.perf_counter() - began))
        assert answer.status_code == 200, answer.text
    return statistics.median(took[3:])


async def measured(url: str) -> tuple[float, float, float]:
    """Rows a second, p50 of a series and of the list of runs."""
    async with running_app(url, allow_unsafe_database=False) as app, client_of(app) as client:
        long_run, _ = await send(client, LONG_RUN_BATCHES, time.monotonic() + 600)
        began = time.monotonic()
        sent = await asyncio.gather(*(send(client, None, began + SECONDS) for _ in range(NUM_JOBS)))
        rows_a_second = sum(rows for _, rows in sent) / (time.monotonic() - began)
        series = await p50_ms(client, f"/api/v1/runs/{long_run}/noise-scale")
        return rows_a_second, series, await p50_ms(client, "/api/v1/runs?limit=50&sort=loss")


async def prepare(app_url: str, owner_url: str) -> None:
    """A project with many runs."""
    async with running_app(app_url, allow_unsafe_database=False) as app, client_of(app) as client:
        await send(client, 1, time.monotonic() + 600)
    connection = await asyncpg.connect(owner_url.replace("+asyncpg", ""))
    await connection.execute(RUNS.replace("$1", str(NUM_RUNS)))
    await connection.execute("ANALYZE")
    await connection.close()


def figures(found: dict[str, list[tuple[float, float, float]]]) -> Sequence[Figure]:
    """The mean of the turns of each, and their ratio."""
    whats = (("ingestion", "rows/s"), ("series of a run, p50", "ms"), (f"list of {NUM_RUNS:,} runs, p50", "ms"))
    rows = []
    for place, (what, unit) in enumerate(whats):
        means = {name: statistics.fmean(turn[place] for turn in turns) for name, turns in found.items()}
        rows += [Figure(f"{what}: {name}", value, unit) for name, value in means.items()]
        rows.append(Figure(f"{what}: Citus ÷ one", means["citus"] / means["one"], ""))
    return rows


def main() -> None:
    """Entry point."""
    with CitusCluster.throw_away(is_durable=True) as cluster:
        asyncio.run(cluster.coordinator.execute('CREATE DATABASE "one"'))
        # Citus first: a role that is made without it is not on the workers
        urls = {"citus": cluster.url(DATABASE), "one": cluster.url("one")}
        for url in urls.values():
            bring_up_to_date(Settings(database_url=None, migration_database_url=None), url)
            asyncio.run(prepare(app_role.address(url), url))
        found: dict[str, list[tuple[float, float, float]]] = {"one": [], "citus": []}
        for name in TURNS:
            found[name].append(asyncio.run(measured(app_role.address(urls[name]))))
            print(name, found[name][-1], flush=True)
    write("citus", figures(found), command="make test-citus FIGURES=whole")


if __name__ == "__main__":
    main()
