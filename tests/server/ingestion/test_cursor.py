"""Each record is stored exactly once, however batches come."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from factories import make_batch, make_measurements, make_stream
from problems import assert_problem


async def post(client: httpx.AsyncClient, stream_id: object, body: dict[str, Any]) -> httpx.Response:
    return await client.post(f"/api/v1/streams/{stream_id}/batches", json=body)


async def stored(app: FastAPI, stream_id: object) -> list[tuple[Any, ...]]:
    """Everything that a batch may change, but for times of the server's clock."""
    queries = (
        "SELECT seq, step, sum_trace_cov FROM measurement WHERE stream_id = :id ORDER BY 1",
        "SELECT level, bucket, num_rows, num_updates, sum_trace_cov, lr_last FROM rollup WHERE stream_id = :id"
        " ORDER BY 1, 2",
        "SELECT next_seq, num_stored, num_lost, num_rejected, first_step, last_step FROM stream WHERE id = :id",
        "SELECT from_seq, to_seq, reason FROM stream_loss WHERE stream_id = :id ORDER BY 1",
        "SELECT seq, name, value FROM metric WHERE stream_id = :id ORDER BY 1, 2",
    )
    async with app.state.sessions() as session:
        return [tuple(row) for query in queries for row in await session.execute(text(query), {"id": stream_id})]


@pytest.fixture
def stream_id() -> object:
    return uuid4()


async def test_a_batch_is_acknowledged_up_to_its_last_record(
    shared_client: httpx.AsyncClient, stream_id: object
) -> None:
    answer = await post(shared_client, stream_id, make_batch())

    assert (answer.status_code, answer.json()["acked_seq"]) == (200, 5)


async def test_a_replayed_batch_changes_nothing(
    shared_app: FastAPI, shared_client: httpx.AsyncClient, stream_id: object
) -> None:
    body = make_batch(measurements=make_measurements(steps=range(100)))
    await post(shared_client, stream_id, body)
    before = await stored(shared_app, stream_id)

    answer = await post(shared_client, stream_id, body)

    assert answer.json()["acked_seq"] == 101
    assert await stored(shared_app, stream_id) == before


async def test_an_older_batch_sent_again_changes_nothing(
    shared_app: FastAPI, shared_client: httpx.AsyncClient, stream_id: object
) -> None:
    first = make_batch()
    await post(shared_client, stream_id, first)
    rows = make_measurements(first_seq=6, steps=range(4, 9))
    await post(shared_client, stream_id, make_batch(run_id=first["run_id"], first_seq=6, measurements=rows))
    before = await stored(shared_app, stream_id)

    answer = await post(shared_client, stream_id, first)

    assert answer.json()["acked_seq"] == 10
    assert await stored(shared_app, stream_id) == before


async def test_a_batch_of_which_the_last_record_alone_is_new_stores_it(
    shared_app: FastAPI, shared_client: httpx.AsyncClient, stream_id: object
) -> None:
    first = make_batch()
    await post(shared_client, stream_id, first)
    one_more = make_measurements(first_seq=6, steps=[4])

    answer = await post(
        shared_client, stream_id, make_batch(run_id=first["run_id"], first_seq=6, measurements=one_more)
    )

    assert answer.json()["acked_seq"] == 6
    assert [row[:2] for row in (await stored(shared_app, stream_id)) if row[0] == 6] == [(6, 4)]


async def test_of_a_partly_replayed_batch_only_the_new_end_is_stored_and_folded(
    shared_app: FastAPI, shared_client: httpx.AsyncClient, stream_id: object
) -> None:
    whole = make_batch(measurements=make_measurements(steps=range(100)))
    start = whole | {
        "last_seq": 41,
        "measurements": {name: column[:40] for name, column in whole["measurements"].items()},
    }
    other_stream = uuid4()
    await post(shared_client, other_stream, whole)
    at_once = await stored(shared_app, other_stream)

    await post(shared_client, stream_id, start)
    answer = await post(shared_client, stream_id, whole)

    assert answer.json()["acked_seq"] == 101
    for part, at_once_row in zip(await stored(shared_app, stream_id), at_once, strict=True):
        assert part == pytest.approx(at_once_row)


async def test_a_gap_is_refused_with_the_record_expected(
    shared_app: FastAPI, shared_client: httpx.AsyncClient, stream_id: object
) -> None:
    first = make_batch()
    await post(shared_client, stream_id, first)
    before = await stored(shared_app, stream_id)
    later = make_batch(run_id=first["run_id"], first_seq=9, measurements=make_measurements(first_seq=9))

    answer = await post(shared_client, stream_id, later)

    assert_problem(answer, 409, "stream-gap")
    assert answer.json()["expected_seq"] == 6
    assert await stored(shared_app, stream_id) == before


async def test_the_same_numbers_with_another_checksum_are_a_conflict(
    shared_app: FastAPI, shared_client: httpx.AsyncClient, stream_id: object
) -> None:
    body = make_batch(crc32=1)
    await post(shared_client, stream_id, body)
    before = await stored(shared_app, stream_id)

    answer = await post(shared_client, stream_id, body | {"crc32": 2})

    assert_problem(answer, 409, "stream-conflict")
    assert await stored(shared_app, stream_id) == before


async def test_a_stream_stays_with_its_run(shared_client: httpx.AsyncClient, stream_id: object) -> None:
    await post(shared_client, stream_id, make_batch())

    answer = await post(shared_client, stream_id, make_batch())

    assert_problem(answer, 409, "stream-conflict")


