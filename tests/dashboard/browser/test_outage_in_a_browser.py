"""The banner of a server that does not answer: what stands on the page stays, and the page goes on by itself."""

import re

import pytest
from playwright.async_api import Page, expect

from dashboard_visit import RUN, Visit
from fakes_api import FakeApi

pytestmark = pytest.mark.browser


@pytest.mark.slow
async def test_what_did_not_come_beside_the_main_figure_is_asked_for_again(
    page: Page, address: str, served_api: FakeApi
) -> None:
    served_api.failing_ends = ("/metrics", "/streams")
    await Visit(page, address).open(RUN)
    subtitle, records = page.locator("#run-terms-card-subtitle"), page.locator("#run-ledger-card-title")
    await expect(page.locator("#run-noise .scatterlayer .trace").first).to_be_visible()
    await expect(subtitle).to_have_text("not loaded: Service unavailable")
    await expect(records).to_have_count(0)
    served_api.requests.clear()
    await page.wait_for_timeout(4000)
    # it used to take each answer that came for a recovery, and asked for everything again
    assert sum(path.endswith("/noise-scale") for path in served_api.paths()) <= 6

    served_api.failing_ends = ()
    await page.evaluate("window.dash_clientside.set_props('run-pulse', {data: 1})")

    await expect(subtitle).to_contain_text("band: 95 %")
    await expect(records).to_be_visible()


@pytest.mark.slow
async def test_a_page_says_until_when_it_is_true_and_goes_on(page: Page, address: str, served_api: FakeApi) -> None:
    await Visit(page, address).open(RUN)
    banner, chart = page.locator("#outage"), page.locator("#run-noise .scatterlayer .trace").first
    await expect(banner).to_be_hidden()

    served_api.failing = True
    await page.evaluate("window.dash_clientside.set_props('run-pulse', {data: 1})")

    await expect(banner).to_have_text(re.compile(r"Live updates paused\. Shown: data until \d\d:\d\d:\d\d\."))
    await expect(page.locator("#run-live-words")).to_have_text("live updates paused")
    await expect(chart).to_be_visible()
    served_api.failing = False
    await expect(banner).to_be_hidden()
    await expect(page.locator("#run-live-words")).to_contain_text("live,")
