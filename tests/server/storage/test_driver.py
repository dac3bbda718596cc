"""What the driver is asked for: arrays without a look at each of their elements, reads without a transaction."""

from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg.protocol.protocol as asyncpg_codecs
import pytest
from asyncpg.exceptions import DataError, PostgresError
from fastapi import FastAPI
from httpx import AsyncClient
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from app_in_process import running_app
from factories import make_batch, make_measurements
from noisescale_server.storage.access.visibility import session_factory
from noisescale_server.storage.platform.driver import ARRAYS, PLANNED_ONCE, fetch, read, read_by_key
from noisescale_server.storage.platform.engine import create_engine

_TRANSACTION = "SELECT pg_current_xact_id()"


@pytest.mark.parametrize("given", [[1.5, None], (1.5, None), {1.5, None}], ids=["list", "tuple", "set"])
async def test_an_array_goes_to_the_database_with_its_nulls(shared_app: FastAPI, given: object) -> None:
    async with shared_app.state.sessions() as session:
        (found,) = await read(session, "SELECT array_to_string($1::float8[], ',', '-') AS said", given)

    assert sorted(found["said"].split(",")) == ["-", "1.5"]


async def test_a_text_is_no_array_of_its_characters(shared_app: FastAPI) -> None:
    async with shared_app.state.sessions() as session:
        with pytest.raises(DataError, match="a sized iterable container expected"):
            await read(session, "SELECT $1::text[]", "abc")


def test_the_driver_knows_arrays_by_their_classes() -> None:
    """An abstract base class instead of them is asked in Python, of every element."""
    assert vars(asyncpg_codecs)["IterableABC"] is ARRAYS


async def test_a_plain_read_is_no_transaction_and_any_other_is_one(shared_app: FastAPI) -> None:
    are_one = []
    for sessions in (shared_app.state.plain_read_sessions, shared_app.state.read_sessions):
        async with sessions() as session:
            first, second = [(await session.execute(text(_TRANSACTION))).scalar_one() for _ in range(2)]
            are_one.append(first == second)

    assert are_one == [False, True]


async def test_all_that_a_session_fetches_is_one_transaction_and_goes_with_it(shared_app: FastAPI) -> None:
    name = f"never {uuid4()}"
    async with shared_app.state.sessions() as session:
        seen = [await fetch(session, _TRANSACTION) for _ in range(3)]
        # the first by way of SQLAlchemy, this one past it
        await fetch(session, "INSERT INTO project (name) VALUES ($1::text)", name)
        found = await fetch(session, "SELECT name FROM project WHERE name = $1::text", name)
        await session.rollback()
        after = [await fetch(session, "SELECT name FROM project WHERE name = $1::text", name) for _ in range(2)]

    assert seen[0] == seen[1] == seen[2]
    assert (found, after) == ([(name,)], [[], []])


@pytest.mark.parametrize(("sqlstate", "is_given_up"), [("XX000", True), ("23505", False)])
async def test_a_connection_whose_plans_may_be_stale_is_given_up(
    database_url: str, sqlstate: str, is_given_up: bool
) -> None:
    engine = create_engine(database_url, pool_size=1)
    sessions, backends = session_factory(engine), []
    for _ in range(2):
        async with sessions() as session:
            backends += await fetch(session, "SELECT pg_backend_pid()")
            with pytest.raises(PostgresError):
                await fetch(session, f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{sqlstate}'; END $$")
    await engine.dispose()

    assert (backends[0] != backends[1]) == is_given_up


PLANNING = "SELECT current_setting('plan_cache_mode') AS plans, current_setting('enable_seqscan') AS whole_tables"


async def how_it_plans(session: AsyncSession) -> tuple[str, str]:
    [found] = await read(session, PLANNING)
    return found["plans"], found["whole_tables"]


async def test_outside_a_transaction_statements_by_key_are_planned_once_until_the_connection_goes_back(
    database_url: str,
) -> None:
    engine = create_engine(database_url, pool_size=1)
    async with session_factory(engine.execution_options(isolation_level="AUTOCOMMIT"))() as session:
        connection = await session.connection()
        assert await how_it_plans(session) == ("auto", "on")

        await read_by_key(session, "SELECT 1 WHERE $1::int = 1", 1)

        assert await how_it_plans(session) == ("force_generic_plan", "off")
        assert PLANNED_ONCE in connection.info

    async with session_factory(engine).begin() as session:
        assert await how_it_plans(session) == ("auto", "on"), "on the same connection, the only one"
        await read_by_key(session, "SELECT 1 WHERE $1::int = 1", 1)
        assert await how_it_plans(session) == ("auto", "on")
    await engine.dispose()


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[FastAPI]:
    """The server with one connection, which all that it does by itself takes as well."""
    async with running_app(database_url, pool_size=1, pool_max_overflow=0) as created:
        yield created


async def test_a_chart_is_read_by_plans_that_are_made_once(app: FastAPI, client: AsyncClient) -> None:
    run_id, url = uuid4(), f"/api/v1/streams/{uuid4()}/batches"
    body = make_batch(run_id=run_id, measurements=make_measurements(steps=range(100)))
    (await client.post(url, json=body)).raise_for_status()

    for _ in range(3):
        (await client.get(f"/api/v1/runs/{run_id}/noise-scale")).raise_for_status()

    async with app.state.plain_read_sessions() as session:
        plans = await read(
            session,
            "SELECT generic_plans FROM pg_prepared_statements WHERE statement LIKE '%piece AS %'",
        )
    # where records come in, within a transaction, each is planned for what it asks
    assert max(one["generic_plans"] for one in plans) >= 3
