"""What the page that compares asks of the API is asked of the real one, and its answers can be drawn."""

from uuid import uuid4

import httpx
from fastapi import FastAPI

from app_in_process import ADDRESS, AS_LOCAL_USER, client_of
from compared_tasks import planted_task, stored_run
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.compare import config as compare_config
from noisescale_dashboard.compare import runs as compare_runs
from noisescale_dashboard.compare import tasks as compare_tasks


async def test_the_comparison_of_tasks_and_runs_is_understood_as_the_server_gives_it(app: FastAPI) -> None:
    async with client_of(app) as client:
        await planted_task(client, "digits", project="demo", noise_scale=128.0)
        sizes = ({"num_parameters": 1e6}, {"num_parameters": 1e7})
        ids = [await stored_run(client, project="demo", task="sized", run={"config": config}) for config in sizes]
    api, unknown = ApiClient(base_url=ADDRESS, transport=httpx.ASGITransport(app=app)), str(uuid4())
    view = {"runs": [*ids, unknown], "colors": [0, 1, 2], "x": "units", "y": "efficiency"}

    tasks = await api.comparison(AS_LOCAL_USER)
    sized = await api.sized_tasks(AS_LOCAL_USER, {"size_key": "num_parameters"})
    tested = await api.model_sizes(AS_LOCAL_USER, {"project": "demo", "task": "sized"})
    chosen = await compare_runs.read(api, AS_LOCAL_USER, view)
    aligned = await api.compared_runs(AS_LOCAL_USER, [*ids, unknown], {"x": "units", "points": compare_runs.POINTS})
    page = compare_runs.changes(chosen, aligned, view, narrow=False)
    settings = compare_config.changes(chosen, with_equal=False, narrow=False)

    assert [(task.task, task.has_both) for task in tasks.drawn] == [("digits", True)]
    assert tasks.published_statistics.num_tasks == 8
    assert len(tasks.published) == 10
    assert len(tasks.published_sweeps) >= 10
    assert [order.quantity for order in compare_tasks.shown_orders(tasks)] == ["noise_scale"] * 2
    assert compare_tasks.changes(tasks, narrow=True)["compare-head.children"].endswith("(1 done)")
    assert [(one.task, one.num_sizes) for one in sized] == [("sized", 2)]
    assert tested.reason is not None
    assert {run.size for run in tested.runs} == {1e6, 1e7}
    assert (chosen.unknown, aligned.missing) == ((unknown,), (unknown,))
    assert aligned.ratios[0].mean.low is not None
    assert aligned.ratios[0].mean.low < 1 < (aligned.ratios[0].mean.high or 0)
    assert page["compare-head.children"] == "No difference of noise scale is seen at equal images"
    assert settings["compare-head.children"] == "One of 6 settings differs between 2 runs"
