"""A job whose steps take minutes is not silent: it says that it lives, and hears where the server stands."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from factories import make_batch


async def run_silently(app: FastAPI, client: httpx.AsyncClient) -> tuple[UUID, UUID]:
    """Run and stream of a job that sent its last record five minutes ago."""
    run_id, stream_id = uuid4(), uuid4()
    answer = await client.post(f"/api/v1/streams/{stream_id}/batches", json=make_batch(run_id=run_id))
    assert answer.status_code == 200, answer.text
    async with app.state.sessions.begin() as session:
        back = text("UPDATE run SET updated_at = :at WHERE id = :id")
        await session.execute(back, {"at": datetime.now(UTC) - timedelta(minutes=5), "id": run_id})
    return run_id, stream_id


async def test_a_silent_run_runs_again_when_its_process_says_that_it_lives(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    run_id, stream_id = await run_silently(app, client)
    before = (await client.get(f"/api/v1/runs/{run_id}")).json()["status"]

    answer = await client.post(f"/api/v1/streams/{stream_id}/heartbeat")

    known = (await client.get(f"/api/v1/streams/{stream_id}")).json()
    assert before == "silent"
    assert (await client.get(f"/api/v1/runs/{run_id}")).json()["status"] == "running"
    assert answer.json() == {"acked_seq": known["acked_seq"], "epoch": known["epoch"]}


async def test_a_heartbeat_changes_nothing_but_when_the_run_was_heard_of(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    run_id, stream_id = await run_silently(app, client)
    before = (await client.get(f"/api/v1/runs/{run_id}/streams")).json()

    await client.post(f"/api/v1/streams/{stream_id}/heartbeat")

    assert (await client.get(f"/api/v1/runs/{run_id}/streams")).json() == before


@pytest.mark.parametrize("is_deleted", [False, True], ids=["never there", "run deleted"])
async def test_a_stream_that_is_not_there_is_404(app: FastAPI, client: httpx.AsyncClient, is_deleted: bool) -> None:
    run_id, stream_id = await run_silently(app, client)
    if is_deleted:
        await client.delete(f"/api/v1/runs/{run_id}")
    else:
        stream_id = uuid4()

    answer = await client.post(f"/api/v1/streams/{stream_id}/heartbeat")

    assert (answer.status_code, answer.json()["type"]) == (404, "/errors/stream-not-found")
