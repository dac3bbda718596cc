"""Postgres is there and says nothing: every route answers in time, many at once too, and thawed all is as before."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from app_in_process import client_of, local_settings
from dashboard_callbacks import Callbacks
from factories import make_batch, make_run
from killable_postgres import KillablePostgres, killable_postgres
from noisescale_dashboard.app import mount
from noisescale_server.api.access import rates
from noisescale_server.app import create_app
from noisescale_server.storage.access.visibility import session_factory
from noisescale_server.storage.platform import engine
from noisescale_server.storage.platform.driver import fetch

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.processes]

IN_TIME = 15.0
READY_IN_TIME = 2.0


@pytest.fixture(scope="module")
def postgres() -> Iterator[KillablePostgres]:
    """One for all tests here: each finds it running and leaves it so."""
    with killable_postgres() as running:
        yield running


@asynccontextmanager
async def served_from(postgres: KillablePostgres) -> AsyncIterator[tuple[FastAPI, httpx.AsyncClient]]:
    """The server with the dashboard, by default settings, and HTTP into it."""
    app = create_app(local_settings(database_url=postgres.url()))
    mount(app)
    async with app.router.lifespan_context(app), client_of(app) as client:
        yield app, client


@asynccontextmanager
async def frozen(postgres: KillablePostgres) -> AsyncIterator[None]:
    postgres.freeze()
    try:
        yield
    finally:
        postgres.thaw()


async def timed(client: httpx.AsyncClient, method: str, path: str, body: object = None) -> tuple[httpx.Response, float]:
    begin = time.monotonic()
    answer = await client.request(method, path, json=body)
    return answer, time.monotonic() - begin


def requests_of(app: FastAPI) -> list[tuple[str, str, object]]:
    """One request for each operation of the API: for things that there are not, with bodies that are well-formed."""
    known: dict[tuple[str, str], object] = {
        ("POST", "/api/v1/runs"): make_run(),
        ("POST", "/api/v1/streams/{stream_id}/batches"): make_batch(),
        ("POST", "/api/v1/runs/changes"): {"ids": [str(uuid4())], "archived": True},
        ("PATCH", "/api/v1/runs/{run_id}"): {"name": "x"},
        ("PATCH", "/api/v1/sweeps/{sweep_id}"): {"name": "x"},
    }
    found = []
    for path, methods in app.openapi()["paths"].items():
        for method in methods:
            filled = path
            for name in ("run_id", "stream_id", "sweep_id", "reproduction_id", "person_id"):
                filled = filled.replace(f"{{{name}}}", str(uuid4()))
            filled = filled.replace("{project}", "demo").replace("{task}", "digits").replace("{key_id}", "a" * 10)
            if filled.endswith(("/recommendations", "/sparklines", "/critical-batches")):
                filled += f"?ids={uuid4()}"
            found.append((method.upper(), filled, known.get((method.upper(), path))))
    return found


async def test_every_route_answers_within_fifteen_seconds_and_those_that_ask_the_database_say_so(
    postgres: KillablePostgres,
) -> None:
    async with served_from(postgres) as (app, client):
        asked = requests_of(app)
        # the project that they name is there before all of them, so that they answer alike each time
        await client.post("/api/v1/runs", json=make_run())
        before = [(await client.request(method, path, json=body)).status_code for method, path, body in asked]
        async with frozen(postgres):
            answers = await asyncio.gather(*(timed(client, *one) for one in asked))
        again = [(await client.request(method, path, json=body)).status_code for method, path, body in asked]

    for one, status, (answer, seconds) in zip(asked, before, answers, strict=True):
        assert seconds < (READY_IN_TIME if one[1] == "/readyz" else IN_TIME), (*one[:2], seconds)
        # what is refused before the database is asked, is refused as ever
        assert answer.status_code in (503, status), (*one[:2], answer.text)
        if answer.status_code == 503:
            assert answer.json()["type"] in ("/errors/database-unreachable", "/errors/busy")
            assert int(answer.headers["retry-after"]) >= 1
    refused = {(method, path.split("?")[0]) for (method, path, _), (answer, _) in zip(asked, answers, strict=True)
               if answer.status_code == 503}  # fmt: skip
    assert ("POST", "/api/v1/runs") in refused
    assert sum(method == "GET" for method, _ in refused) >= 25
    assert any(path.endswith("/heartbeat") for _, path in refused)
    assert any(path.endswith("/batches") for _, path in refused)
    assert again == before


@pytest.mark.parametrize("path", ["/api/v1/runs", "/readyz"])
async def test_so_do_more_requests_than_there_are_connections(postgres: KillablePostgres, path: str) -> None:
    async with served_from(postgres) as (_, client):
        assert (await client.get(path)).status_code == 200
        async with frozen(postgres):
            answers = await asyncio.gather(*(timed(client, "GET", path) for _ in range(100)))
            # and who comes next, when all connections have been given up
            late = await timed(client, "GET", path)
        thawed = await timed(client, "GET", path)

    longest = READY_IN_TIME if path == "/readyz" else IN_TIME
    assert {answer.status_code for answer, _ in (*answers, late)} == {503}
    assert max(seconds for _, seconds in (*answers, late)) < longest
    assert thawed[0].status_code == 200
    assert thawed[1] < 2.0


async def test_a_stream_that_froze_in_a_batch_goes_on_where_it_was(postgres: KillablePostgres) -> None:
    path, batch = f"/api/v1/streams/{uuid4()}/batches", make_batch()
    async with served_from(postgres) as (_, client):
        await client.get("/api/v1/runs")
        async with frozen(postgres):
            refused, _ = await timed(client, "POST", path, batch)
        stored = await client.post(path, json=batch)

    assert refused.status_code == 503
    assert (stored.status_code, stored.json()["acked_seq"]) == (200, batch["last_seq"])


async def test_a_statement_that_froze_gives_up_every_connection_that_was_open(postgres: KillablePostgres) -> None:
    own = engine.create_engine(postgres.url(), pool_size=2, statement_timeout_seconds=0.2)
    sessions = session_factory(own)

    async def backends() -> set[int]:
        async with sessions() as first, sessions() as second:
            return {(await fetch(one, "SELECT pg_backend_pid()"))[0][0] for one in (first, second)}

    before = await backends()
    async with sessions() as session:
        await fetch(session, "SELECT 1")
        async with frozen(postgres):
            # within the transaction, so past SQLAlchemy
            with pytest.raises(TimeoutError):
                await fetch(session, "SELECT 2")
    after = await backends()
    await own.dispose()

    assert len(before) == len(after) == 2
    assert before.isdisjoint(after)


async def test_pages_say_that_the_database_is_gone(postgres: KillablePostgres) -> None:
    async with served_from(postgres) as (_, client):
        callbacks = await Callbacks.of(client)
        async with frozen(postgres):
            begin = time.monotonic()
            view = {"scope": "running", "pref": "0.5", "project": None}
            body = callbacks.payload("overview-figures.data", {"overview-view.data": view, "narrow.data": False})
            answer = await client.post("/_dash-update-component", json=body)
            seconds = time.monotonic() - begin

    assert seconds < IN_TIME
    assert answer.headers["x-noisescale-api"] == "down"


async def test_the_time_given_to_a_silent_postgres_is_what_the_promise_says() -> None:
    """Waiting for a connection, a statement on it, and taking it back (2 s in SQLAlchemy); or for a turn, and then two
    times for a connection, as those that were open have been given up by then."""
    settings = local_settings(database_url="postgresql://nowhere/none")
    waiting = settings.pool_wait_seconds
    silent = settings.statement_timeout_seconds + engine.SECONDS_AFTER_ITS_OWN_TIMEOUT

    assert waiting + silent + 2.0 < IN_TIME
    assert rates.LONGEST_WAIT_SECONDS + 2 * waiting < IN_TIME
