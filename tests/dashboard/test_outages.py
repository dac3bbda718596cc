"""The header that tells the browser whether the API answered while a callback ran."""

from typing import Any

import httpx

from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from fakes_runs import RUNS
from noisescale_dashboard.api.outages import CALLBACKS, HEADER

OF_TASKS = {"runs-task.id": "runs-task"}
OF_RUN = {"run-slow-pulse.data": 1.0, "run-id.data": RUNS[0].id, "narrow.data": False}


async def said(client: httpx.AsyncClient, output: str, values: dict[str, Any]) -> str | None:
    payload = (await Callbacks.of(client)).payload(output, values)
    answer = await client.post(CALLBACKS, json=payload)
    return answer.headers.get(HEADER)


async def test_a_callback_that_the_api_answered_says_up(client: httpx.AsyncClient) -> None:
    assert await said(client, "runs-task.data", OF_TASKS) == "up"


async def test_a_callback_that_changes_nothing_since_the_api_failed_still_says_down(
    client: httpx.AsyncClient, fake_api: FakeApi
) -> None:
    fake_api.failing = True

    assert await said(client, "runs-task.data", OF_TASKS) == "down"


async def test_one_of_several_questions_without_an_answer_is_an_outage(
    client: httpx.AsyncClient, fake_api: FakeApi
) -> None:
    fake_api.failing = True

    assert await said(client, "run-law-figures.data", OF_RUN) == "down"


async def test_an_unexpected_error_of_one_answer_is_no_outage(client: httpx.AsyncClient, fake_api: FakeApi) -> None:
    """Asking again gives the same: a page that took it for an outage loaded itself again without end."""
    fake_api.failing_ends, fake_api.failing_status = ("/forecast",), 500

    assert await said(client, "run-law-figures.data", OF_RUN) == "up"


async def test_what_does_not_exist_is_no_outage(client: httpx.AsyncClient) -> None:
    values = {**OF_RUN, "run-id.data": "00000000-0000-4000-8000-000000009999"}

    assert await said(client, "run-law-figures.data", values) == "up"


async def test_a_callback_that_asks_nothing_says_nothing(client: httpx.AsyncClient) -> None:
    values = {"address.pathname": "/runs", "narrow.data": False}

    assert await said(client, "page.children", values) is None


async def test_the_beat_says_whether_the_api_is_there(client: httpx.AsyncClient, fake_api: FakeApi) -> None:
    assert await said(client, "beat-answer.data", {"beat.data": 1.0}) == "up"

    fake_api.failing = True

    assert await said(client, "beat-answer.data", {"beat.data": 2.0}) == "down"
