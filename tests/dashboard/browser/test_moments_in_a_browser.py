"""What is pointed at in one card is marked in the others, in Chromium; zooms are linked until one says otherwise."""

import re
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import BrowserContext, Page, expect

from dashboard_visit import FINISHED, RUN, Visit
from fakes_api import FakeApi

pytestmark = pytest.mark.browser
NEAR_TWO_FIFTHS = re.compile(r"step 7\d,\d{3}")
"""Of the axis of a run of 184,200 steps, which reaches a little beyond its end."""
ALL_NAME_ONE_STEP = """
() => {
  const marks = ["#run-layers .moment.line", "#run-tradeoff .moment.dot", "#run-against .moment.dot"];
  const words = marks.map((mark) => document.querySelector(mark)?.dataset.words?.split(" ·")[0]);
  return words[0] && words.every((word) => word === words[0]);
}
"""
ASKED_BY_A_ZOOM = ["groups", "metrics", "noise-scale", "noise-scale"]
"""Layers, what was logged, and the series twice: asked for at the same time, both would share one request."""
ROUNDS = 400


@pytest.fixture
async def visit(reader: BrowserContext, address: str) -> AsyncIterator[Visit]:
    opened = Visit(await reader.new_page(), address)
    yield opened
    assert (opened.complaints, opened.strangers()) == ([], set())
    await opened.page.close()


async def point_at(page: Page, figure: str, part: float) -> tuple[float, float]:
    """Where the pointer is then: so far along the x axis of the figure."""
    area = page.locator(f"{figure} .nsewdrag").first
    # what lies below the window is beyond any pointer
    await area.scroll_into_view_if_needed()
    box = await area.bounding_box()
    assert box
    x, y = box["x"] + part * box["width"], box["y"] + box["height"] / 2
    # two moves: the first may only tell the page that there is a pointer
    await page.mouse.move(x - 3, y)
    await page.mouse.move(x, y)
    return x, y


async def drag(page: Page, figure: str, start: float, end: float) -> None:
    x, y = await point_at(page, figure, start)
    box = await page.locator(f"{figure} .nsewdrag").first.bounding_box()
    assert box
    await page.mouse.down()
    await page.mouse.move(x + (end - start) * box["width"], y + 8, steps=4)
    await page.mouse.up()


async def open_with_curve(visit: Visit) -> Page:
    page = await visit.open(RUN)
    await page.wait_for_selector("#run-tradeoff .trace", state="attached")
    await page.wait_for_selector("#run-against .trace", state="attached")
    return page


async def test_a_hovered_step_is_marked_in_every_figure_without_a_request(visit: Visit, served_api: FakeApi) -> None:
    # of a run that has ended nothing else is asked meanwhile
    page = await visit.open(FINISHED)
    await page.wait_for_load_state("networkidle")
    asked = len(served_api.requests)

    await point_at(page, "#run-noise", 0.4)

    for name in ("noise", "terms", "loss"):
        await expect(page.locator(f"#run-{name} .hoverlayer .spikeline").first).to_be_attached()
    on_layers = page.locator("#run-layers .moment.line")
    await expect(on_layers).to_have_attribute("data-words", re.compile(r"step [45]\d,\d{3}"))
    # which step lies there hangs on the width of a figure that may still be settling: in the end all name the same one
    await page.wait_for_function(ALL_NAME_ONE_STEP)
    assert len(served_api.requests) == asked
    await page.mouse.move(4, 400)
    await expect(page.locator(".moment")).to_have_count(0)


@pytest.mark.slow
async def test_a_zoom_asks_for_the_main_figure_and_when_that_is_there_for_what_stands_beside_it(
    visit: Visit, served_api: FakeApi
) -> None:
    page = await visit.open(FINISHED)
    await page.wait_for_load_state("networkidle")
    served_api.requests.clear()

    await drag(page, "#run-noise", 0.25, 0.6)
    await expect(page.locator("#run-noise-card-footer")).to_contain_text("Zoomed to steps")
    asked: list[str] = []
    for _ in range(ROUNDS):
        await page.wait_for_timeout(50)
        asked = [r.url.path.rsplit("/", 1)[-1] for r in served_api.requests if r.query_params.get("from")]
        if len(asked) == len(ASKED_BY_A_ZOOM):
            break

    assert asked[0] == "noise-scale"
    assert sorted(asked) == ASKED_BY_A_ZOOM


