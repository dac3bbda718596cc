"""The pinned baseline: from a run's page and the list of runs, and what Compare makes of it."""

from typing import Any

import httpx
import pytest

from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.compare import runs as compare_runs
from noisescale_dashboard.run import head
from noisescale_dashboard.runs import table

RUN = "run-pin-done.data"


def view(*ids: str, **more: Any) -> dict[str, Any]:
    return {"runs": list(ids), "colors": list(range(len(ids))), **more}


async def test_a_run_is_pinned_and_unpinned_from_its_page(callbacks: Callbacks, fake_api: FakeApi) -> None:
    run = fake_api.runs[0]
    values = {"run-pin.n_clicks": 1, "run-id.data": run.id}

    said = await callbacks.post(RUN, values | {"run-pinned.data": {"project": run.project, "is_baseline": False}})
    assert fake_api.baseline_id == run.id
    assert said["run-change"]["data"]["words"].startswith("Pinned: Compare sets")
    said = await callbacks.post(RUN, values | {"run-pinned.data": {"project": run.project, "is_baseline": True}})
    assert fake_api.baseline_id is None
    assert said["run-change"]["data"]["words"] == f"{run.project} has no baseline any more."


async def test_one_chosen_run_is_pinned_from_the_list_and_two_are_not(callbacks: Callbacks, fake_api: FakeApi) -> None:
    rows = [{"id": run.id, "project": run.project, "tags": []} for run in fake_api.runs[:2]]

    async def bar(chosen: list[dict[str, Any]]) -> dict[str, Any]:
        return (await callbacks.post("runs-pin.hidden", {"runs-grid.selectedRows": chosen}))["runs-pin"]

    assert (await bar(rows[:1]))["hidden"] is False
    assert (await bar(rows))["hidden"] is True
    assert "Unpin baseline" in str(await bar([{**rows[0], "baseline": True}]))
    output = callbacks.output_called_by("runs-pin")
    await callbacks.post(output, {"runs-pin.n_clicks": 1, "runs-grid.selectedRows": rows[:1]})
    assert fake_api.baseline_id == rows[0]["id"]


async def test_the_list_and_the_run_say_which_is_the_baseline(api: ApiClient, fake_api: FakeApi) -> None:
    fake_api.baseline_id = fake_api.runs[0].id
    runs = (await api.runs({}, {})).runs

    assert [table.row(run)["baseline"] for run in runs] == [run.id == fake_api.baseline_id for run in runs]
    (pinned,) = [run for run in runs if run.is_baseline]
    assert "Baseline" in str(head.head(pinned))
    assert "Baseline" not in str(head.head(next(run for run in runs if not run.is_baseline)))


@pytest.fixture
def api(fake_api: FakeApi) -> ApiClient:
    return ApiClient(base_url="http://api", transport=httpx.ASGITransport(app=fake_api.app))


@pytest.fixture
def clear(fake_api: FakeApi) -> list[str]:
    """Two runs of one project with clear estimates that count in the same."""
    found: dict[tuple[str, str], list[str]] = {}
    for run in fake_api.runs:
        if run.resolved:
            found.setdefault((run.project, run.example), []).append(run.id)
    return next(ids for ids in found.values() if len(ids) > 1)


async def test_compare_sets_the_chosen_runs_against_the_pinned_one(
    api: ApiClient, fake_api: FakeApi, clear: list[str]
) -> None:
    first, second = clear[:2]
    fake_api.baseline_id = second

    among = await compare_runs.read(api, {}, view(first, second))
    beside = await compare_runs.read(api, {}, view(first))

    assert [run.id for run in among.runs] == [second, first] == [run.id for run in beside.runs]
    assert beside.slots == (1, 0)
    assert "Compared to the project's baseline" in compare_runs.lede(beside)


async def test_the_address_names_another_run_to_compare_to(api: ApiClient, fake_api: FakeApi, clear: list[str]) -> None:
    first, second = clear[:2]
    fake_api.baseline_id = second

    named = await compare_runs.read(api, {}, view(first, base=first))
    both = await compare_runs.read(api, {}, view(second, first, base=first))

    assert [run.id for run in named.runs] == [first]
    assert [run.id for run in both.runs] == [first, second]
    assert "baseline" not in compare_runs.lede(both)
