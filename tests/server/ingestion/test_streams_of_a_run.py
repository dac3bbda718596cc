"""A run's streams come by pages, and of what one of them has lost, or shows, the first ranges and the number of all."""

from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from factories import make_batch, make_measurements, make_stream
from noisescale_server.services.ingest import ingestion, streams
from problems import assert_problem


async def streams_of(client: httpx.AsyncClient, run_id: UUID, **query: Any) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(f"/api/v1/runs/{run_id}/streams", params=query)).json()
    return found


async def test_streams_come_by_pages_each_with_the_ledger_of_all(shared_client: httpx.AsyncClient) -> None:
    run_id, ids = uuid4(), [str(uuid4()) for _ in range(5)]
    for place, stream_id in enumerate(ids):
        body = make_batch(run_id=run_id, stream=make_stream(started_at=1e9 + place))
        await shared_client.post(f"/api/v1/streams/{stream_id}/batches", json=body)

    pages = [await streams_of(shared_client, run_id, limit=2)]
    while pages[-1]["next_cursor"] is not None:
        pages.append(await streams_of(shared_client, run_id, limit=2, cursor=pages[-1]["next_cursor"]))
    whole = await streams_of(shared_client, run_id)

    assert [[one["stream_id"] for one in page["streams"]] for page in pages] == [ids[:2], ids[2:4], ids[4:]]
    assert [page["ledger"]["num_streams"] for page in pages] == [5, 5, 5]
    assert whole["streams"] == [one for page in pages for one in page["streams"]]
    assert whole["next_cursor"] is None


async def test_a_cursor_of_another_run_is_a_stream_that_is_not_found(shared_client: httpx.AsyncClient) -> None:
    run_id = uuid4()
    await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=make_batch(run_id=run_id))

    answer = await shared_client.get(f"/api/v1/runs/{run_id}/streams", params={"cursor": str(uuid4())})

    assert_problem(answer, 404, "stream-not-found")


async def test_of_lost_records_the_first_ranges_are_shown_and_all_are_counted(
    shared_client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_RANGES", 3)
    run_id = uuid4()
    lost = [{"from": seq, "to": seq, "reason": "trimmed" if seq % 2 else "memory_full"} for seq in range(2, 9)]
    body = make_batch(run_id=run_id, last_seq=8, lost=lost)
    await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=body)

    [stream] = (await streams_of(shared_client, run_id))["streams"]

    assert (stream["num_lost"], stream["num_lost_ranges"]) == (7, 7)
    assert stream["lost"] == lost[:3]


async def test_of_the_steps_that_views_take_the_first_ranges_are_shown_and_all_are_counted(
    shared_client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_RANGES", 2)
    run_id, whole = uuid4(), uuid4()
    newer = [[2], [5], [8]]
    for stream_id, steps in [(whole, range(10)), *((uuid4(), steps) for steps in newer)]:
        started_at = 1e9 if stream_id == whole else 2e9 + steps[0]
        rows = make_measurements(first_seq=2, steps=list(steps))
        body = make_batch(
            run_id=run_id, last_seq=1 + len(steps), measurements=rows, stream=make_stream(started_at=started_at)
        )
        answer = await shared_client.post(f"/api/v1/streams/{stream_id}/batches", json=body)
        assert answer.status_code == 200, answer.text

    first = (await streams_of(shared_client, run_id))["streams"][0]

    assert (first["num_live_ranges"], first["live_steps"]) == (4, [[0, 1], [3, 4]])


async def losses_of(client: httpx.AsyncClient, run_id: UUID, stream_id: UUID, **query: int) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(f"/api/v1/runs/{run_id}/streams/{stream_id}/lost", params=query)).json()
    return found


async def test_all_that_a_stream_lost_is_read_page_by_page(shared_client: httpx.AsyncClient) -> None:
    run_id, stream_id = uuid4(), uuid4()
    lost = [{"from": seq, "to": seq + 1, "reason": "trimmed" if seq % 4 else "memory_full"} for seq in range(2, 12, 2)]
    body = make_batch(run_id=run_id, last_seq=11, lost=lost)
    await shared_client.post(f"/api/v1/streams/{stream_id}/batches", json=body)

    pages = [await losses_of(shared_client, run_id, stream_id, limit=2)]
    while (cursor := pages[-1]["next_cursor"]) is not None:
        pages.append(await losses_of(shared_client, run_id, stream_id, limit=2, cursor=cursor))
    whole = await losses_of(shared_client, run_id, stream_id)

    assert [page["lost"] for page in pages] == [lost[:2], lost[2:4], lost[4:]]
    assert whole == {"lost": lost, "next_cursor": None}


async def test_what_a_stream_of_another_run_lost_is_not_found(shared_client: httpx.AsyncClient) -> None:
    runs, stream_ids = [uuid4(), uuid4()], [uuid4(), uuid4()]
    for run_id, stream_id in zip(runs, stream_ids, strict=True):
        await shared_client.post(f"/api/v1/streams/{stream_id}/batches", json=make_batch(run_id=run_id))

    answers = [
        await shared_client.get(f"/api/v1/runs/{run_id}/streams/{stream_id}/lost")
        for run_id, stream_id in [(runs[0], stream_ids[1]), (runs[0], uuid4()), (uuid4(), stream_ids[0])]
    ]

    assert_problem(answers[0], 404, "stream-not-found")
    assert_problem(answers[1], 404, "stream-not-found")
    assert_problem(answers[2], 404, "run-not-found")


async def test_a_run_with_as_many_streams_as_it_may_have_takes_no_new_one_and_goes_on_with_the_others(
    shared_client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingestion, "MAX_STREAMS", 2)
    run_id, ids = uuid4(), [uuid4() for _ in range(3)]

    answers = [
        await shared_client.post(f"/api/v1/streams/{stream_id}/batches", json=make_batch(run_id=run_id))
        for stream_id in ids
    ]
    more = make_batch(run_id=run_id, first_seq=2, measurements=make_measurements(first_seq=2, steps=[0]))
    goes_on = await shared_client.post(f"/api/v1/streams/{ids[0]}/batches", json=more)

    assert [answer.status_code for answer in answers] == [200, 200, 409]
    assert_problem(answers[2], 409, "too-many-streams")
    assert "log to a new run" in answers[2].json()["detail"]
    assert goes_on.status_code == 200, goes_on.text
    assert (await streams_of(shared_client, run_id))["ledger"]["num_streams"] == 2
