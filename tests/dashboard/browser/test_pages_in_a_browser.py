"""The pages in Chromium: they draw, stay on this machine, keep their state in the address, and can be used by all."""

import re
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import BrowserContext, FloatRect, Page, Request, expect

from axe_findings import DRAWINGS, serious_findings
from dashboard_visit import COMPARED, FINISHED, NO_PAGE, PAGES, REPORT, RUN, Visit, type_in_one_go
from fakes_api import FakeApi
from fakes_runs import RUNS
from page_geometry import complaints
from quick import quick_or_slow

pytestmark = pytest.mark.browser
QUICK = ("/runs", RUN)
"""A table and figures; the others, and pages that show that there is none, in `make test-full`."""
LETTERS = {"o": "/", "r": "/runs", "c": "/compare", "s": "/sweeps", "p": "/planner", ",": "/settings"}
ALL_RULES: dict[str, object] = {}
COLOURS_ONLY: dict[str, object] = {"runOnly": ["color-contrast"]}
WIDE = 1440
COUNT_DRAWN = """
() => {
  const plot = document.querySelector("#run-noise .js-plotly-plot"), before = plot.data;
  window.drawn = { same: 0, others: 0 };
  plot.on("plotly_afterplot", () => (window.drawn[plot.data === before ? "same" : "others"] += 1));
}
"""
"""How often the main figure is drawn with the points that it has now, and with others."""


@pytest.fixture
async def visit(page: Page, address: str) -> Visit:
    return Visit(page, address)


@pytest.fixture(scope="module")
async def opened(reader: BrowserContext, address: str) -> AsyncIterator[Visit]:
    """A run's page that is loaded once, for tests that leave it as they found it."""
    visit = Visit(await reader.new_page(), address)
    await visit.open(RUN)
    yield visit
    await visit.page.close()


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/runs", RUN])
async def test_a_first_visit_is_quiet_local_and_below_three_megabytes(
    first_page: Page, address: str, path: str
) -> None:
    visit = Visit(first_page, address)
    finished: list[Request] = []
    first_page.on("requestfinished", lambda request: finished.append(request))

    await visit.open(path)
    await first_page.wait_for_load_state("networkidle")

    assert visit.complaints == []
    assert visit.strangers() == set()
    sizes = [(await request.sizes())["responseBodySize"] for request in finished]
    assert 1_000_000 < sum(sizes) < 3_000_000


@pytest.mark.parametrize("width", [WIDE, pytest.param(390, marks=pytest.mark.slow)])
@pytest.mark.parametrize("path", quick_or_slow(PAGES, QUICK))
async def test_a_page_is_drawn_quietly_for_all_to_use_in_both_themes(
    visit: Visit, opened: Visit, path: str, width: int
) -> None:
    if (path, width) == (RUN, WIDE):
        # the page that takes longest is there already
        visit, page = opened, opened.page
    else:
        await visit.page.set_viewport_size({"width": width, "height": 1000})
        page = await visit.open(path)

    assert await page.evaluate("document.documentElement.scrollWidth") == width
    assert await page.locator("h1:visible").count() == 1
    for rules in (ALL_RULES, COLOURS_ONLY):
        assert await serious_findings(page, DRAWINGS, **rules) == []
        if path != REPORT:
            # a report is paper: light in both themes
            await page.locator("#theme-toggle").click()
    assert (visit.complaints, visit.strangers()) == ([], set())


@pytest.mark.slow
@pytest.mark.parametrize("path", [COMPARED, "/record"])
async def test_tables_fit_their_cards_on_a_laptop(visit: Visit, path: str) -> None:
    await visit.page.set_viewport_size({"width": 1280, "height": 800})

    page = await visit.open(path)

    assert [found for found in await complaints(page) if "wider than its card" in found] == []


@pytest.mark.slow
async def test_the_theme_switch_recolours_page_and_figures_without_a_request(opened: Visit) -> None:
    page = opened.page
    line = page.locator("#run-noise .scatterlayer path.js-line").first
    asked = sum("_dash-update" in url for url in opened.urls)

    await page.locator("#theme-toggle").click()

    await expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    await page.wait_for_selector('#run-noise path.js-line[style*="rgb(108, 166, 255)"]', state="attached")
    assert await line.count() == 1
    assert sum("_dash-update" in url for url in opened.urls) - asked <= 3
    await page.locator("#theme-toggle").click()


async def test_the_switch_of_the_x_axis_is_in_the_address_and_goes_back(opened: Visit) -> None:
    page = opened.page
    title = page.locator("#run-noise .annotation-text")

    await page.locator("#run-x").get_by_text("Time").click()

    await expect(title.filter(has_text="hours since start")).to_have_count(1)
    assert page.url.endswith("?x=time")
    await page.go_back()
    await expect(title.filter(has_text="optimizer step")).to_have_count(1)
    assert page.url.endswith(RUN)


@pytest.mark.slow
async def test_the_choice_of_a_kind_is_in_the_address_and_excludes_the_choice_of_a_layer(opened: Visit) -> None:
    page = opened.page
    title = page.locator("#run-noise-card-title")

    await page.locator("#run-kind").click()
    await page.get_by_role("option", name="Adam").click()

    await expect(title).to_have_text("Adam-preconditioned noise scale over training")
    assert page.url.endswith("?kind=adam")
    await page.locator("#run-layer").click()
    await page.get_by_role("option", name="embedding").click()
    await expect(title).to_have_text("Noise scale B_noise of embedding")
    await expect(page.locator("#run-kind")).to_have_value("Simple")
    assert page.url.endswith("?layer=embedding")
    await page.go_back()
    await expect(title).to_have_text("Adam-preconditioned noise scale over training")
    await page.go_back()
    await expect(title).to_have_text("Noise scale B_noise over training")
    assert page.url.endswith(RUN)


