"""Faults of a Citus cluster while jobs log and pages are open: workers and coordinator killed, shards moved.

Nothing may be lost or doubled: what was acknowledged is compared with what is stored, record by record, and every
stream is audited. `make test-citus` runs the smoke form.
"""

import asyncio
import itertools
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid4

from results_file import Figure, write
from smoke import size

sys.path.extend(map(str, (Path(__file__).parents[1] / "tests").glob("**/support")))

import asyncpg
import httpx

from app_in_process import client_of, running_app
from citus_cluster import CitusCluster
from factories import make_batch, make_measurements
from noisescale_server.cli import upkeep
from noisescale_server.cli.commands import bring_up_to_date
from noisescale_server.embedded.cluster import DATABASE
from noisescale_server.process import app_role
from noisescale_server.process.settings import Settings

NUM_JOBS = size(12, 4)
ROWS = 20
SECONDS_BETWEEN_FAULTS = size(3.0, 1.5)
ROUNDS = size(4, 1)
PATIENCE_SECONDS = 120.0


@dataclass
class Job:
    """A process that trains: it keeps what is not acknowledged and sends it again, as the client's spool does."""

    run_id: UUID = field(default_factory=uuid4)
    stream_id: UUID = field(default_factory=uuid4)
    acked: int = 0
    resent: int = 0

    def body(self, number: int) -> dict[str, object]:
        """Batch `number` of the spool, the first with the run."""
        first = 1 if number == 0 else 2 + number * ROWS
        steps = range(number * ROWS, (number + 1) * ROWS)
        rows = make_measurements(first_seq=2 + number * ROWS, steps=steps)
        return make_batch(run_id=self.run_id, first_seq=first, crc32=number, with_run=number == 0, measurements=rows)

    async def send_until(self, client: httpx.AsyncClient, stops: asyncio.Event, answers: Counter[str]) -> None:
        """Send batch after batch; one that is not acknowledged is sent again, whatever the answer was."""
        while not stops.is_set() or (self.acked - 1) % ROWS:
            number = max(0, self.acked - 1) // ROWS
            try:
                answer = await client.post(f"/api/v1/streams/{self.stream_id}/batches", json=self.body(number))
            except httpx.HTTPError:
                answers["batches that got no answer"] += 1
                continue
            if answer.status_code == 200:
                self.acked = answer.json()["acked_seq"]
                answers["batches acknowledged"] += 1
            elif answer.status_code == 409 and "expected_seq" in answer.json():
                self.acked = answer.json()["expected_seq"] - 1
                answers["batches asked for again"] += 1
            else:
                answers[f"batches answered {answer.status_code}, sent again"] += 1
                self.resent += 1
                await asyncio.sleep(0.1)


async def look(client: httpx.AsyncClient, jobs: list[Job], stops: asyncio.Event, answers: Counter[str]) -> None:
    """Somebody with the pages open."""
    for job in itertools.cycle(jobs):
        if stops.is_set():
            return
        for path in ("/api/v1/runs?limit=50", f"/api/v1/runs/{job.run_id}/noise-scale"):
            answer = await client.get(path)
            answers[f"pages answered {answer.status_code}"] += 1
        await asyncio.sleep(0.05)


async def under_load(database_url: str, jobs: list[Job], faults: Callable[[], Awaitable[None]]) -> Counter[str]:
    """What was answered while the faults happened; everything that was sent is acknowledged at the end."""
    answers: Counter[str] = Counter()
    stops = asyncio.Event()
    async with running_app(database_url, allow_unsafe_database=False) as app, client_of(app) as client:
        sending = [asyncio.create_task(job.send_until(client, stops, answers)) for job in jobs]
        looking = asyncio.create_task(look(client, jobs, stops, answers))
        await asyncio.sleep(SECONDS_BETWEEN_FAULTS)
        await faults()
        await asyncio.sleep(SECONDS_BETWEEN_FAULTS)
        stops.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(looking, *sending)
    return answers


async def compared(url: str, jobs: list[Job]) -> tuple[int, int, int, int]:
    """Records that were acknowledged; those not seen at once, and never; and rows that are there twice.

    A worker that dies between the two halves of a commit has the rows, and shows them once Citus has ended the commit.
    It looks for such commits once a minute, and here when it is told to.
    """
    connection = await asyncpg.connect(url)
    expected = {(job.stream_id, seq) for job in jobs for seq in range(2, job.acked + 1)}
    at_once = await stored(connection)
    await connection.execute("SELECT recover_prepared_transactions()")
    in_the_end = await stored(connection)
    await connection.close()
    return (
        len(expected),
        len(expected - set(at_once)),
        len(expected - set(in_the_end)),
        sum(in_the_end.values()) - len(in_the_end),
    )


async def stored(connection: asyncpg.Connection) -> Counter[tuple[UUID, int]]:
    """How often each record is there."""
    rows = await connection.fetch("SELECT stream_id, seq FROM measurement")
    return Counter((row["stream_id"], row["seq"]) for row in rows)


