"""The recommendation in Chromium: its limits in the address, how high it is, how much it says."""

import asyncio
import re

import pytest
from playwright.async_api import Page, Route, expect

from card_numbers import MOST_NUMBERS, MOST_PIXELS, height_of, shown_card
from dashboard_visit import RUN, Visit
from fakes_runs import RUNS, FakeRun

pytestmark = pytest.mark.browser


@pytest.mark.slow
async def test_limits_stand_in_the_address_fill_their_fields_and_go_back(page: Page, address: str) -> None:
    visit = Visit(page, address)
    await visit.open(f"{RUN}?examples_per_step=500")
    field = page.get_by_label("Devices: a fixed number")
    await expect(page.get_by_label("Examples for a step")).to_have_value("500")
    await expect(page.locator("#run-advice-why")).to_contain_text("You would spend 500 examples")

    await field.fill("8")
    await page.locator("#run-limits-apply").click()

    await expect(page.locator("#run-advice-top .big")).to_contain_text(", your memory limit")
    assert page.url.endswith("?examples_per_step=500&num_devices=8")
    await page.go_back()
    await expect(field).to_have_value("")
    await page.locator("#run-limits-clear").click()
    await expect(page.locator("#run-pref-word")).to_have_text("balanced")
    assert page.url.endswith(RUN)
    await page.locator(".copy-menu summary").click()
    await page.locator("#run-copy-nanogpt").click()
    await expect(page.locator("#run-flags-text")).to_contain_text("--step-batch-size-schedule")
    assert (visit.complaints, visit.strangers()) == ([], set())


@pytest.mark.slow
async def test_what_was_redundant_stays_when_the_key_figures_are_drawn_anew(page: Page, address: str) -> None:
    await page.goto(f"{address}{RUN}")
    line = page.locator("#run-waste-words")
    await expect(line).to_have_text(re.compile("of the data so far was redundant \\(≈ \\$228\\)"))
    await line.evaluate("(line) => { line.dataset.drawn = 'before'; }")

    await page.evaluate("window.dash_clientside.set_props('run-pulse', { data: Date.now() })")

    await expect(page.locator("#run-waste-words:not([data-drawn])")).to_have_text(
        re.compile("of the data so far was redundant \\(≈ \\$228\\)")
    )
    await expect(line).to_have_attribute("title", re.compile("^Predicted: "))


async def cards_that_say_too_much(page: Page, address: str, runs: tuple[FakeRun, ...]) -> dict[str, tuple[int, int]]:
    """Height and numbers of each card above 420 pixels or 14 numbers."""
    await page.set_viewport_size({"width": 1440, "height": 1000})
    found = {run.name: await shown_card(page, f"{address}/runs/{run.id}") for run in runs}
    return {name: seen for name, seen in found.items() if seen[0] > MOST_PIXELS or seen[1] > MOST_NUMBERS}


@pytest.mark.slow
async def test_the_card_of_a_change_is_at_most_420_pixels_high_and_says_at_most_14_numbers(
    page: Page, address: str
) -> None:
    assert await cards_that_say_too_much(page, address, RUNS[:2]) == {}
    # of a rate that is off, too, with what it should be
    await expect(page.locator("#run-advice-rows")).to_contain_text("2.4e-3 (9.6e-4 – 6.0e-3)")


@pytest.mark.slow
async def test_so_is_the_card_of_ten_runs(page: Page, address: str) -> None:
    assert await cards_that_say_too_much(page, address, RUNS[:10]) == {}


@pytest.mark.slow
async def test_what_comes_late_to_the_page_does_not_move_what_the_card_says(page: Page, address: str) -> None:
    card = page.locator(".card.rec")
    is_wanted = asyncio.Event()

    async def late(route: Route) -> None:
        if "run-rate-figure" in (route.request.post_data or ""):
            await is_wanted.wait()
        await route.continue_()

    await page.route("**/_dash-update-component", late)
    await page.goto(f"{address}{RUN}")
    await expect(card.locator(".big")).not_to_be_empty()
    await expect(card).to_contain_text("Now too low; best")
    before = await height_of(card)

    is_wanted.set()
    await page.wait_for_selector("#run-rate .trace", state="attached")

    assert await height_of(card) == before
