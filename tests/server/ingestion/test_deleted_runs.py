"""A deleted run stays deleted: what jobs still send of it is refused for good."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
from fastapi import FastAPI
from sqlalchemy import text

from factories import make_batch, make_measurements, make_run
from problems import assert_problem


async def post(client: httpx.AsyncClient, stream_id: object, body: dict[str, Any]) -> httpx.Response:
    return await client.post(f"/api/v1/streams/{stream_id}/batches", json=body)


async def test_every_batch_of_a_deleted_run_is_410_and_stores_nothing(shared_client: httpx.AsyncClient) -> None:
    stream_id, body = uuid4(), make_batch()
    run_id = body["run_id"]
    await post(shared_client, stream_id, body)
    await shared_client.delete(f"/api/v1/runs/{run_id}")
    later = make_batch(run_id=run_id, first_seq=6, measurements=make_measurements(first_seq=6))

    answers = [
        await post(shared_client, stream_id, later),
        await post(shared_client, stream_id, body),
        await post(shared_client, uuid4(), body),
        await shared_client.post("/api/v1/runs", json=make_run(id=run_id)),
    ]

    for answer in answers:
        assert_problem(answer, 410, "run-deleted")
    assert_problem(await shared_client.get(f"/api/v1/runs/{run_id}"), 404, "run-not-found")
    assert_problem(await shared_client.get(f"/api/v1/streams/{stream_id}"), 404, "stream-not-found")


async def test_a_run_that_never_was_is_404_and_not_410(shared_client: httpx.AsyncClient) -> None:
    answer = await post(shared_client, uuid4(), make_batch(with_run=False))

    assert_problem(answer, 404, "run-not-found")


async def test_a_batch_that_waits_for_a_deletion_does_not_bring_the_run_back(
    shared_app: FastAPI, shared_client: httpx.AsyncClient
) -> None:
    """The batch finds the run's row, whose deletion commits while the batch waits for it."""
    body = make_batch()
    run_id = body["run_id"]
    await post(shared_client, uuid4(), body)

    async with shared_app.state.sessions() as session:
        await session.execute(text("DELETE FROM stream WHERE run_id = :id"), {"id": run_id})
        await session.execute(text("DELETE FROM run WHERE id = :id"), {"id": run_id})
        await session.execute(text("INSERT INTO deleted_run (id) VALUES (:id)"), {"id": run_id})
        waiting = asyncio.create_task(post(shared_client, uuid4(), body))
        await until_somebody_waits(shared_app)
        await session.commit()

    assert_problem(await waiting, 410, "run-deleted")


async def until_somebody_waits(app: FastAPI) -> None:
    """Returns when a transaction waits for another one's lock."""
    async with asyncio.timeout(30), app.state.sessions() as session:
        # of several nodes none says who waits on another one: what waits for a socket while it inserts waits for a lock
        waiting = (
            "SELECT (SELECT count(*) FROM pg_locks WHERE NOT granted) + (SELECT count(*) FROM pg_stat_activity"
            " WHERE wait_event_type IN ('Extension', 'Client') AND state = 'active' AND query LIKE '%FOR KEY SHARE%'"
            " AND query_start < clock_timestamp() - interval '0.5 s')"
        )
        while not await session.scalar(text(waiting)):
            await session.rollback()
