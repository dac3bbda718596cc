"""A run of a list is the run itself: read past the mapper, and written anew only where something of it has changed."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import update

from calibrating_sweeps import NOISE_SCALE, planted_sweep
from compared_tasks import stored_run
from noisescale_server.api.runs import runs as runs_api
from noisescale_server.api.runs.schemas import RunPage
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs import listed
from stored_runs import judge_all, resolved, store_run

Change = Callable[[httpx.AsyncClient, FastAPI, str], Awaitable[object]]


async def listed_run(client: httpx.AsyncClient, run_id: str) -> dict[str, Any]:
    answer = await client.get("/api/v1/runs", params={"ids": run_id})
    assert answer.status_code == 200, answer.text
    (found,) = answer.json()["runs"]
    return found


async def the_run(client: httpx.AsyncClient, run_id: str) -> dict[str, Any]:
    return (await client.get(f"/api/v1/runs/{run_id}")).json()


@pytest.mark.parametrize(
    "columns", [{}, resolved(), resolved() | {"loss_broken_since": 700, "finish_status": "failed"}]
)
async def test_a_run_is_the_same_in_a_list(client: httpx.AsyncClient, app: FastAPI, columns: dict[str, Any]) -> None:
    config = {"lr": 1e-7, "seed": 2**70, "one": 1.0, "name": "é", "nested": {"layers": [1, None, True]}}
    run_id = str(await store_run(app, config=config, tags=["a"], **columns))
    await judge_all(app)

    assert await listed_run(client, run_id) == await the_run(client, run_id)
    assert (await listed_run(client, run_id))["config"] == config


async def test_a_page_has_the_form_that_the_openapi_says(client: httpx.AsyncClient, app: FastAPI) -> None:
    for _ in range(3):
        await store_run(app, tags=["reproduce"], **resolved())
    await store_run(app)

    answer = await client.get("/api/v1/runs", params={"fold": True})

    page = RunPage.model_validate_json(answer.content, strict=True)
    assert (len(page.runs), len(page.folds), page.total, page.num_runs) == (2, 1, 2, 4)
    assert answer.headers["content-type"] == "application/json"


async def test_every_column_is_read_as_the_mapper_reads_it(client: httpx.AsyncClient, app: FastAPI) -> None:
    ids = [
        await store_run(app, config={"a": {"b": 1}}, tags=["x"], kinds=["simple"], **resolved()),
        await store_run(app),
    ]
    async with app.state.sessions() as session:
        found = await listed.named(session, [*ids, uuid4()])
        mapped = [await session.get(Run, run_id) for run_id in ids]

    names = Run.__table__.columns.keys()
    assert [(project, task) for _, project, task in found] == [("demo", "digits")] * 2
    for one, (run, _, _) in zip(mapped, found, strict=True):
        assert {name: getattr(run, name) for name in names} == {name: getattr(one, name) for name in names}


async def renamed(client: httpx.AsyncClient, _app: FastAPI, run_id: str) -> None:
    await client.patch(f"/api/v1/runs/{run_id}", json={"name": "another", "remarks": "once more"})


async def filed_elsewhere(client: httpx.AsyncClient, _app: FastAPI, run_id: str) -> None:
    await client.patch(f"/api/v1/runs/{run_id}", json={"task": "another task"})


async def pinned(client: httpx.AsyncClient, _app: FastAPI, run_id: str) -> None:
    project = (await the_run(client, run_id))["project"]
    await client.put(f"/api/v1/projects/{project}/baseline", json={"run_id": run_id})


async def configured(_client: httpx.AsyncClient, app: FastAPI, _run_id: str) -> None:
    async with app.state.sessions.begin() as session:
        await session.execute(update(Run).values(config={"a": 2}))


async def calibrated(client: httpx.AsyncClient, app: FastAPI, run_id: str) -> None:
    await planted_sweep(client, project=(await the_run(client, run_id))["project"], task="one")
    await judge_all(app)


async def silent(_client: httpx.AsyncClient, app: FastAPI, _run_id: str) -> None:
    app.state.settings = app.state.settings.model_copy(update={"silent_after_seconds": 0.001})


@pytest.mark.parametrize("change", [renamed, filed_elsewhere, pinned, configured, calibrated, silent])
async def test_what_has_changed_of_a_run_is_in_the_next_list(
    client: httpx.AsyncClient, app: FastAPI, change: Change
) -> None:
    run_id = await stored_run(client, project="demo", task="one", noise_scale=NOISE_SCALE)
    async with app.state.sessions.begin() as session:
        await session.execute(update(Run).values(finish_status=None, finished_at=None))
    await judge_all(app)
    before = await listed_run(client, run_id)
    assert before == await the_run(client, run_id)

    await change(client, app, run_id)

    after = await listed_run(client, run_id)
    assert after == await the_run(client, run_id)
    assert after != before


async def test_a_run_is_written_anew_where_it_has_changed_alone(
    client: httpx.AsyncClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [str(await store_run(app, **resolved())) for _ in range(3)]
    await client.get("/api/v1/runs")
    written: list[str] = []
    of_run = runs_api.run_answer
    monkeypatch.setattr(runs_api, "run_answer", lambda view: (written.append(str(view.row.run.id)), of_run(view))[1])

    await client.get("/api/v1/runs")
    assert written == []
    async with app.state.sessions.begin() as session:
        await session.execute(update(Run).where(Run.id == ids[1]).values(latest_loss=0.5))
    await client.get("/api/v1/runs")

    assert written == [ids[1]]


async def test_a_run_larger_than_all_that_is_kept_is_listed_too(
    client: httpx.AsyncClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_api, "MOST_KEPT_BYTES", 10)
    run_id = str(await store_run(app))

    assert [await listed_run(client, run_id) for _ in range(2)] == [await the_run(client, run_id)] * 2
