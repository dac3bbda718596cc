"""Planning with limits in Chromium: from the fields into the address, and from the address into the fields."""

import re

import pytest
from playwright.async_api import Page, expect

from dashboard_visit import RUN, Visit

pytestmark = pytest.mark.browser


async def test_limits_stand_in_the_address_fill_their_fields_and_go_back(page: Page, address: str) -> None:
    visit = Visit(page, address)
    await visit.open(f"{RUN}?examples_per_step=500")
    field = page.get_by_label("Devices: that stay")
    await expect(page.get_by_label("Examples for a step")).to_have_value("500")
    await expect(page.locator("#run-advice-top")).to_contain_text("You would spend 500 examples")

    await field.fill("8")
    await page.locator("#run-limits-apply").click()

    await expect(page.locator("#run-advice-top .big")).to_contain_text(", your memory limit")
    assert page.url.endswith("?examples_per_step=500&num_devices=8")
    await page.go_back()
    await expect(field).to_have_value("")
    await page.locator("#run-limits-clear").click()
    await expect(page.locator("#run-pref-word")).to_have_text("balanced")
    assert page.url.endswith(RUN)
    await page.locator("#run-copy-nanogpt").click()
    await expect(page.locator("#run-flags-text")).to_contain_text("--step-batch-size-schedule")
    assert (visit.complaints, visit.strangers()) == ([], set())


@pytest.mark.slow
async def test_what_was_redundant_stays_when_the_key_figures_are_drawn_anew(page: Page, address: str) -> None:
    await page.goto(f"{address}{RUN}")
    line = page.locator("#run-waste-words")
    await expect(line).to_have_text("$182 – 274 redundant so far")
    await line.evaluate("(line) => { line.dataset.drawn = 'before'; }")

    await page.evaluate("window.dash_clientside.set_props('run-pulse', { data: Date.now() })")

    await expect(page.locator("#run-waste-words:not([data-drawn])")).to_have_text("$182 – 274 redundant so far")
    await expect(line).to_have_attribute("title", re.compile("^Predicted: "))
