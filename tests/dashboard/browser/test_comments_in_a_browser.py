"""Comments and the pinned baseline in Chromium: written, changed, deleted, pinned, and hidden from guests."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import BrowserContext, expect

from dashboard_visit import Visit
from fakes_api import FakeApi
from fakes_comments import FOREIGN

pytestmark = pytest.mark.browser
RUN = "/runs/00000000-0000-4000-8000-000000000001"


@pytest.fixture
async def visit(reader: BrowserContext, address: str, served_api: FakeApi) -> AsyncIterator[Visit]:
    served_api.comments, served_api.baseline_id = [dict(FOREIGN)], None
    opened = Visit(await reader.new_page(), address)
    yield opened
    served_api.failing_ends, served_api.failing_status, served_api.baseline_id = (), 503, None
    await opened.page.close()


async def test_a_comment_with_a_mention_is_written_changed_and_deleted(visit: Visit, served_api: FakeApi) -> None:
    page = await visit.open(RUN)
    field, said = page.get_by_role("textbox", name="Comment"), page.locator("#run-comments")
    await expect(said.locator(".mention")).to_have_text("@Ada Lovelace")

    await field.fill("too large,")
    await page.get_by_role("button", name="@Grace").click()
    await expect(field).to_have_value("too large, @Grace ")
    await page.get_by_role("button", name="Comment", exact=True).click()
    await expect(said.locator(".comment").first).to_contain_text("too large, @Grace")
    await expect(field).to_have_value("")

    await said.get_by_role("button", name="Edit “too large").click()
    await field.fill("far too large")
    await page.get_by_role("button", name="Save", exact=True).last.click()
    await expect(said.locator(".comment").first).to_contain_text("far too large")
    await expect(page.get_by_role("button", name="Comment", exact=True)).to_be_visible()

    delete = said.locator("[data-comment-delete]").first
    await delete.click()
    await expect(delete).to_have_text("Delete for good?", use_inner_text=True)
    await expect(delete).to_have_attribute("aria-label", "Delete “far too large” for good?")
    assert len(served_api.comments) == 2
    await delete.click()
    await expect(said.locator(".comment")).to_have_count(1)
    assert (visit.complaints, visit.strangers()) == ([], set())


@pytest.mark.slow
async def test_a_run_is_pinned_and_says_so(visit: Visit, served_api: FakeApi) -> None:
    page = await visit.open(RUN)

    await page.get_by_role("button", name="Pin as baseline").click()

    await expect(page.locator("#run-head .chip.baseline")).to_have_text("Baseline")
    await expect(page.get_by_role("button", name="Unpin baseline")).to_be_visible()
    assert served_api.baseline_id == RUN.removeprefix("/runs/")
    await page.goto(page.url.replace(RUN, "/runs"))
    await expect(page.locator(".pinned-run")).to_have_count(1)


@pytest.mark.slow
async def test_guests_see_no_button_that_would_be_refused_them(visit: Visit, served_api: FakeApi) -> None:
    served_api.failing_ends, served_api.failing_status = ("/me", "/comments", "/projects"), 403

    page = await visit.open(RUN)
    await expect(page.locator("#shell")).to_have_class("shell guest by-link")

    for name in ("Edit", "Share", "Pin as baseline", "Settings", "Views", "Comments"):
        assert [one for one in await page.get_by_text(name, exact=True).all() if await one.is_visible()] == [], name
    await expect(page.get_by_placeholder("Find a run")).to_be_hidden()
    await expect(page.get_by_role("link", name="Report")).to_be_visible()
