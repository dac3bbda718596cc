"""Postgres dies and comes back in the middle of ingestion: nothing lost or doubled, no answer but 200 and 503."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from app_in_process import ADDRESS, AS_LOCAL_USER, local_settings
from factories import make_batch, make_measurements
from killable_postgres import KillablePostgres, killable_postgres
from noisescale_server.app import create_app
from noisescale_server.services.ingest import ledger

pytestmark = [pytest.mark.slow, pytest.mark.processes]

ROWS = 10
NUM_SENDERS = 4


@pytest.fixture(scope="module")
def postgres() -> Iterator[KillablePostgres]:
    """One for all tests here: each finds it running and leaves it so."""
    with killable_postgres() as running:
        yield running


@dataclass
class Sender:
    """A job's side of one stream: sends a batch until it is acknowledged, then the next."""

    client: httpx.AsyncClient
    run_id: UUID = field(default_factory=uuid4)
    stream_id: UUID = field(default_factory=uuid4)
    num_acked: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    is_stopping: bool = False

    async def work(self) -> None:
        while not self.is_stopping:
            await self.send_next()

    async def send_next(self) -> None:
        answer = await self._send(self._next_batch())
        if answer.status_code == httpx.codes.OK:
            self.num_acked = answer.json()["acked_seq"]

    def _next_batch(self) -> dict[str, Any]:
        first = self.num_acked + 1
        if first == 1:
            return make_batch(run_id=self.run_id, measurements=make_measurements(steps=range(ROWS)))
        steps = range(first, first + ROWS)
        rows = make_measurements(first_seq=first, steps=steps)
        return make_batch(run_id=self.run_id, first_seq=first, crc32=first, measurements=rows)

    async def _send(self, body: dict[str, Any]) -> httpx.Response:
        answer = await self.client.post(f"/api/v1/streams/{self.stream_id}/batches", json=body)
        self.statuses[answer.status_code] += 1
        assert answer.status_code in (200, 503), answer.text
        if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            assert int(answer.headers["retry-after"]) >= 1
            # shorter than asked for: the test wants senders at the door when the database comes back
            await asyncio.sleep(0.01)
        return answer


async def ingest_through(postgres: KillablePostgres, faults: list[Callable[[], None]]) -> list[Sender]:
    """What the senders saw while these faults happened, each when all had made progress since the last."""
    app = create_app(local_settings(database_url=postgres.url()))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url=ADDRESS, headers=AS_LOCAL_USER
        ) as client,
        asyncio.timeout(60 * len(faults)),
    ):
        senders = [Sender(client) for _ in range(NUM_SENDERS)]
        async with asyncio.TaskGroup() as group:
            for sender in senders:
                group.create_task(sender.work())
            for fault in faults:
                await until_all_have_sent(senders, 3 * ROWS)
                fault()
                await until_all_have_sent(senders, 1)
            for sender in senders:
                sender.is_stopping = True
        await check_stored(app, senders)
    return senders


async def until_all_have_sent(senders: list[Sender], num_records: int) -> None:
    """Returns when each has so many more records acknowledged."""
    wanted = [sender.num_acked + num_records for sender in senders]
    while any(sender.num_acked < number for sender, number in zip(senders, wanted, strict=True)):  # noqa: ASYNC110
        await asyncio.sleep(0.005)  # the senders work meanwhile


async def check_stored(app: FastAPI, senders: list[Sender]) -> None:
    """Each acknowledged record is stored once, with what was sent, and counted once."""
    async with app.state.sessions() as session:
        assert (await ledger.audit(session)).wrong == []
        for sender in senders:
            found = await session.execute(
                text("SELECT seq, step, sum_trace_cov FROM measurement WHERE stream_id = :id ORDER BY seq"),
                {"id": sender.stream_id},
            )
            rows = found.all()
            assert [row.seq for row in rows] == list(range(2, sender.num_acked + 1))
            assert [row.sum_trace_cov for row in rows] == sent_by(sender)
            folded = text("SELECT num_rows FROM rollup WHERE stream_id = :id AND level = 5")
            assert sum((await session.scalars(folded, {"id": sender.stream_id})).all()) == len(rows)


def sent_by(sender: Sender) -> list[float]:
    """The traces of all records that were acknowledged, in order."""
    sent = list(make_measurements(steps=range(ROWS))["sum_trace_cov"])
    for first in range(ROWS + 2, sender.num_acked + 1, ROWS):
        sent += make_measurements(first_seq=first, steps=range(first, first + ROWS))["sum_trace_cov"]
    return sent


async def kill_in_turn(postgres: KillablePostgres, times: int) -> None:
    """The whole Postgres, then one backend, after which Postgres ends the others and recovers by itself."""

    def kill_and_start() -> None:
        postgres.kill()
        postgres.start()

    senders = await ingest_through(postgres, [kill_and_start, postgres.kill_one_backend] * times)

    refused = [sender.statuses[503] for sender in senders]
    assert min(refused) >= times, "some sender met no restart"


async def test_a_killed_postgres_and_a_killed_backend_lose_and_double_nothing(postgres: KillablePostgres) -> None:
    await kill_in_turn(postgres, 1)


async def test_a_frozen_postgres_is_503_in_time_and_thawed_loses_and_doubles_nothing(
    postgres: KillablePostgres,
) -> None:
    """Its own statement time-out does not fire: it is frozen too."""
    app = create_app(local_settings(database_url=postgres.url(), statement_timeout_seconds=0.5, pool_wait_seconds=0.5))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url=ADDRESS, headers=AS_LOCAL_USER) as client,
        asyncio.timeout(60),
    ):
        sender = Sender(client)
        while sender.num_acked == 0:
            await sender.send_next()

        postgres.freeze()
        await sender.send_next()
        frozen = Counter(sender.statuses)
        postgres.thaw()
        while sender.num_acked < 3 * ROWS:
            await sender.send_next()

        assert frozen[503] >= 1
        await check_stored(app, [sender])


@pytest.mark.slow
async def test_thirty_kills_lose_and_double_nothing(postgres: KillablePostgres) -> None:
    await kill_in_turn(postgres, 15)
