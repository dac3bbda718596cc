"""A stream that a newer one overtakes while its batch is being stored does not overwrite what the newer one said."""

from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from factories import STARTED_AT, make_batch, make_measurements, make_stream
from noisescale_server.services.ingest import ingestion


async def post(client: httpx.AsyncClient, run_id: UUID, *, started_at: float, stream_id: UUID, **parts: Any) -> None:
    body = make_batch(run_id=run_id, stream=make_stream(started_at=started_at), **parts)
    answer = await client.post(f"/api/v1/streams/{stream_id}/batches", json=body)
    assert answer.status_code == 200, answer.text


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is awaited once, after a batch looked at its run and before it writes to it."""
    waiting: list[Any] = []
    store = ingestion.progress.store

    async def store_later(*args: Any, **named: Any) -> None:
        if waiting:
            await waiting.pop()
        await store(*args, **named)

    monkeypatch.setattr(ingestion.progress, "store", store_later)
    return waiting


@pytest.mark.parametrize("newer_by", [1.0, 0.0])
async def test_the_newer_stream_stays_shown(
    shared_client: httpx.AsyncClient, meanwhile: list[Any], newer_by: float
) -> None:
    """Also of two that started at one moment: then the greater id counts."""
    run_id = uuid4()
    old, new = sorted([uuid4(), uuid4()])
    rows = make_measurements(steps=range(100, 140), global_batch=64.0)
    await post(shared_client, run_id, started_at=STARTED_AT, stream_id=old, measurements=rows)
    newer = make_measurements(steps=range(120, 130), global_batch=512.0, lr=0.3)
    started_at = STARTED_AT + newer_by
    meanwhile.append(post(shared_client, run_id, started_at=started_at, stream_id=new, measurements=newer))
    late = make_measurements(first_seq=42, steps=range(50, 160), global_batch=64.0)
    end = {"seq": 152, "status": "failed", "wall_time": STARTED_AT + 10}

    await post(shared_client, run_id, started_at=STARTED_AT, stream_id=old, first_seq=42, measurements=late, finish=end)

    assert meanwhile == []
    run = (await shared_client.get(f"/api/v1/runs/{run_id}")).json()
    shown = {name: run[name] for name in ("status", "finished_at", "last_step", "global_batch", "lr", "first_step")}
    assert shown == {
        "status": "running",
        "finished_at": None,
        "last_step": 129,
        "global_batch": 512.0,
        "lr": 0.3,
        "first_step": 50,
    }
    # of steps 114 to 129: ten of the newer stream, and six that the older one has logged twice
    assert (run["noise_scale"]["num_updates"], run["noise_scale"]["step"]) == (22, 129)


async def test_a_stream_that_is_told_to_have_started_earlier_is_still_the_newest(
    shared_client: httpx.AsyncClient,
) -> None:
    """A stream may come before its `run` record; then the server's own clock says when it started."""
    run_id, stream_id = uuid4(), uuid4()
    await shared_client.post("/api/v1/runs", json={"id": str(run_id), "project": "demo"})
    await post(shared_client, run_id, started_at=0.0, stream_id=stream_id, with_run=False)
    await post(
        shared_client, run_id, started_at=1e9, stream_id=stream_id, first_seq=5, with_run=True, last_seq=5, lost=[]
    )
    rows = make_measurements(first_seq=6, steps=range(4, 9))

    await post(shared_client, run_id, started_at=1e9, stream_id=stream_id, first_seq=6, measurements=rows)

    run = (await shared_client.get(f"/api/v1/runs/{run_id}")).json()
    assert run["last_step"] == 8
