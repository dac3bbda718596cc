"""A run's metrics have a bounded number of names: what is beyond is rejected by name, counted, and told again."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from as_owner import execute
from factories import make_batch
from noisescale_server.services.ingest import metric_names


@pytest.fixture
def four_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs may have four."""
    monkeypatch.setattr(metric_names, "MAX_NAMES", 4)


def batch_of(records: Sequence[Sequence[str]], *, first_seq: int = 1, **others: Any) -> dict[str, Any]:
    """A batch with a record of metrics for each list of names, behind the run's own record where it is the first."""
    first = first_seq + (first_seq == 1)
    rows = [(first + number, name) for number, names in enumerate(records) for name in names]
    metrics = {
        "seq": [seq for seq, _ in rows],
        "step": [seq for seq, _ in rows],
        "wall_time": [1.0] * len(rows),
        "name": [name for _, name in rows],
        "value": [1.0] * len(rows),
    }
    return make_batch(first_seq=first_seq, crc32=first_seq, metrics=metrics, **others)


async def send(client: httpx.AsyncClient, stream_id: UUID, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post(f"/api/v1/streams/{stream_id}/batches", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def names_of(client: httpx.AsyncClient, run_id: UUID | str) -> list[str]:
    return list((await client.get(f"/api/v1/runs/{run_id}/metrics")).json()["names"])


@pytest.mark.usefixtures("four_names")
async def test_the_record_that_brings_one_too_many_is_rejected_by_name_and_the_others_are_stored(
    shared_client: httpx.AsyncClient,
) -> None:
    stream_id, body = uuid4(), batch_of([["a", "b"], ["c", "d"], ["a", "e"], ["b"]])

    answer = await send(shared_client, stream_id, body)

    assert answer["acked_seq"] == body["last_seq"]
    [rejected] = answer["rejected"]
    assert (rejected["seq"], rejected["code"], rejected["field"]) == (4, "too_many_names", "metrics.name")
    assert "'e' is one name too many" in rejected["message"]
    assert await names_of(shared_client, body["run_id"]) == ["a", "b", "c", "d"]
    ledger = (await shared_client.get(f"/api/v1/runs/{body['run_id']}/streams")).json()["ledger"]
    assert ledger == {
        "num_streams": 1, "num_open": 1, "num_acked": 5, "num_stored": 4, "num_lost": 0, "num_rejected": 1,
        "is_true": True,
    }  # fmt: skip


@pytest.mark.usefixtures("four_names")
async def test_a_record_that_finds_no_room_takes_none_away(shared_client: httpx.AsyncClient) -> None:
    stream_id, body = uuid4(), batch_of([["a", "b", "c"], ["d", "e"], ["f"]])

    answer = await send(shared_client, stream_id, body)

    assert [one["seq"] for one in answer["rejected"]] == [3]
    assert await names_of(shared_client, body["run_id"]) == ["a", "b", "c", "f"]


@pytest.mark.usefixtures("four_names")
async def test_names_that_are_there_are_always_stored(shared_client: httpx.AsyncClient) -> None:
    stream_id, body = uuid4(), batch_of([["a", "b", "c", "d"]])
    await send(shared_client, stream_id, body)

    answer = await send(shared_client, stream_id, batch_of([["a", "d"], ["e"]], run_id=body["run_id"], first_seq=3))

    assert [one["seq"] for one in answer["rejected"]] == [4]


@pytest.mark.usefixtures("four_names")
async def test_a_batch_that_comes_again_is_told_the_same(shared_client: httpx.AsyncClient) -> None:
    """The first answer may not have arrived, and the job puts aside what it is told."""
    stream_id, body = uuid4(), batch_of([["a", "b", "c", "d"], ["e"], ["a"]])

    first, again = [await send(shared_client, stream_id, body) for _ in range(2)]
    # and one that overlaps it, as after a split
    longer = batch_of([["a", "b", "c", "d"], ["e"], ["a"], ["f"], ["b"]], run_id=body["run_id"])
    overlapping = await send(shared_client, stream_id, longer)

    assert [one["seq"] for one in first["rejected"]] == [3]
    assert again == first
    assert [one["seq"] for one in overlapping["rejected"]] == [3, 5]


@pytest.mark.usefixtures("four_names")
async def test_a_batch_whose_every_record_is_beyond_still_moves_the_cursor(
    shared_client: httpx.AsyncClient,
) -> None:
    stream_id, body = uuid4(), batch_of([["a", "b", "c", "d"]])
    await send(shared_client, stream_id, body)

    answer = await send(shared_client, stream_id, batch_of([["e"], ["f"]], run_id=body["run_id"], first_seq=3))

    assert (answer["acked_seq"], [one["seq"] for one in answer["rejected"]]) == (4, [3, 4])


@pytest.mark.usefixtures("four_names")
async def test_a_batch_that_comes_again_is_told_of_its_first_and_its_last_record_and_of_no_neighbour(
    shared_client: httpx.AsyncClient,
) -> None:
    stream_id, body = uuid4(), batch_of([["a", "b", "c", "d"], ["e"]])
    await send(shared_client, stream_id, body)
    batches = [batch_of([["f"], ["g"]], run_id=body["run_id"], first_seq=first_seq) for first_seq in (4, 6)]

    for batch in batches:
        await send(shared_client, stream_id, batch)
    answer = await send(shared_client, stream_id, batches[0])

    assert [one["seq"] for one in answer["rejected"]] == [4, 5]


@pytest.mark.usefixtures("four_names")
async def test_streams_that_write_at_once_do_not_pass_the_limit_together(
    shared_client: httpx.AsyncClient,
) -> None:
    run_id = uuid4()
    await send(shared_client, uuid4(), batch_of([["a"]], run_id=run_id))

    bodies = [batch_of([[f"{number}"]], run_id=run_id) for number in range(8)]
    answers = await asyncio.gather(*(send(shared_client, uuid4(), body) for body in bodies))

    assert sum(len(answer["rejected"]) for answer in answers) == 5
    assert len(await names_of(shared_client, run_id)) == 4


@pytest.mark.usefixtures("four_names")
async def test_another_run_has_room_of_its_own(shared_client: httpx.AsyncClient) -> None:
    await send(shared_client, uuid4(), batch_of([["a", "b", "c", "d"]]))

    answer = await send(shared_client, uuid4(), batch_of([["e"]]))

    assert answer["rejected"] == []


@pytest.mark.slow
async def test_a_plan_from_the_time_when_there_were_no_values_does_not_count_ten_thousand_names_for_seconds(
    client: httpx.AsyncClient, owner_url: str
) -> None:
    await execute(owner_url, "ANALYZE metric")
    # the sixth use of a prepared statement is planned for all that come
    for _ in range(8):
        await send(client, uuid4(), batch_of([["a"]]))
    run_id, stream_id, first = uuid4(), uuid4(), 1
    started = time.monotonic()

    for number in range(11):
        body = batch_of([[f"{number:02} {one:05} {'x' * 80}"] for one in range(1_000)], run_id=run_id, first_seq=first)
        await send(client, stream_id, body)
        first = body["last_seq"] + 1

    # 1 s; with plans that are kept 30, if Postgres' time limit does not end it before
    assert time.monotonic() - started < 10


class TestPages:
    async def test_a_page_holds_so_many_names_and_says_where_the_next_begins(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        body = batch_of([[f"m{number:02}" for number in range(7)]])
        await send(shared_client, uuid4(), body)
        path = f"/api/v1/runs/{body['run_id']}/metrics"

        pages = []
        cursor = None
        while not pages or cursor is not None:
            asked = {"limit": 3} | ({} if cursor is None else {"cursor": cursor})
            pages.append((await shared_client.get(path, params=asked)).json())
            cursor = pages[-1]["next_cursor"]

        assert [page["names"] for page in pages] == [["m00", "m01", "m02"], ["m03", "m04", "m05"], ["m06"]]
        assert [[one["name"] for one in page["metrics"]] for page in pages] == [page["names"] for page in pages]

    async def test_more_points_make_fewer_names(self, shared_client: httpx.AsyncClient) -> None:
        body = batch_of([[f"m{number:03}" for number in range(120)]])
        await send(shared_client, uuid4(), body)
        path = f"/api/v1/runs/{body['run_id']}/metrics"

        sizes = {
            points: len((await shared_client.get(path, params={"points": points})).json()["names"])
            for points in (100, 500, 1_000)
        }

        assert sizes == {100: 120, 500: 100, 1_000: 50}

    async def test_one_name_is_found_wherever_it_stands(self, shared_client: httpx.AsyncClient) -> None:
        body = batch_of([[f"m{number:02}" for number in range(9)]])
        await send(shared_client, uuid4(), body)
        path = f"/api/v1/runs/{body['run_id']}/metrics"

        found = (await shared_client.get(path, params={"name": "m07", "limit": 1})).json()
        missing = (await shared_client.get(path, params={"name": "m99"})).json()

        assert (found["names"], found["next_cursor"], found["metrics"][0]["value"]) == (["m07"], None, [1.0])
        assert missing == {"names": [], "metrics": [], "next_cursor": None}


@pytest.mark.slow
async def test_a_hundred_and_ninety_thousand_names_are_an_answer_of_a_page(shared_client: httpx.AsyncClient) -> None:
    run_id, stream_id, first = uuid4(), uuid4(), 1
    num_rejected = 0
    for number in range(19):
        records = [[f"{number:02} {one:05} {'x' * 80}"] for one in range(1_000)]
        body = batch_of(records, run_id=run_id, first_seq=first)
        num_rejected += len((await send(shared_client, stream_id, body))["rejected"])
        first = body["last_seq"] + 1

    answer = await shared_client.get(f"/api/v1/runs/{run_id}/metrics")

    assert num_rejected == 19_000 - metric_names.MAX_NAMES
    assert len(answer.json()["names"]) == 100
    assert len(answer.content) < 100_000
