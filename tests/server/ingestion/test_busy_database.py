"""A database that answers too late, or has no session left: 503 with the seconds to wait, and then all is as before."""

from collections.abc import Callable
from uuid import uuid4

from sqlalchemy import text

from app_in_process import client_of, running_app
from factories import make_batch
from problems import assert_problem


async def test_a_statement_that_waits_too_long_is_503_and_stored_when_it_comes_again(
    new_database: Callable[[], str],
) -> None:
    path, batch = f"/api/v1/streams/{uuid4()}/batches", make_batch()
    async with running_app(new_database(), statement_timeout_seconds=0.3) as app, client_of(app) as client:
        async with app.state.sessions() as other:
            await other.execute(text("LOCK TABLE stream IN ACCESS EXCLUSIVE MODE"))
            refused = await client.post(path, json=batch)
        stored = await client.post(path, json=batch)

    assert_problem(refused, 503, "database-unreachable")
    assert int(refused.headers["retry-after"]) >= 1
    assert (stored.status_code, stored.json()["acked_seq"]) == (200, batch["last_seq"])


async def test_a_request_that_finds_no_session_is_503_and_answered_when_one_is_free(
    new_database: Callable[[], str],
) -> None:
    one_session = {"pool_size": 1, "pool_max_overflow": 0, "pool_wait_seconds": 0.3}
    async with running_app(new_database(), **one_session) as app, client_of(app) as client:
        async with app.state.read_sessions() as other:
            await other.execute(text("SELECT 1"))
            refused = await client.get("/api/v1/runs")
        answered = await client.get("/api/v1/runs")

    assert_problem(refused, 503, "database-unreachable")
    assert int(refused.headers["retry-after"]) >= 1
    assert answered.status_code == 200
