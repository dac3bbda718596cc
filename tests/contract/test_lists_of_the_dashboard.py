"""What Overview and Runs ask of the API is asked of the real one."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx
from fastapi import FastAPI

from app_in_process import ADDRESS, AS_LOCAL_USER
from factories import make_batch, make_measurements
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.overview import page as overview
from noisescale_dashboard.runs import listing, to_change
from noisescale_dashboard.runs import view as runs_view
from noisescale_dashboard.shell import team_views
from stored_runs import resolved, store_run

VIEW = {**runs_view.NO_VIEW, "group": "task", "page": 0}


async def test_overview_and_runs_understand_the_real_answers(app: FastAPI, client: httpx.AsyncClient) -> None:
    first = str(await store_run(app, name="off", task="a", config={"width": 64}, **resolved(batch=10.0)))
    second = str(await store_run(app, name="fits", task="b", **resolved(batch=500.0)))
    api = ApiClient(base_url=ADDRESS, transport=httpx.ASGITransport(app=app))

    asked = overview.query({"scope": "7d", "project": "demo"}, datetime.now(UTC))
    page = await api.runs(AS_LOCAL_USER, asked)
    found = await overview.find(api, AS_LOCAL_USER, page.runs, asked, total=page.total, preference=0.5)
    body = make_batch(run_id=second, measurements=make_measurements(steps=range(40)))
    assert (await client.post(f"/api/v1/streams/{uuid4()}/batches", json=body)).status_code == 200
    with_series, series = await overview.find_series(api, AS_LOCAL_USER, [second, first])
    listed = await api.runs(AS_LOCAL_USER, runs_view.query(VIEW, None))
    narrowed = {**VIEW, "decision": "increase", "batch_min": 5.0, "batch_max": 20.0, "noise_min": 1.0, "noise_max": 1e6}
    raised = await api.runs(AS_LOCAL_USER, runs_view.query(narrowed, None))
    groups = (await api.run_groups(AS_LOCAL_USER, {"by": "config.width", "archived": False})).groups
    changed = await api.change_runs(AS_LOCAL_USER, [first], archived=True, add_tags=["old"])
    archived = await api.runs(AS_LOCAL_USER, runs_view.query({**VIEW, "shelf": "archived", "tag": "old"}, None))
    await api.delete_run(AS_LOCAL_USER, first)
    left = await api.runs(AS_LOCAL_USER, runs_view.query({**VIEW, "shelf": "archived"}, None))

    assert [run.name for run in page.runs] == [run.name for run in listed.runs] == ["off", "fits"]
    assert {run.decision.decision for run in raised.runs} <= {"increase"}
    assert all(one.advice is not None for one in found.judged)
    assert found.totals is not None
    assert (found.totals.runs, found.totals.unsure + found.totals.off + found.totals.likely + found.totals.kept) == (
        2,
        2,
    )
    assert [run.id for run in with_series] == [second, first]
    assert set(series) == {second}, "a run without steps has none"
    assert len(series[second].points.state) == len(series[second].points.wall_time) > 20
    assert [(group.value, group.num_runs) for group in groups] == [("64", 1), (None, 1)]
    assert changed.changed == (first,)
    assert [run.name for run in archived.runs] == ["off"]
    assert left.total == 0
    assert second == listed.runs[1].id


async def test_folds_groups_and_conditions_are_asked_of_the_real_list(app: FastAPI, client: httpx.AsyncClient) -> None:
    api = ApiClient(base_url=ADDRESS, transport=httpx.ASGITransport(app=app))
    trials = [
        str(await store_run(app, name=f"b{batch:g}", task="a", config={"lr": lr}, **resolved(batch=batch)))
        for batch, lr in ((16.0, 0.1), (64.0, "0.2"))
    ]
    await store_run(app, name="alone", task='b "quoted"', config={"lr": 0.1}, **resolved(batch=100.0))
    await store_run(app, name="watched", task="c", tags=["reproduce"])
    sweep = str(uuid4())
    await client.post("/api/v1/sweeps", json={"id": sweep, "project": "demo", "task": "a", "name": "batches"})
    runs = [{"run_id": run_id, "batch_size": 16, "lr": 0.1, "seed": seed} for seed, run_id in enumerate(trials)]
    assert (await client.post(f"/api/v1/sweeps/{sweep}/runs", json={"runs": runs})).status_code == 200

    async def rows(**changes: Any) -> list[tuple[str, str | None]]:
        view = {**runs_view.NO_VIEW, "sort": "name", "page": 0, **changes}
        found = await listing.find(api, AS_LOCAL_USER, view, None, narrow=False)
        return [(row["name"], row.get("count") or ("child" if row.get("child") else None)) for row in found.rows]

    folded = [("alone", None), ("batches", "2 trials"), ("c", "1 trial")]
    assert await rows() == folded
    assert await rows(open=f"s:{sweep}") == [*folded[:2], ("b16", "child"), ("b64", "child"), folded[2]]
    assert await rows(open="r:demo/c") == [*folded, ("watched", "child")]
    assert await rows(trials="hide") == folded[:1]
    assert await rows(where="config.lr > 0.1", trials="show") == [("b64", None)]
    assert await rows(q="b -64", trials="show") == [("b16", None)]
    grouped = await rows(group="task", open='g:b "quoted"', where="config.lr != null")
    assert grouped == [("a", "2 runs"), ('b "quoted"', "1 run"), ("alone", "child")]
    unsaid = await rows(group="config.lr", open="n:")
    assert unsaid[-2:] == [("not said", "1 run"), ("watched", "child")]
    changes = await api.runs(AS_LOCAL_USER, to_change.query({**runs_view.NO_VIEW, "page": 0}))
    assert {run.name for run in changes.runs} <= {"alone"}


async def test_views_are_shared_through_the_real_api(app: FastAPI) -> None:
    await store_run(app, project="team/a")
    api = ApiClient(base_url=ADDRESS, transport=httpx.ASGITransport(app=app))

    await team_views.changed(api, AS_LOCAL_USER, "team/a", {"do": "add", "name": "n", "page": "runs", "query": "q=a"})
    (view,) = await api.shared_views(AS_LOCAL_USER, "team/a")
    await team_views.changed(api, AS_LOCAL_USER, "team/a", {"do": "rename", "id": view.id, "name": "other"})
    gone = await team_views.changed(api, AS_LOCAL_USER, "team/a", {"do": "delete", "id": view.id})

    assert (view.name, view.page, view.query) == ("n", "runs", "q=a")
    assert gone["undo"] == {"do": "add", "name": "other", "page": "runs", "query": "q=a"}
    assert await api.shared_views(AS_LOCAL_USER, "team/a") == ()
