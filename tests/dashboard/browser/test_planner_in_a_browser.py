"""The planner in Chromium: limits in fields, sliders and the address, both ways, on a screen and on a phone."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from axe_findings import DRAWINGS, serious_findings
from dashboard_visit import PLANNER, Visit, type_in_one_go
from fakes_api import FakeApi
from fakes_runs import RUNS

pytestmark = pytest.mark.browser
LIMITS = "deadline_h=18&budget_usd=700"


@pytest.fixture(scope="module")
async def opened(reader: BrowserContext, address: str) -> AsyncIterator[Visit]:
    """A plan that is loaded once, for tests that leave it as they found it."""
    visit = Visit(await reader.new_page(), address)
    await visit.open(PLANNER)
    yield visit
    assert (visit.complaints, visit.strangers()) == ([], set())
    await visit.page.close()


def field(name: str) -> str:
    return f"#planner-f-{name}"


async def test_an_address_fills_fields_and_sliders(opened: Visit) -> None:
    page = opened.page

    await expect(page.locator("h1")).to_have_text("Batch 1,536 on 24 devices: 10.3 h for $596")
    await expect(page.locator(field("deadline_h"))).to_have_value("18")
    await expect(page.locator(field("budget_usd"))).to_have_value("700 $")
    place = await page.locator("#planner-s-deadline_h [role=slider]").get_attribute("aria-valuenow")
    assert 20 < int(place or 0) < 60
    assert opened.page.url.endswith(PLANNER)


@pytest.mark.slow
async def test_a_number_goes_into_the_address_and_back_takes_it_out(opened: Visit, served_api: FakeApi) -> None:
    page = opened.page
    served_api.requests.clear()

    await page.locator(field("devices")).fill("16")
    await page.locator(field("devices")).press("Enter")

    await expect(page.locator("h1")).to_have_text("Batch 1,024 on 16 devices: 12.9 h for $495")
    asked = {path for path in served_api.paths() if path.startswith("/api/")}
    assert asked == {"/api/v1/tradeoff"}, "the run and its task are known"
    assert page.url.endswith(f"{LIMITS}&devices=16")
    await page.go_back()
    await expect(page.locator("h1")).to_contain_text("Batch 1,536")
    await expect(page.locator(field("devices"))).to_have_value("")
    await page.go_forward()
    await expect(page.locator("h1")).to_contain_text("Batch 1,024")
    await page.go_back()
    await expect(page.locator("h1")).to_contain_text("Batch 1,536")


async def test_a_plan_takes_a_screen_and_a_half_and_its_schedules_stand_behind_a_tab(opened: Visit) -> None:
    page = opened.page
    await expect(page.locator("#planner-table")).to_be_visible()
    await expect(page.locator("#planner-policies")).to_be_hidden()

    heights = [await page.evaluate("document.documentElement.scrollHeight")]
    await page.get_by_role("tab", name="Schedules").click()
    await expect(page.locator("#planner-policies")).to_contain_text("Constant batch")
    heights.append(await page.evaluate("document.documentElement.scrollHeight"))
    await page.get_by_role("tab", name="By batch size").click()

    assert max(heights) <= 1.5 * 900, heights


@pytest.mark.slow
async def test_a_slider_moves_its_limit_by_the_keyboard_and_its_right_end_is_no_limit(opened: Visit) -> None:
    page = opened.page
    slider = page.locator("#planner-s-budget_usd [role=slider]")

    await slider.focus()
    await page.keyboard.press("End")

    await expect(page.locator(field("budget_usd"))).to_have_value("")
    await expect(page.locator("#planner-lede")).not_to_contain_text("both limits")
    assert "budget_usd" not in page.url
    await page.locator(field("budget_usd")).fill("700")
    await page.locator(field("budget_usd")).press("Enter")
    await expect(page.locator("#planner-lede")).to_contain_text("both limits")
    assert page.url.endswith(PLANNER)


@pytest.mark.slow
async def test_the_deadline_may_be_read_and_written_in_days(opened: Visit) -> None:
    page = opened.page

    await page.locator("#planner-unit").click()
    await page.get_by_role("option", name="days").click()

    await expect(page.locator(field("deadline_h"))).to_have_value("0.75")
    assert "deadline_h=18" in page.url
    await page.locator("#planner-unit").click()
    await page.get_by_role("option", name="h", exact=True).click()
    await expect(page.locator(field("deadline_h"))).to_have_value("18")


@pytest.mark.slow
async def test_the_axis_of_costs_is_in_the_address(opened: Visit) -> None:
    page = opened.page

    await page.locator("#planner-y").get_by_text("Device-hours").click()

    await expect(page.locator("#planner-pareto .ytick", has_text="$")).to_have_count(0)
    assert "y=device_hours" in page.url
    await page.go_back()
    await expect(page.locator("#planner-pareto .ytick", has_text="$500")).to_have_count(1)


@pytest.mark.slow
async def test_the_next_run_of_the_task_can_be_planned_instead(opened: Visit) -> None:
    page = opened.page

    await page.locator("#planner-run").click()
    await page.get_by_role("option", name="The next run").click()

    await expect(page.locator(".crumb-end")).to_have_text(RUNS[0].task)
    assert f"project=demo&task={RUNS[0].task}" in page.url
    assert "run=" not in page.url
    await page.locator("#planner-target").click()
    await page.get_by_role("option", name="loss 3").click()
    await expect(page.locator("#planner-limits-card-subtitle")).to_contain_text("to loss 3")
    assert "target=3&" in page.url
    await page.go_back()
    await expect(page.locator("#planner-target")).to_have_value("The usual one")
    await page.go_back()
    await expect(page.locator(".crumb-end")).to_have_text(RUNS[0].name)


@pytest.mark.slow
async def test_a_refused_number_is_said_beside_its_field_and_the_plan_stays(page: Page, address: str) -> None:
    visit = Visit(page, address)
    await visit.open(PLANNER)

    await page.locator(field("deadline_h")).fill("-3")
    await page.locator(field("deadline_h")).press("Enter")

    await expect(page.locator(".planner-panel .mantine-InputWrapper-error")).to_have_text(
        "Input should be greater than 1e-09"
    )
    assert await page.locator("#planner-pareto .trace").count() > 3
    await page.locator("#planner-clear").click()
    await expect(page.locator(".planner-panel .mantine-InputWrapper-error")).to_have_count(0)
    await page.wait_for_url(f"**/planner?run={RUNS[0].id}")


@pytest.mark.slow
async def test_an_address_shows_the_same_in_a_second_browser(opened: Visit, first_page: Page, address: str) -> None:
    visit = Visit(first_page, address)

    await visit.open(PLANNER + "&spot=1&stops=0.1&pref=0.8")

    said = await first_page.locator("h1").text_content()
    assert said != await opened.page.locator("h1").text_content()
    await expect(first_page.locator("#planner-pref-word")).to_have_text("80 % towards fewer steps")
    await expect(first_page.locator(field("stops"))).to_have_value("0.1")
    await expect(first_page.locator("#planner-pareto .annotation-text", has_text="on demand")).to_have_count(1)
    assert (visit.complaints, visit.strangers()) == ([], set())


@pytest.mark.slow
async def test_a_bare_address_plans_the_newest_task_and_keys_lead_here(page: Page, address: str) -> None:
    visit = Visit(page, address)
    await page.goto(f"{address}/runs")
    await page.wait_for_selector(".ag-row")

    await type_in_one_go(page, "g", "p")

    await expect(page.locator("h1")).to_contain_text("Batch 1,536")
    await expect(page.locator("#planner-run")).to_have_value("The next run")
    assert (visit.complaints, visit.strangers()) == ([], set())


@pytest.mark.slow
async def test_on_a_phone_limits_come_from_below_read_well_in_both_themes_and_go_with_escape(
    browser: Browser, address: str
) -> None:
    context = await browser.new_context(viewport={"width": 390, "height": 844}, reduced_motion="reduce")
    visit = Visit(await context.new_page(), address)
    page = await visit.open(PLANNER + "&spot=1")
    await expect(page.locator("#planner-sheet")).not_to_be_visible()
    await page.locator("[data-planner-sheet=open]").click()
    await page.evaluate("document.querySelectorAll('.planner-panel details').forEach((one) => { one.open = true; })")

    await page.locator(field("devices")).fill("16")
    await page.locator(field("devices")).press("Enter")

    await expect(page.locator("h1")).to_contain_text("16 devices")
    for _ in ("light", "dark"):
        assert await serious_findings(page, DRAWINGS) == []
        await page.evaluate("document.getElementById('theme-toggle').click()")
    assert await page.evaluate("document.documentElement.scrollWidth") == 390
    await page.keyboard.press("Escape")
    await expect(page.locator("#planner-sheet")).not_to_be_visible()
    assert (visit.complaints, visit.strangers()) == ([], set())
    await context.close()
