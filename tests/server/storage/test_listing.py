"""What lists of runs go along: columns that follow the others by a minute or by two parts in a hundred."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select, update

from factories import make_batch, make_measurements
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs import listing, trials
from noisescale_server.storage.runs.filters import parts_of
from noisescale_server.storage.runs.listing import MOST_COUNTED
from stored_runs import names, names_of_all_pages, resolved, store_run
from stored_sweeps import store_sweep


async def columns(app: FastAPI, run_id: UUID, *wanted: str) -> tuple[Any, ...]:
    async with app.state.sessions() as session:
        return tuple(
            (await session.execute(select(*(getattr(Run, name) for name in wanted)).where(Run.id == run_id))).one()
        )


async def send(client: httpx.AsyncClient, run_id: UUID, stream_id: UUID, first_seq: int) -> None:
    rows = make_measurements(first_seq=max(first_seq, 2), steps=range(first_seq, first_seq + 5))
    body = make_batch(run_id=run_id, first_seq=first_seq, crc32=first_seq, with_run=first_seq == 1, measurements=rows)
    answer = await client.post(f"/api/v1/streams/{stream_id}/batches", json=body)
    assert answer.status_code == 200, answer.text


async def test_a_batch_moves_what_is_indexed_on_once_a_minute(client: httpx.AsyncClient, app: FastAPI) -> None:
    run_id, stream_id = uuid4(), uuid4()
    await send(client, run_id, stream_id, 1)
    first, _ = await columns(app, run_id, "heard_at", "updated_at")
    await send(client, run_id, stream_id, 7)
    second, updated_at = await columns(app, run_id, "heard_at", "updated_at")
    async with app.state.sessions.begin() as session:
        await session.execute(update(Run).values(heard_at=datetime.now(UTC) - timedelta(minutes=2)))
    await send(client, run_id, stream_id, 12)

    third, now = await columns(app, run_id, "heard_at", "updated_at")

    # a minute may begin between the two
    assert first <= second <= updated_at
    assert second in (first, updated_at.replace(second=0, microsecond=0))
    assert third == now.replace(second=0, microsecond=0)


@pytest.mark.parametrize("sort", ["updated_at", "-updated_at"])
async def test_the_list_by_the_last_data_is_in_order_however_far_the_index_is_behind(
    client: httpx.AsyncClient, app: FastAPI, sort: str
) -> None:
    now = datetime.now(UTC)
    for number in range(12):
        updated = now - timedelta(seconds=40 * number)
        behind = timedelta(seconds=(37 * number) % 60)
        await store_run(app, name=f"{number:02}", updated_at=updated, heard_at=updated - behind)

    found = await names_of_all_pages(client, limit=2, sort=sort)

    assert found == sorted(found, reverse=sort == "updated_at")
    assert len(found) == 12


async def test_the_misfit_of_a_run_is_that_of_its_latest_window(client: httpx.AsyncClient, app: FastAPI) -> None:
    run_id, stream_id = uuid4(), uuid4()
    await send(client, run_id, stream_id, 1)
    rows = make_measurements(first_seq=7, steps=range(7, 2_007))
    body = make_batch(run_id=run_id, first_seq=7, crc32=7, with_run=False, measurements=rows)
    assert (await client.post(f"/api/v1/streams/{stream_id}/batches", json=body)).status_code == 200
    async with app.state.sessions.begin() as session:
        await session.execute(update(Run).values(latest_refreshed_at=None))
    await send(client, run_id, stream_id, 2_007)
    state, value, batch, misfit = await columns(
        app, run_id, "noise_scale_state", "noise_scale_value", "latest_global_batch", "misfit"
    )

    assert state == "resolved"
    assert misfit == pytest.approx(abs(math.log(batch / value)), abs=0.02)


async def test_more_runs_than_are_counted_are_said_to_be_more(
    client: httpx.AsyncClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        await store_run(app, name=f"run {number}")
    whole = (await client.get("/api/v1/runs", params={"limit": 2})).json()
    monkeypatch.setattr(listing, "MOST_COUNTED", 3)

    page = (await client.get("/api/v1/runs", params={"limit": 2})).json()
    few = (await client.get("/api/v1/runs", params={"q": "run 2"})).json()

    assert (whole["total"], whole["num_runs"], whole["is_total_exact"]) == (4, 4, True)
    assert (page["total"], page["num_runs"], page["is_total_exact"]) == (3, 3, False)
    assert (few["total"], few["is_total_exact"]) == (1, True)
    assert MOST_COUNTED == 10_000


async def test_folded_rows_are_counted_up_to_the_same_number(
    client: httpx.AsyncClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await store_run(app, name=f"alone {number}")
        await store_run(app, name=f"trial {number}", tags=[trials.REPRODUCE])
    whole = (await client.get("/api/v1/runs", params={"limit": 2, "fold": True})).json()
    monkeypatch.setattr(listing, "MOST_COUNTED", 5)

    page = (await client.get("/api/v1/runs", params={"limit": 2, "fold": True})).json()

    assert (whole["total"], whole["num_runs"], whole["is_total_exact"]) == (4, 6, True)
    assert (page["total"], page["num_runs"], page["is_total_exact"]) == (4, 5, False)


async def test_a_run_is_no_trial_any_more_once_its_sweep_or_its_tag_is_gone(
    client: httpx.AsyncClient, app: FastAPI
) -> None:
    swept, reproduced = await store_run(app, name="swept", **resolved()), await store_run(app, name="reproduced")
    first = await store_sweep(client, "first", {swept: 250})
    second = await store_sweep(client, "second", {swept: 250})
    await client.patch(f"/api/v1/runs/{reproduced}", json={"tags": [trials.REPRODUCE]})
    assert names(await client.get("/api/v1/runs", params={"trials": "hide"})) == []

    await client.delete(f"/api/v1/sweeps/{first}")
    assert await columns(app, swept, "trial_of") == (second,)
    await client.delete(f"/api/v1/sweeps/{second}")
    changes = {"ids": [str(reproduced)], "remove_tags": [trials.REPRODUCE]}
    await client.post("/api/v1/runs/changes", json=changes)

    assert set(names(await client.get("/api/v1/runs", params={"trials": "hide"}))) == {"swept", "reproduced"}


def test_a_text_is_looked_for_by_the_letters_that_every_database_makes_small_alike() -> None:
    assert parts_of("ResNet-5") == ["net", "res", "t-5"]
    assert parts_of("né|on-1a") == ["-1a", "on-"]
    assert parts_of("abc") == ["abc"]
    assert parts_of("ab") == parts_of("") == []


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("ÄRGER", {"Ärgerlich ärger"}),
        ("r|x", {"bar|x"}),
        ("|x", {"bar|x"}),
        ("50%_a", {"50%_a done"}),
        ("ESNET-5", {"ResNet-50"}),
        ("et", {"ResNet-50"}),
        ("resnet-51", set()),
    ],
)
async def test_a_search_finds_what_it_found_without_an_index(
    client: httpx.AsyncClient, app: FastAPI, asked: str, found: set[str]
) -> None:
    for name in ("Ärgerlich ärger", "bar|x", "50%_a done", "ResNet-50", "508 a"):
        await store_run(app, name=name)

    assert set(names(await client.get("/api/v1/runs", params={"q": asked}))) == found


async def test_a_search_finds_a_run_by_the_beginning_of_its_id(client: httpx.AsyncClient, app: FastAPI) -> None:
    run_id = await store_run(app, name="mine", id=UUID("0f3a5b7c-9d1e-4f20-8a6b-1c2d3e4f5a6b"))
    await store_run(app, name="other", id=UUID("0f3a5b8c-9d1e-4f20-8a6b-1c2d3e4f5a6b"))

    for asked in ("0f3a5b7c", "0F3A5B7C-9d", str(run_id)):
        assert names(await client.get("/api/v1/runs", params={"q": asked})) == ["mine"]
    for asked in ("0f3a5b-7", "0f3a5b7c9d1e", "0f3a5b7c-9d1e-4f20-8a6b-1c2d3e4f5a6c"):
        assert names(await client.get("/api/v1/runs", params={"q": asked})) == []
