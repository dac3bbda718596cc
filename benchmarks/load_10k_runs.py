"""Ten thousand runs of a thousand rows each, replayed by fifty senders; then a thousand jobs that come back at once.

Every run is one stream of the wire format. What is stored is checked in the end by `noisescale audit`: each row of each
stream once. `--smoke` sends twenty runs.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid4

import httpx
import psutil
from harness import AS_LOCAL_USER, percentile, server
from payloads import MeasurementBatches, run_batch
from results_file import Figure, write
from smoke import size

RUNS = size(10_000, 20)
ROWS_OF_A_BATCH, BATCHES_OF_A_RUN = 500, 2
SENDERS = 50
JOBS_AFTER_AN_OUTAGE = 1_000
HEADERS = AS_LOCAL_USER | {"Content-Type": "application/json"}
WAIT_SECONDS = 0.2
ANY_RUN = UUID(int=0, version=4)


class Bodies:
    """The batches of a run, encoded once: only its id is another one each time."""

    def __init__(self) -> None:
        source = MeasurementBatches(ANY_RUN, ROWS_OF_A_BATCH, 0, compressed=False)
        bodies = [source.body(batch * ROWS_OF_A_BATCH) for batch in range(BATCHES_OF_A_RUN)]
        self._bodies = [run_batch(ANY_RUN, name="a run"), *bodies]

    def of_run(self, run_id: UUID) -> Iterator[bytes]:
        """In the order of the records."""
        return (body.replace(str(ANY_RUN).encode(), str(run_id).encode()) for body in self._bodies)


@dataclass
class Replay:
    """Senders that take runs one after another.

    Attributes:
        seconds: Of each batch that was stored.
        num_refused: Batches that were told to wait: 429 and 503.
    """

    bodies: Bodies
    seconds: list[float] = field(default_factory=list)
    num_refused: int = 0

    async def replay(self, client: httpx.AsyncClient, num_runs: int, num_senders: int) -> float:
        """Seconds until all runs are stored."""
        left = iter(range(num_runs))

        async def send() -> None:
            for _ in left:
                await self._send_run(client)

        start = time.perf_counter()
        await asyncio.gather(*(send() for _ in range(num_senders)))
        return time.perf_counter() - start

    async def _send_run(self, client: httpx.AsyncClient) -> None:
        path = f"/api/v1/streams/{uuid4()}/batches"
        for body in self.bodies.of_run(uuid4()):
            await self._post(client, path, body)

    async def _post(self, client: httpx.AsyncClient, path: str, body: bytes) -> None:
        start = time.perf_counter()
        while (answer := await client.post(path, content=body, headers=HEADERS)).status_code in (429, 503):
            self.num_refused += 1
            await asyncio.sleep(WAIT_SECONDS)
        answer.raise_for_status()
        self.seconds.append(time.perf_counter() - start)


@contextmanager
def memory_of_server() -> Iterator[list[int]]:
    """Bytes that the server's processes hold, without Postgres, once a second during the block."""
    found: list[int] = []
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(1.0):
            family = [child for child in psutil.Process().children(recursive=True) if "postgres" not in child.name()]
            found.append(sum(child.memory_info().rss for child in family))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        is_over.set()
        thread.join()


def audit() -> str:
    """What `noisescale audit` says of the running server's database: how many streams, each with every record once."""
    [data_dir] = {
        child.environ()["NOISESCALE_DATA_DIR"]
        for child in psutil.Process().children()
        if "NOISESCALE_DATA_DIR" in child.environ()
    }
    found = subprocess.run(
        [str(Path(sys.executable).with_name("noisescale")), "audit"],
        env=os.environ | {"NOISESCALE_DATA_DIR": data_dir},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout


def figures_of(name: str, replay: Replay, num_rows: int, seconds: float) -> list[Figure]:
    """Throughput and latency."""
    return [
        Figure(f"{name}: rows a second", num_rows / seconds, "rows/s"),
        Figure(f"{name}: until everything is stored", seconds, "s"),
        Figure(f"{name}: batch p50", 1e3 * percentile(replay.seconds, 0.5), "ms"),
        Figure(f"{name}: batch p99", 1e3 * percentile(replay.seconds, 0.99), "ms"),
        Figure(f"{name}: batches told to wait", replay.num_refused, ""),
    ]


async def load(url: str, num_runs: int, num_jobs: int) -> list[Figure]:
    """Both phases."""
    bodies, rows = Bodies(), ROWS_OF_A_BATCH * BATCHES_OF_A_RUN
    limits = httpx.Limits(max_connections=num_jobs)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as client:
        steady, herd = Replay(bodies), Replay(bodies)
        seconds = await steady.replay(client, num_runs, SENDERS)
        drained = await herd.replay(client, num_jobs, num_jobs)
    return [
        *figures_of(f"{num_runs} runs, {SENDERS} senders", steady, num_runs * rows, seconds),
        *figures_of(f"{num_jobs} jobs at once", herd, num_jobs * rows, drained),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--workers", type=int, default=1)
    chosen = parser.parse_args(arguments)
    num_runs = chosen.runs
    num_jobs = min(JOBS_AFTER_AN_OUTAGE, num_runs)
    with server(workers=chosen.workers) as url, memory_of_server() as memory:
        figures = asyncio.run(load(url, num_runs, num_jobs))
        said = audit()
    if not said.startswith(f"{num_runs + num_jobs} streams: every record is stored"):
        raise SystemExit(f"lost or doubled: {said}")
    figures.append(Figure("memory of the server, largest", max(memory) / 2**20, "MiB"))
    figures.append(Figure("streams with a wrong ledger", 0, "streams", "0"))
    name = "load" if chosen.workers == 1 else f"load-{chosen.workers}-workers"
    write(name, figures, command=f"python benchmarks/load_10k_runs.py --runs {num_runs} --workers {chosen.workers}")


if __name__ == "__main__":
    main()
