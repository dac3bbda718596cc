"""The page of a sweep in Chromium: the target in the address, and what a card's menu gives away."""

import asyncio
import csv
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext, Page, Route, expect

from dashboard_visit import BRANCH, SWEEP, Visit, type_in_one_go
from fakes_sweeps import SWEEPS

pytestmark = pytest.mark.browser
MENU = ".hyperbola-card .card-menu"


@pytest.fixture(scope="module")
async def opened(reader: BrowserContext, address: str) -> AsyncIterator[Visit]:
    """A sweep's page that is loaded once."""
    visit = Visit(await reader.new_page(), address)
    await visit.open(SWEEP)
    yield visit
    assert (visit.complaints, visit.strangers()) == ([], set())
    await visit.page.close()


async def saved(visit: Visit, words: str) -> Path:
    """The file that an entry of the menu gives."""
    page = visit.page
    await page.locator(f"{MENU} summary").click()
    async with page.expect_download() as download:
        await page.locator(MENU).get_by_role("button", name=words).click()
    return Path(await (await download.value).path())


@pytest.mark.slow
async def test_the_target_is_in_the_address_and_goes_back(opened: Visit) -> None:
    page = opened.page
    await expect(page.locator("#sweep-target")).to_have_value("val_loss 2.85")

    await page.locator("#sweep-target").click()
    await page.get_by_role("option", name="val_loss 3.1").click()

    await expect(page.locator("h1")).to_have_text("Critical batch 397 sequences at val_loss 3.1")
    assert page.url.endswith(f"{SWEEP}?target=3.1")
    await page.go_back()
    await expect(page.locator("h1")).to_have_text("Critical batch 992 sequences at val_loss 2.85")
    await expect(page.locator("#sweep-target")).to_have_value("val_loss 2.85")
    assert page.url.endswith(SWEEP)


async def test_data_and_pictures_leave_as_files_and_the_table_shows_the_same_rows(opened: Visit) -> None:
    page = opened.page

    with (await saved(opened, "Data as CSV")).open(newline="") as file:
        rows = list(csv.reader(file))
    svg = (await saved(opened, "Picture as SVG")).read_text()
    png = (await saved(opened, "Picture as PNG")).read_bytes()
    await page.locator(f"{MENU} summary").click()
    await page.get_by_role("button", name="Show as table").click()

    dialog = page.get_by_role("dialog", name="Steps against examples")
    num_points = sum(len(SWEEPS[0].batch_sizes) for _ in SWEEPS[0].ladder)
    assert len(rows) == 1 + num_points
    assert rows[0][:2] == ["target", "batch size (sequences)"]
    assert "Steps against examples" in svg
    assert "font/woff2;base64" in svg
    assert png.startswith(b"\x89PNG")
    assert await dialog.locator("tbody tr").count() == num_points
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


@pytest.mark.slow
async def test_what_printing_does_to_the_width_for_a_moment_draws_nothing_again(opened: Visit) -> None:
    page = opened.page
    asked = sum("_dash-update" in url for url in opened.urls)

    await page.set_viewport_size({"width": 600, "height": 1000})
    await page.set_viewport_size({"width": 1440, "height": 1000})

    await page.wait_for_timeout(400)
    assert sum("_dash-update" in url for url in opened.urls) == asked


@pytest.mark.slow
async def test_keys_open_pages_menus_and_their_own_list(opened: Visit) -> None:
    page = opened.page

    await page.locator("#sweep-target").focus()  # a value is chosen there, not typed
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("e")
    await expect(page.get_by_role("button", name="Picture as PNG").first).to_be_focused()
    await page.keyboard.press("Escape")
    await type_in_one_go(page, "g", "s")

    await expect(page.locator("h1")).to_have_text("Sweeps")
    await page.go_back()
    await page.wait_for_selector("#sweep-steps .trace", state="attached")


@pytest.mark.slow
async def test_a_branch_shows_its_arms(reader: BrowserContext, address: str) -> None:
    visit = Visit(await reader.new_page(), address)

    page = await visit.open(BRANCH)

    await expect(page.locator("h1")).to_have_text("Local critical batch between 1,024 and 4,096")
    await expect(page.locator("#sweep-cards")).to_be_hidden()
    assert (visit.complaints, visit.strangers()) == ([], set())
    await page.close()


@pytest.mark.slow
async def test_enter_saves_a_name_and_cards_that_wait_have_lines(page: Page, address: str) -> None:
    visit = Visit(page, address)
    waiting = asyncio.Event()

    async def later(route: Route) -> None:
        await waiting.wait()
        await route.continue_()

    await page.route(
        "**/_dash-update-component*",
        lambda route: later(route) if "sweep-plan" in (route.request.post_data or "") else route.continue_(),
    )
    await page.goto(f"{address}{SWEEP}")
    await expect(page.locator("h1")).to_contain_text("Critical batch")
    lines = "(one) => getComputedStyle(one).backgroundImage.includes('gradient')"
    assert await page.locator("#sweep-plan").evaluate(lines)
    waiting.set()
    await expect(page.locator("#sweep-plan table")).to_be_visible()
    assert not await page.locator("#sweep-plan").evaluate(lines)

    await page.get_by_text("Rename").click()
    await page.locator("#sweep-name").fill("tried twice")
    await page.locator("#sweep-name").press("Enter")

    await expect(page.locator("#sweep-crumb")).to_have_text("tried twice")
    await expect(page.locator("#sweep-name-said")).to_have_text("Saved.")
    assert (visit.complaints, visit.strangers()) == ([], set())
