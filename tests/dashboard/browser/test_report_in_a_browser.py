"""A report in Chromium: as a page, as a file without any server, and on paper."""

import re
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from axe_findings import serious_findings
from dashboard_visit import RUN, Visit
from fakes_api import FakeApi
from fakes_runs import HOSTILE, RUNS, FakeRun
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.app import create_app
from noisescale_dashboard.serving.settings import DashboardSettings

pytestmark = pytest.mark.browser
FULL = (
    "pref=0.7&max_hours=18&num_devices=8&examples_per_device=64&max_usd=400&max_steps=10000&max_examples=1000000000"
    "&max_micro_batches=8&usd_per_device_hour=3&spot_price_share=0.4&interruptions_per_device_hour=0.01"
)
CAUTION = (
    "Ranks see different data, so that the noise scale is overstated by what they differ in, which grows with the "
    "group: shuffle the data over the ranks, or group the small batches inside one rank before they are compared."
)
CROWDED = replace(
    RUNS[0],
    notices=tuple((f"code_{i}", f"{i} {CAUTION}") for i in range(6)),
    measured={**RUNS[0].measured, "notes": [f"{i} {CAUTION}" for i in range(9, 25)]},
)
UNRESOLVED = next(run for run in RUNS if not run.resolved)
HOSTILE_RUN = next(run for run in RUNS if run.name == HOSTILE)
NOTES = ["</script></style><img src=x onerror=alert(1)>" + "x" * 1_000_000, *(f"note {i}" for i in range(50))]


async def report_file(folder: Path, run_id: str, query: str = "", api: FakeApi | None = None) -> str:
    """The address of a report in a file."""
    client = ApiClient(base_url="http://api", transport=httpx.ASGITransport(app=(api or FakeApi()).app))
    transport = httpx.ASGITransport(app=create_app(DashboardSettings(), client))
    async with httpx.AsyncClient(base_url="http://dashboard", transport=transport) as opened:
        answer = await opened.get(f"/runs/{run_id}/report?{query}")
    file = folder / "report.html"
    file.write_bytes(answer.content)
    return file.as_uri()


async def num_pages(page: Page) -> int:
    """Sheets of paper that it prints on."""
    printed = await page.pdf(prefer_css_page_size=True)
    return max(int(number) for number in re.findall(rb"/Count (\d+)", printed))


@pytest.mark.parametrize(
    ("run", "query"),
    [
        pytest.param(CROWDED, FULL, marks=pytest.mark.slow),
        pytest.param(UNRESOLVED, "", marks=pytest.mark.slow),
        (HOSTILE_RUN, ""),
    ],
    ids=["crowded", "open", "hostile"],
)
async def test_a_file_shows_everything_without_a_request_and_prints_on_two_pages(
    first_page: Page, tmp_path: Path, run: FakeRun, query: str
) -> None:
    address = await report_file(tmp_path, run.id, query, FakeApi(runs=(run,)))
    visit = Visit(first_page, address)
    dialogs: list[str] = []
    first_page.on("dialog", lambda dialog: dialogs.append(dialog.message))

    await first_page.goto(address)

    await expect(first_page.locator("h1")).to_be_visible()
    assert await first_page.evaluate("document.fonts.check('12px Inter')")
    assert (visit.complaints, visit.strangers(), dialogs) == ([], set(), [])
    assert await num_pages(first_page) == 2


async def test_hostile_names_and_notes_are_text_in_the_file(first_page: Page, tmp_path: Path) -> None:
    run = replace(HOSTILE_RUN, measured={"notes": NOTES, "estimator": "micro_batches"})
    address = await report_file(tmp_path, run.id, api=FakeApi(runs=(run,)))
    visit = Visit(first_page, address)

    await first_page.goto(address)

    assert HOSTILE in await first_page.locator(".described").inner_text()
    assert "</script></style><img src=x" in await first_page.locator("main").inner_text()
    assert await first_page.locator("main img, main script").count() == 0
    assert (visit.complaints, visit.strangers()) == ([], set())


@pytest.mark.parametrize("width", [390, pytest.param(1440, marks=pytest.mark.slow)])
async def test_axe_finds_nothing_serious_and_nothing_scrolls_sideways(
    first_page: Page, tmp_path: Path, width: int
) -> None:
    await first_page.set_viewport_size({"width": width, "height": 900})
    await first_page.goto(await report_file(tmp_path, RUNS[0].id, FULL))

    assert await serious_findings(first_page) == []
    assert await first_page.evaluate("document.documentElement.scrollWidth") == width
    # no column is cut: what a phone has no room for is left out
    scroll = "(one) => [one.scrollWidth, one.clientWidth]"
    inner, outer = await first_page.locator(".scroll").evaluate(scroll)
    assert inner <= outer
    assert "learning rate" in await first_page.locator(".data thead").inner_text()
    figure = first_page.locator(".narrow svg" if width == 390 else ".wide svg")
    await expect(figure).to_be_visible()


@pytest.mark.slow
async def test_nothing_runs_where_scripts_are_switched_off(browser: Browser, tmp_path: Path) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()

    await page.goto(await report_file(tmp_path, RUNS[0].id))

    assert "Raise the batch to 1,536" in await page.locator("h1").inner_text()
    assert await page.locator(".wide svg text").count() > 10
    await context.close()


@pytest.mark.slow
async def test_the_links_of_a_runs_page_open_the_report_at_its_preference_and_limits(page: Page, address: str) -> None:
    visit = Visit(page, address)
    await visit.open(f"{RUN}?pref=0.7&num_devices=8")
    link = page.locator("#run-advice-report")
    await expect(link).to_have_attribute("href", f"{RUN}/report?pref=0.7&num_devices=8")

    async with page.context.expect_page() as opened:
        await link.click()
    report = await opened.value

    await expect(report.locator("h1")).to_contain_text(", your memory limit")
    await expect(page.locator("#run-report")).to_have_attribute("href", f"{RUN}/report?pref=0.7&num_devices=8")
    await report.close()
    assert (visit.complaints, visit.strangers()) == ([], set())
