"""Runs and Overview with the long names of a real team in Chromium: what is cut says so, and no two labels overlap."""

from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import BrowserContext, Page, expect

from dashboard_visit import Visit
from fakes_api import FakeApi
from page_geometry import complaints
from realistic_runs import folds_of, realistic_runs

pytestmark = pytest.mark.browser


@pytest.fixture
def team(served_api: FakeApi) -> Iterator[FakeApi]:
    """Ninety runs of five projects, half of them trials of three sweeps."""
    before = served_api.runs
    served_api.runs = realistic_runs()
    served_api.folds = folds_of(served_api.runs)
    yield served_api
    served_api.runs, served_api.folds, served_api.views = before, {}, []


@pytest.fixture
async def visit(reader: BrowserContext, address: str) -> AsyncIterator[Visit]:
    opened = Visit(await reader.new_page(), address)
    yield opened
    assert (opened.complaints, opened.strangers()) == ([], set())
    await opened.page.evaluate("window.localStorage.clear()")
    await opened.page.close()


async def of_run(visit: Visit, run_id: str) -> Page:
    await visit.page.goto(f"{visit.address}/runs/{run_id}")
    await visit.page.wait_for_selector("#run-noise .scatterlayer .trace", state="attached")
    return visit.page


@pytest.mark.slow
@pytest.mark.parametrize("width", [1440, 1280, 700, 390])
async def test_no_text_is_cut_without_a_word_and_no_labels_overlap(visit: Visit, team: FakeApi, width: int) -> None:
    await visit.page.set_viewport_size({"width": width, "height": 1000})

    for path in ("/runs?open=s:00000000-0000-4000-9000-000000000000", "/runs?group=config.lr", "/"):
        page = await visit.open(path.replace("/runs?group=config.lr", "/runs?group=task&open=g:cifar10"))
        assert await complaints(page) == [], path


@pytest.mark.slow
async def test_a_click_unfolds_the_trials_of_a_sweep_and_the_address_keeps_it(visit: Visit, team: FakeApi) -> None:
    page = await visit.open("/runs?sort=name")
    children = page.locator(".run-name.child")
    await expect(children).to_have_count(0)

    arrow = page.locator(".unfold").first
    await arrow.click()

    await expect(children.first).to_be_visible()
    await expect(arrow).to_have_attribute("aria-expanded", "true")
    assert "open=s" in page.url
    await page.reload()
    await expect(children.first).to_be_visible()
    # a fold is no run: it has no box
    row = await page.locator(".ag-row", has=page.locator(".unfold")).first.get_attribute("row-id")
    await expect(page.locator(f'.ag-row[row-id="{row}"] .ag-checkbox-input').first).to_be_hidden()
    await page.locator(".unfold").first.click()
    await expect(children).to_have_count(0)


@pytest.mark.slow
async def test_a_condition_is_added_and_one_that_nobody_knows_is_said(visit: Visit, team: FakeApi) -> None:
    page = await visit.open("/runs")

    await page.locator(".where-filters summary").click()
    await page.locator("#runs-where-field").fill("config.lr")
    await page.locator("#runs-where-value").fill("0.1")
    await page.locator("#runs-where-add").click()

    await page.wait_for_url("**/runs?where=config.lr+%3D+0.1")
    await expect(page.locator("#runs-where-words")).to_have_text("Config: 1")
    await page.locator("#runs-where").fill("unknown < 1")
    await page.keyboard.press("Enter")
    await expect(page.locator("#runs-note")).to_contain_text("has the unknown field")
    await expect(page.locator("#runs-card")).to_be_visible()


