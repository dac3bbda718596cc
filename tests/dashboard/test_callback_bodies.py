"""Bodies that no page sends to a callback: of another shape, or with values of another type."""

import copy
import json
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import httpx
import pytest

from callback_values import VALUES
from dashboard_callbacks import Callbacks
from shared_dashboard import SharedDashboard

HUGE = 10**400
ODD: tuple[Any, ...] = ([], {"a": 1}, "x", HUGE, True, None)


@pytest.fixture(scope="session")
def shared_dashboard() -> SharedDashboard:
    """One whose API answers what it cannot read with an error, as the server does."""
    return SharedDashboard(raises=False)


async def answer_to(client: httpx.AsyncClient, body: Any) -> httpx.Response:
    content = json.dumps(body)
    return await client.post("/_dash-update-component", content=content, headers={"Content-Type": "application/json"})


def with_another(value: Any) -> Iterator[Any]:
    """Odd values in place of this one, and of each of its fields."""
    yield from ODD
    if isinstance(value, dict):
        for name, field in value.items():
            yield {other: kept for other, kept in value.items() if other != name}
            yield from ({**value, name: odd} for odd in with_another(field))
    if isinstance(value, list) and value:
        yield from ([odd, *value[1:]] for odd in with_another(value[0]))


@pytest.mark.thorough
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
async def test_whatever_a_value_is_no_callback_breaks_over_it(
    callbacks: Callbacks, caplog: pytest.LogCaptureFixture, every: int
) -> None:
    """Quickly: each callback and each of its parts with some of the odd values, each value in some part."""
    refused = 0
    place_of_first = count()
    for dependency in callbacks.server_side():
        usual = callbacks.payload(dependency["output"].strip(".").split("...")[0], VALUES)
        assert (await answer_to(callbacks.client, usual)).status_code in (200, 204)
        for name in ("inputs", "state"):
            for place, part in enumerate(usual[name]):
                for odd in islice(with_another(part["value"]), next(place_of_first) % every, None, every):
                    body = copy.deepcopy(usual)
                    body[name][place]["value"] = odd
                    answer = await answer_to(callbacks.client, body)
                    assert answer.status_code in (200, 204, 400), (part, str(odd)[:80], caplog.text[-400:])
                    if answer.status_code == 400:
                        refused += 1
                        assert f"{part['id']}.{part['property']} has a value that no page sends" in answer.text

    assert refused > 1000 / every
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("part", "given", "said"),
    [
        ("outputs", [], "outputs are not those of the callback of runs-rows.data"),
        ("outputs", {"id": "page", "property": "children"}, "outputs are not those"),
        ("outputs", [1], "outputs are not those"),
        ("outputs", None, "outputs are not those"),
        ("inputs", [], "inputs are not those of the callback of runs-rows.data"),
        ("inputs", {"id": "runs-view"}, "inputs are not those"),
        ("inputs", [[[]]], "inputs are not those"),
        ("inputs", [{"id": {"type": "x"}, "property": "data"}], "inputs are not those"),
        ("state", {}, "state are not those of the callback of runs-rows.data"),
        ("state", [None], "state are not those"),
        ("changedPropIds", "runs-view.data", "changedPropIds are not inputs of the callback of runs-rows.data"),
        ("changedPropIds", [[]], "changedPropIds are not inputs"),
        ("changedPropIds", ["page.children"], "changedPropIds are not inputs"),
        ("output", ["page.children"], "output is missing, or of another type"),
        ("output", "narrow.data", "no callback has this output"),
    ],
)
async def test_a_body_of_another_shape_is_400_and_says_which_part(
    callbacks: Callbacks, part: str, given: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    usual = callbacks.payload("runs-rows.data", VALUES)

    answer = await answer_to(callbacks.client, {**usual, part: given})
    missing = await answer_to(callbacks.client, {name: kept for name, kept in usual.items() if name != part})

    assert (answer.status_code, missing.status_code) == (400, 400)
    assert said in answer.json()["message"]
    assert "load the page again" in answer.json()["message"]
    assert "load the page again" in missing.json()["message"]
    assert caplog.text == ""


async def test_a_callback_of_the_browser_alone_is_no_callback_here(callbacks: Callbacks) -> None:
    [output] = [d["output"] for d in callbacks.dependencies if d["output"] == "narrow.data"]

    answer = await answer_to(callbacks.client, {"output": output, "outputs": {}, "inputs": [], "changedPropIds": []})

    assert answer.status_code == 400


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), "\ud800", {"\udc00": 1}, [float("nan")]], ids=repr)
async def test_what_no_browser_writes_is_no_value(
    callbacks: Callbacks, odd: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for triggered in ("settings-key-make.n_clicks", "run-series-view.data", "beat.data"):
        output = callbacks.output_called_by(triggered.split(".")[0])
        body = callbacks.payload(output, VALUES)
        body["inputs"][-1]["value"] = odd

        answer = await answer_to(callbacks.client, body)

        assert answer.status_code == 400
        assert "has a value that no page sends" in answer.json()["message"]
    assert caplog.text == ""


async def test_a_text_that_is_too_long_for_an_address_is_a_problem_of_the_api(callbacks: Callbacks) -> None:
    view = VALUES["runs-view.data"] | {"q": "x" * 100_000}
    values = VALUES | {"runs-view.data": view, "runs-rows.data": None}

    answer = await callbacks.post("runs-rows.data", values)

    assert "What is asked for is too long" in json.dumps(answer)


async def test_how_a_change_is_undone_can_name_nothing_else(callbacks: Callbacks) -> None:
    values = VALUES | {"runs-undo.n_clicks": 1, "runs-done.data": {"words": "", "undo": [{"ids": [], "project": "x"}]}}

    answer = await answer_to(
        callbacks.client, callbacks.payload("runs-done.data", values, triggered="runs-undo.n_clicks")
    )

    assert answer.status_code == 400
    assert "project" in answer.json()["message"]
