"""The banner of a server that does not answer: what stands on the page stays, and the page goes on by itself."""

import re

import pytest
from playwright.async_api import Page, expect

from dashboard_visit import RUN, Visit
from fakes_api import FakeApi

pytestmark = pytest.mark.browser


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
