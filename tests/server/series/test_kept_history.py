"""What a run has spent is read once for a recommendation, and again only when data come; so is it made."""

from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import update

from factories import STARTED_AT, make_batch, make_measurements, make_stream
from noisescale_server.services.ingest import stale_windows
from noisescale_server.services.recommendation import decisions, run_advice
from noisescale_server.services.series import evidence, whole_run
from noisescale_server.services.series import history as run_history
from noisescale_server.storage.platform.tables import Run


async def send(client: httpx.AsyncClient, run_id: UUID, stream_id: UUID, steps: range, **parts: object) -> None:
    first_seq = parts.get("first_seq", 1)
    measurements = make_measurements(steps=steps, first_seq=first_seq + (first_seq == 1))
    body = make_batch(run_id=run_id, measurements=measurements, **parts)
    answer = await client.post(f"/api/v1/streams/{stream_id}/batches", json=body)
    assert answer.status_code == 200, answer.text


async def advice(client: httpx.AsyncClient, run_id: UUID, **query: object) -> dict:
    return (await client.get(f"/api/v1/runs/{run_id}/recommendation", params=query)).raise_for_status().json()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[UUID, int]]:
    """Run and last step of each history that was read from the database."""
    ends: list[tuple[UUID, int]] = []
    original = run_history.read

    async def count(session, live, wanted, *, has_signal):
        ends.append((live.run_id, wanted.high))
        return await original(session, live, wanted, has_signal=has_signal)

    async def none(session):
        return []

    monkeypatch.setattr(whole_run.run_history, "read", count)
    # a server that judges the run for its row reads it, too; one that is at it already has runs of other tests
    monkeypatch.setattr(decisions, "of_a_round", none)
    monkeypatch.setattr(stale_windows, "of_a_round", none)
    return ends


def ends_of(run_id: UUID, read: list[tuple[UUID, int]]) -> list[int]:
    return [end for one, end in read if one == run_id]


async def test_another_question_about_the_same_data_reads_nothing_again(
    shared_client: httpx.AsyncClient, read: list[tuple[UUID, int]]
) -> None:
    run_id, stream_id = uuid4(), uuid4()
    await send(shared_client, run_id, stream_id, range(60))
    first = await advice(shared_client, run_id)

    again = await advice(shared_client, run_id)
    with_limits = await advice(shared_client, run_id, max_hours=1.0, preference=0.7)

    assert again == first
    assert with_limits["waste"] == first["waste"]
    assert ends_of(run_id, read) == [59]


async def test_new_data_and_an_earlier_step_are_read(
    shared_client: httpx.AsyncClient, read: list[tuple[UUID, int]]
) -> None:
    run_id, stream_id = uuid4(), uuid4()
    await send(shared_client, run_id, stream_id, range(60))
    before = await advice(shared_client, run_id)

    earlier = await advice(shared_client, run_id, to_step=39)
    await send(shared_client, run_id, stream_id, range(60, 120), first_seq=62, run=None)
    after = await advice(shared_client, run_id)

    assert ends_of(run_id, read) == [59, 39, 119]
    assert [one["step"] for one in (before, earlier, after)] == [59, 39, 119]
    assert before["waste"]["examples"]["value"] < after["waste"]["examples"]["value"]


async def test_whether_a_run_with_new_rows_has_a_gradient_is_asked_once(
    shared_client: httpx.AsyncClient, shared_app: FastAPI, read: list[tuple[UUID, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, stream_id = uuid4(), uuid4()
    await send(shared_client, run_id, stream_id, range(60))
    async with shared_app.state.sessions.begin() as session:
        await session.execute(update(Run).where(Run.id == run_id).values(window_is_stale=True))
    asked: list[UUID] = []
    original = evidence.has_signal

    async def has_signal(session, live, high):
        asked.append(live.run_id)
        return await original(session, live, high)

    monkeypatch.setattr(evidence, "has_signal", has_signal)

    now = await advice(shared_client, run_id)
    assert (now["step"], asked) == (59, [run_id])
    # of an earlier step it is another question, besides that of the newest window
    earlier = await advice(shared_client, run_id, to_step=39)
    assert (earlier["step"], asked) == (39, [run_id] * 3)
    assert ends_of(run_id, read) == [59, 39]


async def test_a_recommendation_is_made_anew_only_where_it_would_be_another(
    shared_client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, read: list[tuple[UUID, int]]
) -> None:
    run_id, stream_id = uuid4(), uuid4()
    made: list[object] = []
    original = run_advice.recommend

    def count(*premises, **how):
        made.append(premises)
        return original(*premises, **how)

    monkeypatch.setattr(run_advice, "recommend", count)
    await send(shared_client, run_id, stream_id, range(60))
    first = await advice(shared_client, run_id)

    assert await advice(shared_client, run_id) == first
    assert len(made) == 1
    sooner = await advice(shared_client, run_id, preference=0.8)
    assert sooner["preference"] == 0.8
    assert await advice(shared_client, run_id) == first
    await shared_client.patch(f"/api/v1/runs/{run_id}", json={"task": "another one"})
    await send(shared_client, run_id, stream_id, range(60, 120), first_seq=62, run=None)
    assert (await advice(shared_client, run_id))["step"] == 119
    assert len(made) == 4


async def test_advice_computes_no_average_that_it_does_not_say(
    shared_client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The average of 40 windows costs as much as all the rest."""
    computed: list[object] = []
    monkeypatch.setattr(whole_run, "_compute", lambda *parts: computed.append(parts))
    run_id = uuid4()
    await send(shared_client, run_id, uuid4(), range(60))

    await advice(shared_client, run_id)

    assert computed == []


async def test_a_job_that_fell_back_to_a_checkpoint_stands_where_it_is(shared_client: httpx.AsyncClient) -> None:
    run_id = uuid4()
    await send(shared_client, run_id, uuid4(), range(300))
    resumed = make_stream(started_at=STARTED_AT + 3_600)
    await send(shared_client, run_id, uuid4(), range(200, 240), stream=resumed)

    found = await advice(shared_client, run_id)

    assert found["step"] == 239
    assert found["predictions"]["steps_left"] == 1200 - 240
