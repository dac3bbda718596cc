"""When a page of a run under way asks for news, and what comes with the last of them."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.async_api import Page, expect

from dashboard_visit import RUN, Visit
from fakes_api import FakeApi

pytestmark = pytest.mark.browser

TICKS = """() => {
  const { pulse, received } = window.dash_clientside.noisescale;
  const live = { running: true, every: 0 };
  const first = received({ ...live, stamp: "a" }, 1, undefined);
  const news = received({ ...live, stamp: "b" }, 2, first), nothing = received({ ...live, stamp: "b" }, 4, news);
  return [[2, first], [3, news], [4, news], [5, nothing]].map((given) => typeof pulse(...given) === "number");
}"""


@pytest.fixture
def changing_runs(served_api: FakeApi) -> Iterator[FakeApi]:
    before = served_api.runs
    yield served_api
    served_api.runs = before


async def test_of_two_ticks_after_news_one_asks_and_each_after_an_answer_without(page: Page, address: str) -> None:
    await Visit(page, address).open(RUN)

    asks = await page.wait_for_function(f"() => !window.noisescaleCallbacks.pending && ({TICKS})()")

    assert await asks.json_value() == [True, False, True, True]


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
