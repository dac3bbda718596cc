"""Connections that batches use are open, and their statements planned, before the first burst of them comes."""

import asyncio
from collections.abc import Callable

from fastapi import FastAPI

from app_in_process import running_app
from noisescale_server.api.platform.transactions import CONNECTIONS_FOR_READERS
from noisescale_server.process.warming import kept_warm
from noisescale_server.services.ingest.rehearsal import rehearse
from noisescale_server.storage.platform.driver import fetch
from noisescale_server.storage.platform.engine import create_engine

_ROWS = "SELECT (SELECT count(*) FROM measurement) + (SELECT count(*) FROM run) + (SELECT count(*) FROM stream)"
_PLANNED_FOR_GOOD = """
SELECT count(*) FROM pg_prepared_statements
WHERE generic_plans > 0 AND (statement LIKE '%INSERT INTO measurement%' OR statement LIKE '%UPDATE run SET%'
  OR statement LIKE '%FOR UPDATE OF s%')
"""


async def test_a_server_opens_as_many_connections_as_batches_take_at_once(new_database: Callable[[], str]) -> None:
    async with running_app(new_database(), pool_size=5) as app:
        pool = app.state.sessions.kw["bind"].pool
        for _ in range(300):
            if pool.checkedin() >= 5 - CONNECTIONS_FOR_READERS:
                break
            await asyncio.sleep(0.05)

        assert pool.checkedin() >= 5 - CONNECTIONS_FOR_READERS


async def test_a_rehearsed_batch_stores_nothing_and_leaves_its_statements_planned(shared_app: FastAPI) -> None:
    async with shared_app.state.sessions() as session:
        before = await fetch(session, _ROWS)

        await rehearse(session)

        assert await fetch(session, _ROWS) == before
        # the cursor, the rows, the run without a window and with one
        assert (await fetch(session, _PLANNED_FOR_GOOD))[0][0] >= 4


async def test_a_server_whose_database_is_away_starts_all_the_same() -> None:
    engine = create_engine("postgresql://nobody@127.0.0.1:1/none")

    async with kept_warm(engine, 2):
        await asyncio.sleep(1.0)

    assert engine.pool.checkedin() == 0