@pytest.mark.slow
async def test_an_address_opens_its_view(visit: Visit) -> None:
    page = await visit.open(f"{RUN}?x=units&w=5&from=30000&to=60000&pref=0.9")

    await expect(page.locator("#run-x input:checked")).to_have_value("units")
    await expect(page.locator("#run-w-word")).to_have_text("5 %")
    await expect(page.locator("#run-pref-word")).to_have_text("90 % towards fewer steps")
    await expect(page.locator("#run-noise-card-footer")).to_contain_text("Zoomed to steps 30k – 60k")


async def drag(page: Page) -> FloatRect:
    """Choose a quarter of the main figure; where its axes are."""
    box = await page.locator("#run-noise .nsewdrag").first.bounding_box()
    assert box
    await page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 100)
    await page.mouse.down()
    await page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 110, steps=4)
    await page.mouse.up()
    return box


async def test_dragging_zooms_asks_for_the_range_and_a_double_click_shows_all(opened: Visit) -> None:
    page = opened.page
    await page.evaluate(COUNT_DRAWN)

    box = await drag(page)

    await expect(page.locator("#run-noise-card-footer")).to_contain_text("Zoomed to steps")
    assert "from=" in page.url
    assert "to=" in page.url
    await page.wait_for_function("window.drawn.others > 0")
    assert await page.evaluate("window.drawn.same") == 1  # Dash's graph would draw what plotly has drawn once more
    # two clicks with the redrawn figure in between are none: plotly counts 300 ms
    await page.evaluate("new Promise((done) => requestIdleCallback(() => requestIdleCallback(done)))")
    await page.mouse.dblclick(box["x"] + 200, box["y"] + 100)
    await expect(page.locator("#run-noise-card-footer")).not_to_contain_text("Zoomed")
    assert "from=" not in page.url


@pytest.mark.slow
async def test_a_figure_that_is_late_stays_and_is_dimmed(opened: Visit, served_api: FakeApi) -> None:
    page = opened.page
    await page.emulate_media(reduced_motion="no-preference")
    figure = page.locator("#run-noise")

    served_api.delay_seconds = 0.5
    await page.locator("#run-x").get_by_text("Tokens").click()

    await expect(figure).to_have_css("opacity", "0.6")
    await expect(figure.locator(".annotation-text", has_text="optimizer step")).to_have_count(1)
    served_api.delay_seconds = 0.0
    await expect(figure.locator(".annotation-text", has_text="tokens")).to_have_count(1)
    await expect(figure).to_have_css("opacity", "1")
    await page.emulate_media(reduced_motion="reduce")
    await page.go_back()


@pytest.mark.slow
async def test_a_header_sorts_on_the_server_and_search_narrows(visit: Visit) -> None:
    page = await visit.open("/runs")

    await page.locator(".ag-header-cell", has_text="Loss").click()
    await expect(page.locator('.ag-row[row-index="0"]')).to_contain_text("digits-mlp-b256")
    await page.locator("#runs-q").fill("gpt")

    await expect(page.locator("#runs-count")).to_have_text("2")
    assert page.url.endswith("/runs?q=gpt&sort=-loss")


@pytest.mark.slow
async def test_a_name_opens_its_run_and_back_returns(visit: Visit) -> None:
    page = await visit.open("/runs")

    await page.locator(".ag-row").get_by_role("link", name=RUNS[0].name).click()

    await expect(page.locator("h1")).to_have_text(RUNS[0].name)
    await page.go_back()
    await page.wait_for_selector(".ag-row")


@pytest.mark.slow
async def test_a_run_that_has_ended_has_all_its_figures(visit: Visit) -> None:
    page = await visit.open(FINISHED)

    await expect(page.locator("#run-against-card-footer")).to_contain_text("A power law fits best.")
    await expect(page.locator("#run-rate-card-footer")).to_contain_text("as far as a random walk")
    await expect(page.locator("#run-advice-rate")).to_contain_text("too low")
    assert visit.complaints == []


async def asked_when_it_is_quiet(page: Page, api: FakeApi) -> int:
    """Requests so far, once what was asked before is answered and nothing follows from it."""
    asked = -1
    while asked != len(api.requests):
        asked = len(api.requests)
        await page.wait_for_timeout(400)
    return asked


async def test_a_hidden_tab_asks_for_nothing(opened: Visit, served_api: FakeApi) -> None:
    page = opened.page
    await page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    asked = await asked_when_it_is_quiet(page, served_api)

    await page.evaluate("window.dash_clientside.set_props('run-clock', {n_intervals: 7})")
    await page.wait_for_timeout(400)

    assert len(served_api.requests) == asked
    await page.evaluate("delete document.hidden")


@pytest.fixture(scope="module")
async def walked(reader: BrowserContext, address: str) -> AsyncIterator[Visit]:
    """A page from which each test goes on to another."""
    visit = Visit(await reader.new_page(), address)
    await visit.open(NO_PAGE)
    yield visit
    await visit.page.close()


@pytest.mark.parametrize("key", quick_or_slow(LETTERS, ("o", ",")))
async def test_g_and_a_letter_lead_to_every_page_of_the_navigation(walked: Visit, key: str) -> None:
    page = walked.page
    assert not re.fullmatch(re.escape(walked.address + LETTERS[key]), page.url.partition("?")[0])

    await type_in_one_go(page, "g", key)

    await expect(page).to_have_url(re.compile(re.escape(walked.address + LETTERS[key]) + r"(\?.*)?$"))
    await expect(page.locator("h1:visible")).to_have_count(1)
    assert walked.complaints == []
