"""The page that compares in Chromium: views in the address, colours that stay, both themes, phone and desk."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from dashboard_visit import COMPARED, Visit, type_in_one_go
from fakes_api import FakeApi
from fakes_runs import RUNS

pytestmark = pytest.mark.browser
IDS = [run.id for run in RUNS]
LINE = "#compare-runs path.js-line"


@pytest.fixture
async def visit(page: Page, address: str) -> AsyncIterator[Visit]:
    opened = Visit(page, address)
    yield opened
    assert (opened.complaints, opened.strangers()) == ([], set())


PLOT = 'document.querySelector("#compare-runs .js-plotly-plot")'
X_RANGE = f"{PLOT}._fullLayout.xaxis.range"
EQUAL_DECADES = """(width) => {
  const plot = document.querySelector("#compare-scatter .js-plotly-plot"), layout = plot && plot._fullLayout;
  if (!layout || !layout.xaxis || plot.clientWidth > width) return false;
  const [x, y] = [layout.xaxis, layout.yaxis].map((axis) => axis._length / (axis.range[1] - axis.range[0]));
  return Math.abs(x / y - 1) < 0.01;
}"""


async def colors_of_swatches(page: Page) -> list[str]:
    await page.wait_for_selector("#compare-table .sw")
    return await page.eval_on_selector_all("#compare-table .sw", "all => all.map((one) => one.className)")


@pytest.mark.slow
async def test_across_tasks_the_answer_and_its_figures_are_there_with_equal_decades(visit: Visit) -> None:
    page = await visit.open("/compare")

    await expect(page.locator("h1")).to_have_text("The noise scale predicts the critical batch here, to × or ÷ 1.5")
    for graph in ("scatter", "order", "sizes"):
        await page.wait_for_selector(f"#compare-{graph} .trace", state="attached")
    await expect(page.locator("#compare-sizes-card-footer")).to_contain_text("No: ×1.04")
    await page.get_by_text("3 tasks are not in the statistics").click()
    await expect(page.locator("#compare-scatter-card-footer")).to_contain_text("S_min is below 5 steps")
    await expect(page.locator("#compare-runs")).to_be_hidden()
    # a decade is as long along x as along y, whatever the width
    for width in (1440, 1000, 390):
        await page.set_viewport_size({"width": width, "height": 900})
        await page.wait_for_function(EQUAL_DECADES, arg=width)
        assert await page.evaluate("document.documentElement.scrollWidth") == width
    await page.set_viewport_size({"width": 1440, "height": 1000})


@pytest.mark.slow
async def test_the_view_is_in_the_address_opens_in_a_second_browser_and_goes_back(
    visit: Visit, browser: Browser
) -> None:
    page = await visit.open(COMPARED)
    await page.wait_for_selector(LINE, state="attached")

    await page.locator("#compare-y").get_by_text("Loss").click()
    await page.locator("#compare-x").get_by_text("Time").click()

    title = page.locator("#compare-runs-card-title")
    await expect(title).to_have_text("Training loss over time since each start")
    assert page.url.endswith("&x=time&y=loss")
    context = await browser.new_context(viewport={"width": 1440, "height": 1000}, color_scheme="dark")
    second = await context.new_page()
    await second.goto(page.url)
    # a browser that has never been here loads everything first
    await second.wait_for_selector("#compare-table .sw", timeout=30_000)
    await expect(second.locator("#compare-runs-card-title")).to_have_text("Training loss over time since each start")
    assert await colors_of_swatches(second) == await colors_of_swatches(page)
    await context.close()
    await page.go_back()
    await expect(title).to_have_text("Training loss over step")
    await page.go_back()
    await expect(title).to_have_text("Noise scale B_noise over step")
    await page.go_forward()
    await expect(page.locator("#compare-y input:checked")).to_have_value("loss")


@pytest.mark.slow
async def test_runs_keep_their_colours_when_one_of_them_goes(visit: Visit) -> None:
    page = await visit.open(COMPARED)
    before = await colors_of_swatches(page)

    await page.locator("#compare-pick-box button").first.click()

    await expect(page.locator("#compare-table tbody tr")).to_have_count(2)
    assert await colors_of_swatches(page) == before[1:]
    assert IDS[0] not in page.url
    await page.reload()
    await expect(page.locator("#compare-table tbody tr")).to_have_count(2)
    assert await colors_of_swatches(page) == before[1:]


@pytest.mark.slow
async def test_a_run_is_added_by_a_part_of_its_name(visit: Visit, served_api: FakeApi) -> None:
    page = await visit.open(COMPARED)
    wanted = next(run for run in RUNS if run.id not in IDS[:3])

    async with page.expect_request(lambda asked: f'"value":"{wanted.name[:8]}"' in (asked.post_data or "")):
        await page.locator("#compare-pick").press_sequentially(wanted.name[:8], delay=20)

    await page.get_by_role("option", name=wanted.name).first.click()
    await expect(page.locator("#compare-table tbody tr")).to_have_count(4)
    assert wanted.id in page.url
    assert any(request.query_params.get("q") == wanted.name[:8] for request in served_api.requests)


@pytest.mark.slow
async def test_a_sixth_run_is_grey_and_another_one_becomes_the_first(visit: Visit) -> None:
    page = await visit.open(f"/compare?runs={','.join(IDS[:5] + IDS[6:7])}")

    swatches = await colors_of_swatches(page)
    assert sorted(swatches) == [f"sw run{slot}" for slot in range(6)]
    assert swatches[-1] == "sw run0"
    await page.locator("#compare-base").click()
    await page.get_by_role("option", name=RUNS[4].name).click()

    await expect(page.locator("#compare-ratio-card-subtitle")).to_contain_text(f"To {RUNS[4].name}")
    assert f"runs={IDS[4]}%2C{IDS[0]}" in page.url
    assert (await colors_of_swatches(page))[0] == swatches[4]


@pytest.mark.slow
async def test_tabs_switch_without_asking_where_the_runs_are(visit: Visit) -> None:
    page = await visit.open(COMPARED)

    await page.locator("#compare-tab").get_by_text("Config").click()

    await expect(page.locator("h1")).to_contain_text("settings differ between 3 runs")
    await page.wait_for_selector("#compare-config .trace", state="attached")
    await page.locator("label", has_text="Show what is equal").click()
    await expect(page.locator("#compare-config-table")).to_contain_text("hidden")
    assert page.url.endswith("same=1")
    await page.locator("#compare-tab").get_by_text("Across tasks").click()
    await expect(page.locator("h1")).to_contain_text("predicts the critical batch")
    await expect(page.locator("#compare-pick")).to_be_hidden()


@pytest.mark.slow
async def test_news_of_a_run_keep_what_the_reader_has_zoomed_to(visit: Visit, served_api: FakeApi) -> None:
    page = await visit.open(COMPARED)
    await page.wait_for_selector(LINE, state="attached")
    box = await page.locator("#compare-runs .nsewdrag").first.bounding_box()
    assert box
    await page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 100)
    await page.mouse.down()
    await page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 110, steps=4)
    await page.mouse.up()
    await page.wait_for_function(f"() => {X_RANGE}[0] > 10000")
    zoomed = await page.evaluate(X_RANGE)

    served_api.runs = tuple(replace(run, steps=2 * run.steps) for run in RUNS)
    await page.evaluate("window.dash_clientside.set_props('compare-pulse', {data: Date.now()})")
    await page.wait_for_function(f"() => {PLOT}.data.some((trace) => Math.max(...trace.x) > 250000)")

    assert await page.evaluate(X_RANGE) == zoomed
    served_api.runs = RUNS


@pytest.mark.slow
async def test_an_address_of_nonsense_shows_what_it_can(visit: Visit) -> None:
    hostile = "/compare?tab=shop&x=epoch&y=%3Cimg%3E&colors=9x-&runs=%3Cscript%3E,'--,,"

    page = visit.page
    await page.goto(visit.address + hostile)

    await expect(page.locator("#compare-missing h2")).to_have_text("None of these runs exists")
    await expect(page.locator("#compare-missing")).to_contain_text("<script>, '--")
    await expect(page.locator("#compare-tab input:checked")).to_have_value("runs")
    await page.goto(f"{visit.address}/compare?runs=nonsense,{IDS[0]},{IDS[1]}")
    await expect(page.locator("#compare-note")).to_contain_text("No run has this id: nonsense.")
    await expect(page.locator("#compare-table tbody tr")).to_have_count(2)
    assert "nonsense" in page.url


@pytest.mark.slow
async def test_chosen_runs_are_compared_by_key(reader: BrowserContext, address: str) -> None:
    visit = Visit(await reader.new_page(), address)
    page = await visit.open("/runs")

    for row in (0, 1):
        await page.locator(f'.ag-row[row-index="{row}"] .ag-checkbox-input').click()
    await expect(page.locator("#runs-chosen")).to_have_text("2 chosen")
    await page.wait_for_function("() => document.getElementById('runs-compare').getAttribute('href').includes(',')")
    await page.keyboard.press("c")

    await expect(page.locator("#compare-table tbody tr")).to_have_count(2)
    await type_in_one_go(page, "g", "r")
    await page.wait_for_selector(".ag-row")
    await type_in_one_go(page, "g", "c")
    await expect(page.locator("h1")).to_contain_text("predicts the critical batch")
    assert (visit.complaints, visit.strangers()) == ([], set())
    await page.close()
