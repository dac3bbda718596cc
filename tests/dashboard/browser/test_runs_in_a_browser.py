"""Overview and Runs in Chromium: views in the address, clicks that open runs, changes that can be undone."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from playwright.async_api import BrowserContext, expect

from dashboard_visit import Visit
from fakes_api import FakeApi
from fakes_runs import RUNS

pytestmark = pytest.mark.browser
LARGE = (262_144, 1_048_576, 9_437_184, 3 * 2**40)


@pytest.fixture
async def visit(reader: BrowserContext, address: str) -> AsyncIterator[Visit]:
    opened = Visit(await reader.new_page(), address)
    yield opened
    assert (opened.complaints, opened.strangers()) == ([], set())
    await opened.page.close()


@pytest.mark.slow
async def test_scope_and_preference_are_in_the_address_and_go_back(visit: Visit) -> None:
    page = await visit.open("/")
    await expect(page.locator("h1")).to_have_text("4 of 5 running or silent jobs should change their batch size")

    await page.locator("#overview-scope").get_by_text("7 days").click()

    await expect(page.locator("h1")).to_have_text("7 of 10 runs should have had another batch size")
    assert page.url.endswith("/?scope=7d")
    await page.locator("#overview-pref").click()
    await page.get_by_role("option", name="Time", exact=True).click()
    await page.wait_for_url("**/?scope=7d&pref=0.8")
    await page.go_back()
    await page.go_back()
    await expect(page.locator("h1")).to_have_text("4 of 5 running or silent jobs should change their batch size")
    await expect(page.locator("#overview-pref")).to_have_value("Both equally")


@pytest.mark.slow
async def test_a_click_on_a_run_in_the_figure_opens_it(visit: Visit) -> None:
    page = await visit.open("/")
    mark = page.locator("#overview-misfit .scatterlayer .trace path.point").last

    # the layer for dragging lies above the marks and takes the click
    await mark.click(force=True)

    await page.wait_for_url("**/runs/00000000-*")


@pytest.mark.slow
async def test_chosen_runs_are_archived_and_come_back(visit: Visit, served_api: FakeApi) -> None:
    page = await visit.open("/runs")
    boxes = page.locator(".ag-row .ag-checkbox-input")
    await expect(page.locator("#runs-bar")).to_be_hidden()

    await boxes.nth(0).click()
    await boxes.nth(1).click()
    await expect(page.locator("#runs-chosen")).to_have_text("2 chosen")
    await page.locator("#runs-archive").click()

    await expect(page.locator("#runs-done-words")).to_have_text("2 runs archived.")
    await expect(page.locator(".ag-center-cols-container .ag-row")).to_have_count(len(RUNS) - 2)
    await expect(page.locator("#runs-bar")).to_be_hidden()
    await page.locator("#runs-undo").click()
    await expect(page.locator(".ag-center-cols-container .ag-row")).to_have_count(len(RUNS))
    assert served_api.archived == set()


async def test_keys_go_from_run_to_run_and_choose(visit: Visit) -> None:
    page = await visit.open("/runs")
    names = page.locator(".ag-row a[data-go]")

    for key in ("j", "j", "j", "k", "x"):
        await page.keyboard.press(key)

    await expect(page.locator("#runs-chosen")).to_have_text("1 chosen")
    await expect(page.locator('.ag-row[row-index="1"] a[data-go]')).to_be_focused()
    await expect(names).to_have_count(len(RUNS))
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/runs/00000000-*")


@pytest.mark.slow
async def test_a_deletion_waits_for_its_time_and_then_is_made(visit: Visit, served_api: FakeApi) -> None:
    page = await visit.open("/runs")
    doomed = served_api.runs
    await page.evaluate("window.dash_clientside.set_props('runs-purge-timer', {data: 300})")
    await page.locator(".ag-row .ag-checkbox-input").last.click()

    await page.locator("#runs-delete").click()

    await expect(page.locator("#runs-done-words")).to_have_text("1 run deleted.")
    assert len(served_api.deleted) == 1
    served_api.runs, served_api.archived = doomed, set()
    served_api.deleted.clear()


@pytest.mark.slow
async def test_a_pasted_address_shows_the_same_columns_and_filters(visit: Visit) -> None:
    page = await visit.open("/runs?since=any&cols=task,config.hidden&sort=-loss&q=gpt")

    await expect(page.locator(".ag-header-cell-text").filter(has_text="hidden")).to_have_count(1)
    await expect(page.locator("#runs-since")).to_have_value("Any time")
    await expect(page.locator("#runs-q")).to_have_value("gpt")
    assert page.url.endswith("/runs?since=any&cols=task,config.hidden&sort=-loss&q=gpt")


@pytest.mark.slow
async def test_further_filters_stay_open_while_one_is_chosen_and_are_counted(visit: Visit) -> None:
    page = await visit.open("/runs")
    box = await page.locator(".filters").bounding_box()
    assert box is not None
    assert box["height"] < 60, "the filters take more than one row"

    await page.locator(".more-filters summary").click()
    await page.locator("#runs-shelf").click()
    await page.get_by_role("option", name="Archived", exact=True).click()

    await page.wait_for_url("**/runs?shelf=archived")
    await expect(page.locator("#runs-more-words")).to_have_text("More: 1")
    await expect(page.locator("#runs-tag")).to_be_visible()


@pytest.mark.slow
async def test_the_menu_says_how_the_list_is_computed_until_it_is_closed(visit: Visit) -> None:
    page = await visit.open("/runs")
    menu, text = page.locator(".runs-title .card-menu"), page.locator(".runs-title .how-computed")

    await menu.locator("summary").click()
    await expect(text).to_be_hidden()
    await menu.get_by_text("How this is computed").first.click()

    await expect(text).to_be_focused()
    await expect(menu.locator("[data-card-action=how]")).to_be_hidden()
    await page.keyboard.press("Escape")
    await menu.locator("summary").click()
    await expect(text).to_be_hidden()
    await expect(menu.locator("[data-card-action=how]")).to_be_visible()


@pytest.mark.slow
async def test_a_view_is_saved_linked_on_every_page_and_forgotten(visit: Visit) -> None:
    page = await visit.open("/runs?decision=increase&cols=task")

    await page.get_by_text("Save view").click()
    await page.locator("#runs-save-name").fill("Too small")
    await page.locator("#runs-save").click()
    await expect(page.locator("#runs-saved")).to_have_value("Too small")
    await page.locator("#runs-decision").click()
    await page.get_by_role("option", name="Keep", exact=True).click()
    await expect(page.locator("#runs-saved")).to_have_value("")

    await page.locator(".nav").get_by_text("Overview").click()
    await page.locator(".side-views").get_by_text("Too small").click()

    await expect(page.locator("#runs-decision")).to_have_value("Raise")
    await expect(page.locator("#runs-count")).to_have_text("4")
    await page.wait_for_url("**/runs?decision=increase&cols=task&view=Too%20small")
    await page.get_by_text("Save view").click()
    await page.locator("#runs-forget").click()
    await expect(page.locator(".side-views a")).to_have_count(0)
    await page.evaluate("window.localStorage.clear()")


@pytest.mark.slow
async def test_a_phone_chooses_runs_and_an_address_holds_the_choice(visit: Visit) -> None:
    await visit.page.set_viewport_size({"width": 390, "height": 844})
    page = await visit.open("/runs?cols=task")

    await expect(page.locator(".run-line .sub").filter(has_text="Task char-lm").first).to_be_visible()
    await page.locator(".ag-row .ag-checkbox-input").nth(1).click()
    await expect(page.locator("#runs-chosen")).to_have_text("1 chosen")
    await page.wait_for_url(f"**/runs?cols=task&sel={RUNS[1].id}")

    await page.reload()
    await expect(page.locator("#runs-chosen")).to_have_text("1 chosen")
    assert await page.evaluate("document.documentElement.scrollWidth") == 390
    await page.locator(".run-line").first.click()
    await page.wait_for_selector("#run-head h1")
    await page.go_back()
    await expect(page.locator("#runs-chosen")).to_have_text("1 chosen")


@pytest.mark.slow
async def test_brackets_go_through_the_list_as_it_was_seen(visit: Visit) -> None:
    page = await visit.open("/runs?sort=name")
    names = await page.locator(".ag-row a[data-go]").evaluate_all(
        "links => links.sort((a, b) => a.closest('.ag-row').getAttribute('row-index') - "
        "b.closest('.ag-row').getAttribute('row-index')).map(one => one.getAttribute('href'))"
    )

    await page.goto(visit.address + names[3])
    await page.wait_for_selector("#run-head h1")
    await page.keyboard.press("]")
    await page.wait_for_url(f"**{names[4]}")
    await page.keyboard.press("[")
    await page.wait_for_url(f"**{names[3]}")


@pytest.mark.slow
async def test_the_list_leaves_as_a_file_with_as_many_lines_as_the_menu_says(visit: Visit) -> None:
    page = await visit.open("/runs?decision=increase")
    await page.locator(".runs-title .card-menu summary").click()
    await expect(page.locator("#runs-export-words")).to_have_text("All 4 runs as CSV")

    async with page.expect_download() as download:
        await page.locator("#runs-export").click()

    text = (await (await download.value).path()).read_text()
    assert len(text.strip().splitlines()) == 5


@pytest.mark.slow
async def test_a_run_is_found_from_any_page(visit: Visit) -> None:
    page = await visit.open("/")

    await page.keyboard.press("/")
    await page.keyboard.type("gpt")
    await page.keyboard.press("Enter")

    await page.wait_for_url("**/runs?q=gpt&since=any")
    await expect(page.locator("#runs-count")).to_have_text("2")
    await expect(page.locator("#runs-q")).to_have_value("gpt")
    await expect(page.locator("#find")).to_be_hidden()


FOCUSED = "() => document.activeElement.getAttribute('role') || document.activeElement.tagName"


@pytest.mark.slow
async def test_tab_leaves_the_table_and_arrows_lead_to_its_rows(visit: Visit) -> None:
    page = await visit.open("/runs")
    await expect(page.locator(".ag-row").first).to_be_visible()
    await page.locator("#runs-q").focus()

    seen = []
    while len(seen) < 60 and "BODY" not in seen:
        await page.keyboard.press("Tab")
        seen.append(await page.evaluate(FOCUSED))

    assert "BODY" in seen, f"Tab stays in the table: {seen[-5:]}"
    assert seen.count("gridcell") == 1
    await page.locator(".ag-header-cell").nth(1).focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/runs/0*")


@pytest.mark.slow
async def test_sparklines_are_asked_for_of_all_rows_at_once(visit: Visit, served_api: FakeApi) -> None:
    served_api.requests.clear()
    page = await visit.open("/runs")
    await expect(page.locator(".ag-row .spark").first).to_be_visible()

    asked = [r.query_params["ids"] for r in served_api.requests if r.url.path.endswith("/sparklines")]
    assert sorted(asked[0].split(",")) == sorted(run.id for run in RUNS)


CUT_CELLS = """() => [...document.querySelectorAll('.ag-row .ag-right-aligned-cell')]
  .filter((cell) => [...cell.querySelectorAll('*')].some((part) => {
    const own = part.getBoundingClientRect(), box = cell.getBoundingClientRect();
    return own.width && (own.left < box.left - 1 || own.right > box.right + 1);
  }))
  .map((cell) => cell.getAttribute('col-id') + ' ' + cell.innerText)"""
"""Numbers in the table that reach beyond their cell, which cuts them."""


@pytest.mark.slow
async def test_no_number_in_the_table_is_cut(
    visit: Visit, served_api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """262,144 that reads "62,144" is another number."""
    large = [replace(RUNS[3], number=60 + place, batch=batch) for place, batch in enumerate(LARGE)]
    monkeypatch.setattr(served_api, "runs", (*RUNS, *large))
    page = await visit.open("/runs")
    await expect(page.locator(".ag-row").get_by_text("9,437,184").first).to_be_visible()

    assert await page.evaluate(CUT_CELLS) == []
    await expect(page.locator(".ag-row").get_by_text("262,144").first).to_be_visible()
