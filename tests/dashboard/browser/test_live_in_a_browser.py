"""When a page of a run under way asks for news, and what comes with the last of them."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.async_api import Page, expect

from dashboard_visit import RUN, Visit
from fakes_api import FakeApi

pytestmark = pytest.mark.browser


@pytest.fixture
def changing_runs(served_api: FakeApi) -> Iterator[FakeApi]:
    before = served_api.runs
    yield served_api
    served_api.runs = before


@pytest.mark.slow
async def test_what_stands_beside_and_the_records_come_with_the_last_news_of_a_run_that_ends(
    page: Page, address: str, changing_runs: FakeApi
) -> None:
    await Visit(page, address).open(RUN)
    await expect(page.locator("#run-ledger-card-title")).to_be_visible()
    await page.wait_for_load_state("networkidle")
    changing_runs.requests.clear()

    changing_runs.runs = (replace(changing_runs.runs[0], status="finished"), *changing_runs.runs[1:])
    await page.evaluate("window.dash_clientside.set_props('run-pulse', {data: 1})")

    await expect(page.locator("#run-live-words")).to_have_text("finished")
    for _ in range(100):
        asked = {path.rsplit("/", 1)[-1] for path in changing_runs.paths()}
        if asked >= {"metrics", "streams"}:
            break
        await page.wait_for_timeout(50)
    assert asked >= {"metrics", "streams"}