class Campaign:
    """One cluster, its jobs, and what becomes of them."""

    def __init__(self, cluster: CitusCluster) -> None:
        self._cluster = cluster
        self._owner_url = cluster.url()
        bring_up_to_date(Settings(database_url=None, migration_database_url=None), self._owner_url)
        self._app_url = app_role.address(self._owner_url)
        self.jobs = [Job() for _ in range(NUM_JOBS)]
        self.figures: list[Figure] = []

    def phase(self, name: str, faults: Callable[[], Awaitable[None]]) -> None:
        """Jobs log while the faults happen; then nothing is missing, and no ledger is wrong."""
        began = time.monotonic()
        answers = asyncio.run(under_load(self._app_url, self.jobs, faults))
        self._note(name, answers, self._owner_url, time.monotonic() - began)

    def _note(self, name: str, answers: Counter[str], url: str, seconds: float) -> None:
        accepted, late, lost, doubled = asyncio.run(compared(url.replace("+asyncpg", ""), self.jobs))
        audit = upkeep.audit(Settings(database_url=app_role.address(url), allow_unsafe_database=True))
        found = [Figure(f"{name}: {what}", number, "") for what, number in sorted(answers.items())]
        found += [
            Figure(f"{name}: records accepted so far", accepted, "records"),
            Figure(f"{name}: records seen only when Citus has ended their commit", late, "records"),
            Figure(f"{name}: records lost", lost, "records", "0"),
            Figure(f"{name}: records doubled", doubled, "records", "0"),
            Figure(f"{name}: exit code of `noisescale audit`", audit, "", "0"),
            Figure(f"{name}: time", seconds, "s"),
        ]
        for figure in found:
            print(f"{figure.name}: {figure.value} {figure.unit}", flush=True)
        self.figures += found

    async def kill_a_worker(self) -> None:
        """Kill -9 of a worker with all its sessions, and its start two seconds later; each in turn."""
        for number in range(ROUNDS):
            worker = self._cluster.workers[number % len(self._cluster.workers)]
            await asyncio.to_thread(worker.kill)
            await asyncio.sleep(2.0)
            worker.start()
            await worker.until_ready()
            await asyncio.sleep(SECONDS_BETWEEN_FAULTS)

    async def restart_the_coordinator(self) -> None:
        """Kill -9 of the coordinator, and its start; every second time a fast shutdown instead."""
        coordinator = self._cluster.coordinator
        for number in range(ROUNDS):
            await asyncio.to_thread(coordinator.stop if number % 2 else coordinator.kill)
            await asyncio.sleep(1.0)
            coordinator.start()
            await coordinator.until_ready()
            await asyncio.sleep(SECONDS_BETWEEN_FAULTS)

    async def move_shards(self) -> None:
        """To the worker that has just come, while jobs log; a rebalancer chooses them."""
        connection = await asyncpg.connect(self._cluster.coordinator.url(DATABASE))
        await connection.execute("SELECT citus_rebalance_start(shard_transfer_mode => 'force_logical')")
        await connection.execute("SELECT citus_rebalance_wait()")
        moved = await connection.fetchval(
            "SELECT count(*) FROM citus_shards WHERE nodename = $1 AND citus_table_type = 'distributed'",
            str(self._cluster.workers[-1].sockets),
        )
        await connection.close()
        self.figures.append(Figure("shards moved to a worker that was added", moved, "", "above 0"))

    def add_a_worker(self) -> None:
        """In the main thread: the kernel stops a node when the thread that started it ends."""
        self._cluster.add_worker(DATABASE)

    def go_back(self, folder: Path) -> None:
        """A backup is written while jobs log, and read into a new database, to which the jobs then go on sending."""
        file = folder / "backup"
        owner = Settings(database_url=self._owner_url, allow_unsafe_database=True)

        async def back_up() -> None:
            await asyncio.to_thread(upkeep.back_up, owner, file=file)

        self.phase("backup while jobs log", back_up)
        self._cluster.create_database("restored")
        restored = self._cluster.url("restored")
        settings = Settings(
            database_url=app_role.address(restored), migration_database_url=restored, allow_unsafe_database=True
        )
        began = time.monotonic()
        upkeep.restore(settings, file=file)

        async def nothing() -> None:
            """The jobs find out by themselves that the database went back."""

        answers = asyncio.run(under_load(app_role.address(restored), self.jobs, nothing))
        self._note("restored, jobs go on", answers, restored, time.monotonic() - began)


def main() -> None:
    """Entry point."""
    with tempfile.TemporaryDirectory() as folder, CitusCluster.throw_away(is_durable=True) as cluster:
        campaign = Campaign(cluster)
        campaign.phase("worker killed and back", campaign.kill_a_worker)
        campaign.phase("coordinator killed or restarted", campaign.restart_the_coordinator)
        campaign.add_a_worker()
        campaign.phase("worker added, shards moved", campaign.move_shards)
        campaign.go_back(Path(folder))
    write("citus_faults", campaign.figures, command="make test-citus FAULTS=whole")
    wrong = [one.name for one in campaign.figures if one.target == "0" and one.value]
    if wrong:
        raise SystemExit(f"not as promised: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
