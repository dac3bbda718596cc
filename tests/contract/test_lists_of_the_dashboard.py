"""What Overview and Runs ask of the API is asked of the real one."""

from datetime import UTC, datetime
from uuid import uuid4

import httpx
from fastapi import FastAPI

from app_in_process import ADDRESS, AS_LOCAL_USER
from factories import make_batch, make_measurements
from noisescale_dashboard.api_client import ApiClient
from noisescale_dashboard.pages import overview, runs_view
from stored_runs import resolved, store_run

VIEW = {**runs_view.NO_VIEW, "group": "task", "page": 0}


async def test_overview_and_runs_understand_the_real_answers(app: FastAPI, client: httpx.AsyncClient) -> None:
    first = str(await store_run(app, name="off", task="a", config={"width": 64}, **resolved(batch=10.0)))
    second = str(await store_run(app, name="fits", task="b", **resolved(batch=500.0)))
    api = ApiClient(base_url=ADDRESS, transport=httpx.ASGITransport(app=app))

    page = await api.runs(AS_LOCAL_USER, overview.query({"scope": "7d", "project": "demo"}, datetime.now(UTC)))
    found = await overview.find(api, AS_LOCAL_USER, page.runs, page.total, preference=0.2)
    body = make_batch(run_id=second, measurements=make_measurements(steps=range(40)))
    assert (await client.post(f"/api/v1/streams/{uuid4()}/batches", json=body)).status_code == 200
    with_series, series = await overview.find_series(api, AS_LOCAL_USER, [second, first])
    listed = await api.runs(AS_LOCAL_USER, runs_view.query(VIEW, None))
    narrowed = {**VIEW, "decision": "increase", "batch_min": 5.0, "batch_max": 20.0, "noise_min": 1.0, "noise_max": 1e6}
    raised = await api.runs(AS_LOCAL_USER, runs_view.query(narrowed, None))
    groups = await api.run_groups(AS_LOCAL_USER, {"by": "config.width", "archived": False})
    changed = await api.change_runs(AS_LOCAL_USER, [first], archived=True, add_tags=["old"])
    archived = await api.runs(AS_LOCAL_USER, runs_view.query({**VIEW, "shelf": "archived", "tag": "old"}, None))
    await api.delete_run(AS_LOCAL_USER, first)
    left = await api.runs(AS_LOCAL_USER, runs_view.query({**VIEW, "shelf": "archived"}, None))

    assert [run.name for run in page.runs] == [run.name for run in listed.runs] == ["off", "fits"]
    assert {run.decision.decision for run in raised.runs} <= {"increase"}
    assert all(one.advice is not None for one in found.judged)
    assert [run.id for run in with_series] == [second, first]
    assert set(series) == {second}, "a run without steps has none"
    assert len(series[second].points.state) == len(series[second].points.wall_time) > 20
    assert [(group.value, group.num_runs) for group in groups] == [("64", 1), (None, 1)]
    assert changed.changed == (first,)
    assert [run.name for run in archived.runs] == ["off"]
    assert left.total == 0
    assert second == listed.runs[1].id
