"""The noise-scale series of a run of 10 million steps over HTTP, at ranges from everything down to a hundred steps."""

import argparse
import asyncio
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import httpx
from harness import AS_LOCAL_USER, LOCAL_TOKEN, free_port, percentile, stop, wait_until_ready
from payloads import run_batch
from results_file import Figure, write
from smoke import size

from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.process.migrating import migrate
from noisescale_server.storage.series.pyramid import LEVELS_OF_GIVEN, fold

REQUESTS_PER_RANGE = size(60, 2)
ROWS = """
INSERT INTO measurement (run_id, stream_id, seq, step, num_updates, wall_time, examples, micro_batch_size,
  num_micro_batches, global_batch, sum_trace_cov, sum_grad_sq_norm, sum_trace_cov_sq, sum_grad_sq_norm_sq,
  sum_trace_cov_grad_sq_norm, sum_loss, num_loss, lr, flags)
SELECT $1, $2, i + 2, i, 1, 1.79e9 + i * 0.1, 256 * (i + 1), 32, 8, 256, x, y, x * x, y * y, x * y,
  3 - 1e-7 * i, 1, 0.1, 0
FROM (
  SELECT i, 100 * (0.9 + 0.2 * random()) AS x, 0.5 / (1 + 1e-6 * i) * (0.5 + random()) AS y
  FROM generate_series($3::bigint, $4::bigint - 1) AS i
) AS steps
"""
GIVEN = "given AS (SELECT * FROM measurement WHERE run_id = $1 AND stream_id = $2 AND step >= $3 AND step < $4)"
INSERT_BUCKETS = fold(run_id="$1::uuid", stream_id="$2::uuid", series="'simple'")
FOLD = f"WITH {GIVEN}, {LEVELS_OF_GIVEN} {INSERT_BUCKETS}"
CHUNK = 32**4


async def fill(database: str, run_id: UUID, stream_id: UUID, steps: int) -> None:
    """The rows of the run, made in SQL, and the pyramid folded from them with the server's own statement."""
    connection = await asyncpg.connect(database)
    for first in range(0, steps, CHUNK):
        bounds = (run_id, stream_id, first, min(steps, first + CHUNK))
        await connection.execute(ROWS, *bounds)
        await connection.execute(FOLD, *bounds)
    await connection.execute(
        "UPDATE stream SET next_seq = $3 + 2, num_stored = $3 + 1, first_step = 0, last_step = $3 - 1, "
        "num_measurements = $3, num_estimates = $3 WHERE run_id = $1 AND id = $2",
        run_id,
        stream_id,
        steps,
    )
    await connection.execute("UPDATE run SET first_step = 0, latest_step = $2 - 1 WHERE id = $1", run_id, steps)
    await connection.execute("ANALYZE")
    await connection.close()


def ask(client: httpx.Client, run_id: UUID, length: int, steps: int, rng: random.Random) -> tuple[float, int]:
    """Seconds of one request at a random place of that length, and the points it returned."""
    first = rng.randrange(steps - length + 1)
    query = {"from": first, "to": first + length - 1, "points": 500}
    start = time.perf_counter()
    answer = client.get(f"/api/v1/runs/{run_id}/noise-scale", params=query)
    seconds = time.perf_counter() - start
    return seconds, answer.raise_for_status().json()["num_points"]


def measure(url: str, run_id: UUID, steps: int) -> list[Figure]:
    """Latencies at each range and over all of them."""
    rng = random.Random(0)
    figures, every = [], []
    lengths = [length for length in (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000) if length <= steps]
    with httpx.Client(base_url=url, headers=AS_LOCAL_USER, timeout=60) as client:
        for length in lengths:
            ask(client, run_id, length, steps, rng)
            answers = [ask(client, run_id, length, steps, rng) for _ in range(REQUESTS_PER_RANGE)]
            assert min(points for _, points in answers) > 0, "an empty series would be quick"
            seconds = [value for value, _ in answers]
            every += seconds
            figures.append(Figure(f"range of {length:,} steps, p50", 1e3 * percentile(seconds, 0.5), "ms"))
            figures.append(Figure(f"range of {length:,} steps, p99", 1e3 * percentile(seconds, 0.99), "ms"))
    figures.append(Figure("all ranges, p50", 1e3 * percentile(every, 0.5), "ms", "at most 10"))
    figures.append(Figure("all ranges, p99", 1e3 * percentile(every, 0.99), "ms", "at most 30"))
    return figures


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=size(10_000_000, 20_000))
    steps = parser.parse_args().steps
    run_id, stream_id, port = uuid4(), uuid4(), free_port()
    with EmbeddedPostgres.throw_away() as postgres:
        postgres.create_database("series")
        migrate(postgres.url("series"))
        environment = os.environ | {
            "NOISESCALE_DATABASE_URL": postgres.url("series"),
            "NOISESCALE_ALLOW_UNSAFE_DATABASE": "true",
            "NOISESCALE_PORT": str(port),
            "NOISESCALE_LOCAL_TOKEN": LOCAL_TOKEN,
            "NOISESCALE_READS_PER_MINUTE": "1000000",
        }
        process = subprocess.Popen([str(Path(sys.executable).with_name("noisescale")), "serve"], env=environment)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_ready(url, process)
            path = f"{url}/api/v1/streams/{stream_id}/batches"
            body = run_batch(run_id, name="ten-million-steps")
            httpx.post(
                path, content=body, headers=AS_LOCAL_USER | {"Content-Type": "application/json"}
            ).raise_for_status()
            asyncio.run(fill(postgres.url("series", driver="postgresql"), run_id, stream_id, steps))
            figures = measure(url, run_id, steps)
        finally:
            stop(process)
    write("series", figures)


if __name__ == "__main__":
    main()
