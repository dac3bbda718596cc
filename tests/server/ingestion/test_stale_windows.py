"""What a run shows is of all its rows a moment after they are stored, whoever sent the last of them."""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy.ext.asyncio import AsyncSession

from factories import STARTED_AT, make_batch, make_measurements, make_stream
from noisescale_server.services.ingest import ingestion, stale_windows
from noisescale_server.services.ingest.window_turns import WindowTurns
from noisescale_server.storage.runs import runs

HALF_A_ROUND = 0.5


async def send(client: httpx.AsyncClient, run_id: UUID, stream_id: UUID, **parts: Any) -> None:
    stream = make_stream(started_at=parts.pop("started_at", STARTED_AT))
    body = make_batch(run_id=run_id, stream=stream, with_run=parts.get("first_seq", 1) == 1, **parts)
    answer = await client.post(f"/api/v1/streams/{stream_id}/batches", json=body)
    assert answer.status_code == 200, answer.text


async def send_two_batches(client: httpx.AsyncClient, run_id: UUID) -> None:
    """Within a second, and the second one does not say that the run has ended: as of a job that was killed."""
    stream_id = uuid4()
    await send(client, run_id, stream_id, measurements=make_measurements(steps=range(40)))
    later = make_measurements(first_seq=42, steps=range(40, 80), noise_scale=900.0)
    await send(client, run_id, stream_id, first_seq=42, measurements=later)


async def step_in_the_list(client: httpx.AsyncClient, run_id: UUID) -> int | None:
    listed = (await client.get("/api/v1/runs", params={"sort": "-created_at"})).json()["runs"]
    step: int | None = next(one["noise_scale"]["step"] for one in listed if one["id"] == str(run_id))
    return step


async def test_a_run_that_is_read_at_once_shows_all_its_rows(shared_client: httpx.AsyncClient) -> None:
    run_id = uuid4()

    await send_two_batches(shared_client, run_id)

    run = (await shared_client.get(f"/api/v1/runs/{run_id}")).json()
    measured = (await shared_client.get(f"/api/v1/runs/{run_id}/noise-scale")).json()["latest"]
    assert run["noise_scale"]["step"] == 79
    assert run["noise_scale"]["value"] == pytest.approx(measured["value"])
    advice = (await shared_client.get(f"/api/v1/runs/{run_id}/recommendation")).json()
    assert advice["noise_scale"]["value"] == pytest.approx(measured["value"])


async def test_a_batch_that_finds_no_turn_leaves_its_window_to_readers_and_to_the_end_of_the_job(
    shared_client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WindowTurns, "take", lambda _: False)
    run_id, stream_id = uuid4(), uuid4()

    await send(shared_client, run_id, stream_id, measurements=make_measurements(steps=range(40)))

    assert await step_in_the_list(shared_client, run_id) is None
    assert (await shared_client.get(f"/api/v1/runs/{run_id}")).json()["noise_scale"]["step"] == 39
    end = {"seq": 43, "status": "finished", "wall_time": 3e9}
    more = make_measurements(first_seq=42, steps=range(40, 41))
    await send(shared_client, run_id, stream_id, first_seq=42, measurements=more, finish=end)
    assert await step_in_the_list(shared_client, run_id) == 40


@pytest.mark.thorough
async def test_the_list_shows_all_rows_of_a_killed_job_a_moment_later(shared_client: httpx.AsyncClient) -> None:
    run_id = uuid4()

    await send_two_batches(shared_client, run_id)

    for _ in range(40):
        if await step_in_the_list(shared_client, run_id) == 79:
            break
        await asyncio.sleep(HALF_A_ROUND)
    assert await step_in_the_list(shared_client, run_id) == 79


async def test_rows_that_another_stream_stored_while_the_window_was_read_leave_the_run_stale(
    shared_client: httpx.AsyncClient, shared_app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, old, new = uuid4(), uuid4(), uuid4()
    await send(shared_client, run_id, old, started_at=1e9, measurements=make_measurements(steps=range(40)))
    late = make_measurements(first_seq=42, steps=range(40, 60))
    waiting = [send(shared_client, run_id, old, started_at=1e9, first_seq=42, measurements=late)]
    store = ingestion.progress.store

    async def store_later(*args: Any, **named: Any) -> None:
        if waiting:
            await waiting.pop()
        await store(*args, **named)

    monkeypatch.setattr(ingestion.progress, "store", store_later)
    rows = make_measurements(steps=range(60, 70))
    end = {"seq": 12, "status": "finished", "wall_time": 3e9}

    await send(shared_client, run_id, new, started_at=2e9, measurements=rows, finish=end)

    async with shared_app.state.sessions() as session:
        run = await runs.get(session, run_id)
        assert run is not None
        assert (run.latest_step, run.window_is_stale) == (69, True)


async def test_a_run_that_somebody_writes_to_is_left_for_the_next_round(
    shared_client: httpx.AsyncClient, shared_app: FastAPI
) -> None:
    run_id = uuid4()
    await send_two_batches(shared_client, run_id)
    begin = shared_app.state.sessions.begin
    async with begin() as writer, begin() as refresher:
        run = await runs.get(writer, run_id)
        run.window_is_stale, run.latest_refreshed_at = True, datetime.now(UTC)
        await writer.flush()

        await stale_windows.refresh(refresher, run_id)

    async with shared_app.state.sessions() as session:
        run = await runs.get(session, run_id)
        assert run is not None
        assert run.window_is_stale


@pytest.mark.slow
@pytest.mark.thorough
async def test_a_run_whose_window_cannot_be_computed_leaves_no_other_one_stale(
    shared_client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = uuid4(), uuid4()
    refresh = stale_windows.refresh

    async def refresh_good_ones(session: AsyncSession, run_id: UUID) -> None:
        if run_id == bad:
            raise ZeroDivisionError
        await refresh(session, run_id)

    monkeypatch.setattr(stale_windows, "refresh", refresh_good_ones)
    await send_two_batches(shared_client, bad)
    await send_two_batches(shared_client, good)

    for _ in range(40):
        if await step_in_the_list(shared_client, good) == 79:
            break
        await asyncio.sleep(HALF_A_ROUND)

    assert await step_in_the_list(shared_client, good) == 79
    assert f"what run {bad} shows of its newest records cannot be computed" in caplog.text
