"""Terms in Chromium: their tooltips are within the page, their links lead to where they are explained."""

import pytest
from playwright.async_api import Page, expect

from dashboard_visit import RUN, Visit

pytestmark = pytest.mark.browser
OUTSIDE = """() => Array.from(document.querySelectorAll(".term")).filter((one) => one.offsetParent).map((one) => {
    for (let at = one.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    one.focus();
    const tip = getComputedStyle(one, "::after");
    const near = getComputedStyle(one).position === "static" ? one.closest(".hd > div, .fact") : one;
    const box = near.getBoundingClientRect();
    const width = parseFloat(tip.width);
    const left = Math.min(box.left + parseFloat(tip.left), box.right - parseFloat(tip.right) - width);
    return [one.textContent, tip.content, left, left + width];
})"""
OVERLAPS = """() => {
    const parts = Array.from(document.querySelectorAll("#content > *, #content .card"));
    const boxes = parts.filter((one) => !one.querySelector(".card")).map((one) => [one, one.getBoundingClientRect()]);
    const across = (a, b) => a.width && b.width && a.left < b.right - 1 && b.left < a.right - 1;
    const meet = (a, b) => across(a, b) && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    const name = (one) => one.id || one.className;
    const after = (a, i) => boxes.slice(i + 1).filter(([, b]) => meet(a, b));
    return boxes.flatMap(([one, a], i) => after(a, i).map(([other]) => [name(one), name(other)]));
}"""


@pytest.fixture
async def visit(page: Page, address: str) -> Visit:
    return Visit(page, address)


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1440])
async def test_an_address_leads_to_its_term_below_the_top_bar_and_no_card_lies_over_another(
    visit: Visit, width: int
) -> None:
    await visit.page.set_viewport_size({"width": width, "height": 1000})
    page = await visit.open("/learn#kappa")

    await expect(page.locator("#kappa")).to_have_class("asked")
    top = await page.evaluate("document.getElementById('kappa').getBoundingClientRect().top")
    assert 50 <= top <= 120
    assert await page.evaluate("document.documentElement.scrollWidth") == width
    assert await page.evaluate(OVERLAPS) == []
    assert visit.complaints == []


@pytest.mark.slow
@pytest.mark.parametrize("path", [RUN, "/learn"])
@pytest.mark.parametrize("width", [390, 1440])
async def test_every_tooltip_of_a_page_opens_by_keyboard_and_within_the_page(
    visit: Visit, path: str, width: int
) -> None:
    await visit.page.set_viewport_size({"width": width, "height": 1000})
    page = await visit.open(path)

    found = await page.evaluate(OUTSIDE)

    assert len(found) >= 2
    for word, content, left, right in found:
        assert content not in ("none", "normal"), word
        assert 0 <= left < right <= width, word


@pytest.mark.slow
async def test_a_term_of_a_card_leads_to_where_it_is_explained(visit: Visit) -> None:
    page = await visit.open(RUN)

    await page.locator(".fact .term", has_text="Step efficiency").click()

    await expect(page.locator("#step-efficiency")).to_have_class("asked")
    assert page.url.endswith("/learn#step-efficiency")
    await page.go_back()
    await expect(page.locator("#run-noise-card-title")).to_be_visible()


@pytest.mark.slow
async def test_the_slider_moves_the_batch_and_what_is_said_of_it(visit: Visit) -> None:
    page = await visit.open("/learn")
    before = await page.locator("#learn-told").inner_text()

    await page.get_by_role("slider").press("ArrowRight")

    await expect(page.locator("#learn-told")).not_to_have_text(before)