@pytest.mark.slow
async def test_the_project_of_the_switch_goes_from_page_to_page(visit: Visit, team: FakeApi) -> None:
    page = await visit.open("/")
    await page.locator("#project").click()
    await page.get_by_role("option", name="games").click()
    await page.wait_for_url("**/?project=games")

    await page.locator(".nav").get_by_text("Runs").click()

    await page.wait_for_url("**/runs?project=games")
    await expect(page.locator("#project")).to_have_value("games")
    assert team.requests[-1].query_params.get("project", "games") == "games"
    await page.locator(".nav").get_by_text("Learn").click()
    await page.wait_for_url("**/learn?project=games")
    await page.locator(".nav").get_by_text("Sweeps").click()
    await page.wait_for_url("**/sweeps?project=games")
    # each page has a switch of its own, which is filled first
    await expect(page.locator("#project")).to_have_value("games")
    await expect(page.locator("#sweeps-table tbody td").first).to_be_visible()
    await page.locator("#project").click()
    await page.get_by_role("option", name="All projects").click()
    await page.wait_for_url("**/sweeps")
    await page.go_back()
    await expect(page.locator("#project")).to_have_value("games")


@pytest.mark.slow
async def test_a_view_is_shared_and_opened_from_another_page(visit: Visit, team: FakeApi) -> None:
    page = await visit.open("/runs?decision=increase&project=vision")
    menu = page.locator(".team-views")

    await menu.locator("summary").click()
    await page.locator("#team-views-name").fill("Too small")
    await page.locator("#team-views-share").click()
    await expect(page.locator("#team-views-said")).to_have_text("Shared as Too small.")
    await page.locator(".nav").get_by_text("Overview").click()
    await page.wait_for_selector("#overview-misfit .trace", state="attached")
    await menu.locator("summary").click()
    await menu.get_by_role("link", name="Too small").click()

    await page.wait_for_url("**/runs?decision=increase&project=vision")
    await menu.locator("summary").click()
    await menu.get_by_role("button", name="Delete Too small").click()
    await expect(page.locator("#team-views-said")).to_have_text("Deleted.")
    await page.locator("#team-views-undo").click()
    await expect(menu.get_by_role("link", name="Too small")).to_be_visible()
    assert [one["query"] for one in team.views] == ["decision=increase"]


@pytest.mark.slow
async def test_the_box_of_a_step_leaves_the_step_free_and_names_one_noise_scale(visit: Visit, team: FakeApi) -> None:
    page = await of_run(visit, team.runs[2].id)
    plot = page.locator("#run-noise .nsewdrag")
    area = await plot.bounding_box()
    assert area is not None

    for share in (0.2, 0.8):
        at = area["x"] + share * area["width"]
        await page.mouse.move(at, area["y"] + 40)
        await page.mouse.move(at + 2, area["y"] + 42)
        shown = page.locator("#run-noise .hoverlayer .legend")
        await expect(shown).to_be_visible()
        box = await shown.bounding_box()
        assert box is not None
        assert not box["x"] - 4 <= at <= box["x"] + box["width"] + 4
        words = await shown.text_content()
        assert (words or "").count("noise scale") == 1


@pytest.mark.slow
async def test_what_to_paste_is_copied_from_the_list_of_changes(visit: Visit, team: FakeApi) -> None:
    page = await visit.open("/runs")

    await expect(page.locator("#runs-change-title")).to_have_text("27 runs to change")
    await page.locator("[data-copy-run]").first.click()

    await expect(page.locator("#runs-flags-text")).to_contain_text("batch_size = ")


@pytest.mark.slow
async def test_enter_in_the_name_of_a_run_saves_it(visit: Visit, team: FakeApi) -> None:
    page = await of_run(visit, team.runs[2].id)
    await page.locator("#run-edit summary").click()
    await expect(page.locator("#run-name")).to_have_value(team.runs[2].name)

    await page.locator("#run-name").fill("renamed")
    await page.keyboard.press("Enter")

    await expect(page.locator("#run-change-words")).to_have_text("Saved: name.")
    team.said.clear()


async def test_the_first_steps_of_an_empty_server_fit_on_a_phone(visit: Visit, team: FakeApi) -> None:
    team.runs = ()
    page = visit.page
    await page.set_viewport_size({"width": 390, "height": 1000})

    await page.goto(visit.address)

    await expect(page.get_by_text("Waiting for the first step")).to_be_visible()
    assert "the page scrolls sideways" not in await complaints(page)
