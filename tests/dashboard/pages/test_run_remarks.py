"""What people say of a run, and that each change can be undone."""

from typing import Any

import pytest

from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from fakes_runs import HOSTILE, RUNS

RUN = RUNS[0]
SAID = {"name": RUN.name, "tags": list(RUN.tags), "remarks": ""}


async def press(callbacks: Callbacks, button: str, *, last: Any = None, headers: Any = None, **fields: Any) -> Any:
    """What became of it; None where the callback changes nothing."""
    shown = {**SAID, **fields}
    values = {
        f"{button}.n_clicks": 1, "run-said.data": SAID, "run-change.data": last, "run-id.data": RUN.id,
        **{f"run-{name}.value": value for name, value in shown.items()},
    }  # fmt: skip
    body = {**callbacks.payload("run-change.data", values), "changedPropIds": [f"{button}.n_clicks"]}
    answer = await callbacks.client.post("/_dash-update-component", json=body, headers=headers)
    return answer.json()["response"]["run-change"]["data"] if answer.status_code == 200 else None


async def test_what_was_changed_is_saved_and_can_be_taken_back(callbacks: Callbacks, fake_api: FakeApi) -> None:
    done = await press(callbacks, "run-save", remarks=" too short a warm-up\nsee 7 ", tags=["bf16", "keep"])

    assert done["words"] == "Saved: tags, remarks."
    assert fake_api.said[RUN.id] == {"tags": ["bf16", "keep"], "remarks": "too short a warm-up\nsee 7"}
    assert (await press(callbacks, "run-unsay", last=done))["words"] == "Undone."
    assert fake_api.said[RUN.id] == {"tags": list(RUN.tags), "remarks": ""}


async def test_nothing_is_asked_of_the_api_where_nothing_was_changed(callbacks: Callbacks, fake_api: FakeApi) -> None:
    done = await press(callbacks, "run-save")

    assert done == {"words": "Nothing was changed."}
    assert fake_api.requests == []


async def test_what_the_api_refuses_is_said_with_its_way_out(callbacks: Callbacks) -> None:
    done = await press(callbacks, "run-save", name="  ")

    assert done == {"words": "Nothing was changed. name: must not be blank"}


async def test_a_page_of_another_site_changes_nothing(callbacks: Callbacks, fake_api: FakeApi) -> None:
    assert await press(callbacks, "run-save", name="x", headers={"Sec-Fetch-Site": "cross-site"}) is None
    assert fake_api.said == {}


@pytest.mark.parametrize("remarks", ["plain", HOSTILE])
async def test_remarks_stand_below_the_name_as_they_were_written(
    callbacks: Callbacks, fake_api: FakeApi, remarks: str
) -> None:
    fake_api.said[RUN.id] = {"remarks": remarks}
    view = {
        "x": "step", "w": "auto", "from": None, "to": None, "layer": None, "kind": "simple", "show": "terms",
        "linked": True, "envelope": True, "outside": False,
    }  # fmt: skip

    changed = await callbacks.post("run-figures.data", {"run-series-view.data": view, "run-id.data": RUN.id})

    (written,) = [part["props"] for part in changed["run-head"]["children"] if part["type"] == "P"]
    assert written == {"children": remarks, "className": "remarks"}
    assert changed["run-said"]["data"] == {**SAID, "remarks": remarks}
