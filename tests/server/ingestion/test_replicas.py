"""Several servers on one Postgres take batches of the same stream at once: each record is stored once."""

import asyncio
import contextlib
import os
import random
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from app_in_process import ADDRESS, AS_LOCAL_USER, LOCAL_TOKEN, local_settings
from factories import make_batch, make_measurements
from noisescale_server.app import create_app
from noisescale_server.services.ingest import ledger
from noisescale_server.storage.access.visibility import session_factory
from noisescale_server.storage.platform.engine import create_engine
from places import with_support
from served_app import free_port
from torture.nursery import Nursery

pytestmark = pytest.mark.processes

NUM_REPLICAS = 3
NUM_PROCESSES = 4
NUM_SENDERS = 6
NUM_ROWS = 400
LAST_SEQ = NUM_ROWS + 1
ROWS = make_measurements(steps=range(NUM_ROWS))


@pytest.fixture(scope="module")
async def replicas(new_database: Callable[[], str]) -> AsyncIterator[list[FastAPI]]:
    """Servers that know nothing of each other but the database."""
    settings = local_settings(database_url=new_database(), allow_unsafe_database=True, pool_size=4)
    async with AsyncExitStack() as stack:
        apps = [create_app(settings) for _ in range(NUM_REPLICAS)]
        for app in apps:
            await stack.enter_async_context(app.router.lifespan_context(app))
        yield apps


def cut(run_id: UUID, first: int, last: int) -> dict[str, Any]:
    """Records first … last of the one sequence that every sender holds; the same cut has the same checksum."""
    rows = {name: column[max(first, 2) - 2 : last - 1] for name, column in ROWS.items()}
    crc32 = zlib.crc32(f"{first} {last}".encode())
    if first == 1:
        return make_batch(run_id=run_id, first_seq=1, last_seq=last, crc32=crc32, measurements=rows)
    return make_batch(run_id=run_id, first_seq=first, last_seq=last, crc32=crc32, with_run=False, measurements=rows)


class Uploader:
    """One of several that send the same spool: cuts it at random, sends parts again, and any replica will do."""

    def __init__(self, clients: list[httpx.AsyncClient], run_id: UUID, stream_id: UUID, seed: int) -> None:
        self.clients, self.run_id, self.stream_id = clients, run_id, stream_id
        self.random = random.Random(seed)
        self.statuses: Counter[int] = Counter()

    async def work(self) -> None:
        expected = 1
        while expected <= LAST_SEQ:
            first = max(1, expected + self.random.randint(-30, 10))
            last = min(LAST_SEQ, max(first, 2) + self.random.randint(0, 40))
            answer = await self._send(cut(self.run_id, min(first, last), last))
            expected = answer["acked_seq"] + 1 if "acked_seq" in answer else answer["expected_seq"]

    async def _send(self, body: dict[str, Any]) -> dict[str, Any]:
        client = self.random.choice(self.clients)
        answer = await client.post(f"/api/v1/streams/{self.stream_id}/batches", json=body)
        self.statuses[answer.status_code] += 1
        if answer.status_code == httpx.codes.NOT_FOUND:  # no other sender has brought the run yet
            return {"expected_seq": 1}
        if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:  # no time for it: later, as the SDK does
            assert self.statuses[answer.status_code] <= 20, answer.text
            await asyncio.sleep(1)
            return await self._send(body)
        assert answer.status_code in (200, 409), answer.text
        assert answer.status_code == 200 or answer.json()["type"] == "/errors/stream-gap", answer.text
        result: dict[str, Any] = answer.json()
        return result


@pytest.mark.parametrize("seed", range(3))
async def test_one_stream_sent_by_many_to_many_is_stored_once(replicas: list[FastAPI], seed: int) -> None:
    run_id, stream_id = uuid4(), uuid4()
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ADDRESS, headers=AS_LOCAL_USER)
            )
            for app in replicas
        ]
        uploaders = [Uploader(clients, run_id, stream_id, 100 * seed + number) for number in range(NUM_SENDERS)]
        await asyncio.gather(*(uploader.work() for uploader in uploaders))

    async with replicas[0].state.sessions() as session:
        await check_stored_once(session, stream_id)
    assert sum(uploader.statuses[200] for uploader in uploaders) > NUM_SENDERS


async def check_stored_once(session: AsyncSession, stream_id: UUID) -> None:
    """Every row is there once, as it was sent, folded once into each level, and in a true ledger."""
    found = await session.execute(
        text("SELECT seq, sum_trace_cov FROM measurement WHERE stream_id = :id ORDER BY seq"), {"id": stream_id}
    )
    folded = await session.scalars(
        text("SELECT sum(num_rows) FROM rollup WHERE stream_id = :id GROUP BY level"), {"id": stream_id}
    )
    rows, folds = [tuple(row) for row in found], folded.all()
    assert rows == list(zip(range(2, LAST_SEQ + 1), ROWS["sum_trace_cov"], strict=True))
    assert [int(fold) for fold in folds] == [NUM_ROWS] * 5
    assert (await ledger.audit(session)).wrong == []


@pytest.fixture
def processes(database_url: str, tmp_path: Path) -> Iterator[list[str]]:
    """The addresses of four server processes on one database."""
    environment = os.environ | {
        "NOISESCALE_DATABASE_URL": database_url,
        "NOISESCALE_ALLOW_UNSAFE_DATABASE": "true",
        "NOISESCALE_LOCAL_TOKEN": LOCAL_TOKEN,
        "PYTHONPATH": with_support(),
    }
    nursery = Nursery(environment, tmp_path / "servers.log")
    ports = [free_port() for _ in range(NUM_PROCESSES)]
    servers = [nursery.fork([f"--port={port}", f"--oracle={tmp_path}"]) for port in ports]
    try:
        yield [f"{ADDRESS}:{port}" for port in ports]
    finally:
        for server in servers:
            server.kill()
        nursery.close()


async def until_ready(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if (await client.get("/livez")).status_code == httpx.codes.OK:
                    return
            await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_one_stream_sent_to_four_processes_at_once_is_stored_once(
    processes: list[str], database_url: str
) -> None:
    run_id, stream_id = uuid4(), uuid4()
    async with AsyncExitStack() as stack:
        opened = [httpx.AsyncClient(base_url=url, headers=AS_LOCAL_USER, timeout=60) for url in processes]
        clients = [await stack.enter_async_context(client) for client in opened]
        for client in clients:
            await until_ready(client)
        await asyncio.gather(*(Uploader(clients, run_id, stream_id, seed).work() for seed in range(NUM_SENDERS)))

    engine = create_engine(database_url, pool_size=1)
    async with session_factory(engine)() as session:
        await check_stored_once(session, stream_id)
    await engine.dispose()