@pytest.mark.slow
async def test_a_click_pins_the_moment_and_escape_releases_it(visit: Visit) -> None:
    page = await open_with_curve(visit)

    x, y = await point_at(page, "#run-terms", 0.5)
    await page.mouse.click(x, y)
    await page.mouse.move(4, 400)

    await expect(page.locator("#run-moment-words")).to_contain_text("Pinned: step")
    await expect(page.locator("#run-tradeoff .moment.dot")).to_have_count(1)
    await expect(page.locator("#run-noise .hoverlayer .spikeline").first).to_be_attached()
    await page.keyboard.press("Escape")
    await expect(page.locator("#run-moment-words")).to_be_empty()
    await expect(page.locator(".moment")).to_have_count(0)


@pytest.mark.slow
async def test_over_time_the_moment_is_the_same_step(visit: Visit) -> None:
    page = await visit.open(f"{RUN}?x=time")

    await point_at(page, "#run-loss", 0.4)

    await expect(page.locator("#run-layers .moment.line")).to_have_attribute("data-words", NEAR_TWO_FIFTHS)


@pytest.mark.slow
async def test_figures_that_are_not_linked_keep_their_range_and_the_address_says_it(visit: Visit) -> None:
    page = await visit.open(f"{RUN}?linked=0")
    range_of = "name => document.querySelector(`#run-${name} .js-plotly-plot`).layout.xaxis.range[1]"
    before = await page.evaluate(range_of, "terms")

    await drag(page, "#run-noise", 0.25, 0.5)
    await expect(page.locator("#run-noise-card-footer")).to_contain_text("Zoomed to steps")

    assert await page.evaluate(range_of, "noise") < before / 1.5
    assert await page.evaluate(range_of, "terms") == before
    assert "linked=0" in page.url
    assert "from=" in page.url
    await page.locator("#run-w-word").click()
    # the switch itself lies under its drawing
    await page.locator("#run-linked").click(force=True)
    await page.wait_for_function(f"before => ({range_of})('terms') < before / 1.5", arg=before)
    assert "linked" not in page.url


@pytest.mark.slow
async def test_terms_efficiency_and_what_layers_show_are_in_the_address(visit: Visit) -> None:
    page = await visit.open(RUN)

    await page.locator("#run-terms-show").get_by_text("Efficiency").click()
    await expect(page.locator("#run-terms-card-title")).to_have_text("Efficiency and waste")
    await page.locator("#run-layer-term").get_by_text("tr Σ").click()
    await expect(page.locator("#run-layers-card-title")).to_have_text("tr Σ by layer")

    assert page.url.endswith("?show=efficiency&term=trace_cov")
    await page.go_back()
    await page.go_back()
    await expect(page.locator("#run-terms-card-title")).to_have_text("Signal and noise")
    await expect(page.locator("#run-layers-card-title")).to_have_text("Noise scale by layer")


@pytest.mark.slow
async def test_a_run_that_is_pointed_at_is_raised_in_every_card_of_the_overview(visit: Visit) -> None:
    page = await visit.open("/")

    await page.locator(".events li[data-run]").first.hover()
    await expect(page.locator("#overview-misfit .raised-box")).to_have_count(1)
    await expect(page.locator("#overview-small .raised-box")).to_have_count(1)

    box = await page.locator("#overview-misfit").bounding_box()
    assert box
    await page.mouse.move(box["x"] + 60, box["y"] + 60)
    await expect(page.locator("#overview-small .raised-box")).to_have_count(1)
    await page.mouse.move(4, 4)
    await expect(page.locator(".raised-box")).to_have_count(0)


@pytest.mark.slow
async def test_what_people_say_of_a_run_is_written_and_taken_back(visit: Visit, served_api: FakeApi) -> None:
    page = await visit.open(RUN)

    await page.locator("#run-edit summary").click()
    await page.locator("#run-remarks").fill("warm-up too short")
    await page.locator("#run-save").click()

    await expect(page.locator("#run-head .remarks")).to_have_text("warm-up too short")
    await page.locator("#run-unsay").click()
    await expect(page.locator("#run-head .remarks")).to_have_count(0)
    served_api.said.clear()