async def test_without_a_run_record_the_run_must_exist(shared_client: httpx.AsyncClient, stream_id: object) -> None:
    answer = await post(shared_client, stream_id, make_batch(with_run=False))

    assert_problem(answer, 404, "run-not-found")


async def test_the_ledger_adds_up_with_lost_and_rejected_records(
    shared_client: httpx.AsyncClient, stream_id: object
) -> None:
    rows = make_measurements(first_seq=2, steps=range(3))
    metrics = {"seq": [9, 9], "step": [3, 3], "wall_time": [1.0, 1.0], "name": ["a", "b"], "value": [0.5, None]}
    lost = [{"from": 5, "to": 7, "reason": "memory_full"}, {"from": 8, "to": 8, "reason": "rejected"}]
    body = make_batch(measurements=rows, metrics=metrics, lost=lost)

    await post(shared_client, stream_id, body)

    answer = (await shared_client.get(f"/api/v1/streams/{stream_id}")).json()
    counts = {name: answer[name] for name in ("acked_seq", "num_stored", "num_lost", "num_rejected")}
    assert counts == {"acked_seq": 9, "num_stored": 5, "num_lost": 3, "num_rejected": 1}
    of_run = (await shared_client.get(f"/api/v1/runs/{body['run_id']}/streams")).json()["streams"]
    assert of_run[0]["lost"] == lost
    assert of_run[0]["live_steps"] == [[0, 2]]


async def test_a_replayed_loss_is_counted_once(shared_client: httpx.AsyncClient, stream_id: object) -> None:
    first = make_batch(lost=[{"from": 2, "to": 6, "reason": "memory_full"}])
    await post(shared_client, stream_id, first)
    longer = first | {"last_seq": 9, "lost": [{"from": 2, "to": 9, "reason": "memory_full"}]}

    await post(shared_client, stream_id, longer)

    answer = (await shared_client.get(f"/api/v1/streams/{stream_id}")).json()
    assert (answer["acked_seq"], answer["num_stored"], answer["num_lost"]) == (9, 1, 8)


async def test_two_senders_of_one_stream_store_each_record_once(
    shared_app: FastAPI, shared_client: httpx.AsyncClient, stream_id: object
) -> None:
    first = make_batch()
    run_id = first["run_id"]
    batches = [first] + [
        make_batch(
            run_id=run_id, first_seq=seq, measurements=make_measurements(first_seq=seq, steps=range(seq - 2, seq + 8))
        )
        for seq in range(6, 106, 10)
    ]

    async def sender() -> None:
        position = 0
        while position < len(batches):
            answer = await post(shared_client, stream_id, batches[position])
            assert answer.status_code in (200, 409), answer.text
            position += answer.status_code == 200

    await asyncio.gather(sender(), sender(), sender())

    ledger = (await shared_client.get(f"/api/v1/streams/{stream_id}")).json()
    assert (ledger["acked_seq"], ledger["num_stored"]) == (105, 105)
    async with shared_app.state.sessions() as session:
        top = await session.execute(
            text("SELECT num_rows, num_updates FROM rollup WHERE level = 5 AND stream_id = :id"), {"id": stream_id}
        )
        assert top.all() == [(104, 104)]


async def test_many_streams_of_one_run_at_once_do_not_disturb_each_other(shared_client: httpx.AsyncClient) -> None:
    run_id = uuid4()
    batches = [make_batch(run_id=run_id, stream=make_stream(started_at=1e9 + number)) for number in range(8)]

    answers = await asyncio.gather(*(post(shared_client, uuid4(), body) for body in batches))

    assert [answer.status_code for answer in answers] == [200] * 8


async def test_finish_is_shown_and_a_resumed_run_is_running_again(shared_client: httpx.AsyncClient) -> None:
    run_id = uuid4()
    finish = {"seq": 6, "status": "finished", "wall_time": 1_790_000_100.0}
    first = make_batch(run_id=run_id, measurements=make_measurements(), finish=finish)

    await post(shared_client, uuid4(), first)
    finished = (await shared_client.get(f"/api/v1/runs/{run_id}")).json()
    await post(shared_client, uuid4(), make_batch(run_id=run_id, stream=make_stream(started_at=1_790_000_200.0)))
    resumed = (await shared_client.get(f"/api/v1/runs/{run_id}")).json()

    assert (finished["status"], finished["finished_at"]) == ("finished", "2026-09-21T14:15:00Z")
    assert (resumed["status"], resumed["finished_at"]) == ("running", None)


async def test_the_run_shows_its_newest_row_and_latest_noise_scale(shared_client: httpx.AsyncClient) -> None:
    rows = make_measurements(steps=range(400), noise_scale=100.0, global_batch=64.0, lr=0.3)
    body = make_batch(measurements=rows, finish={"seq": 402, "status": "finished", "wall_time": 1e9})

    await post(shared_client, uuid4(), body)

    run = (await shared_client.get(f"/api/v1/runs/{body['run_id']}")).json()
    shown = {name: run[name] for name in ("first_step", "last_step", "examples", "global_batch", "lr", "optimizer")}
    assert shown == {
        "first_step": 0,
        "last_step": 399,
        "examples": 25600,
        "global_batch": 64.0,
        "lr": 0.3,
        "optimizer": "SGD",
    }
    # 5 % of 400 steps
    window = sum(rows["sum_trace_cov"][-20:]) / sum(rows["sum_grad_sq_norm"][-20:])
    assert run["noise_scale"]["value"] == pytest.approx(window)
    assert run["noise_scale"]["num_blocks"] == 20
    assert run["noise_scale"]["low"] < window < run["noise_scale"]["high"]
