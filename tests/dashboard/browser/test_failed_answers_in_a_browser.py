"""Each answer of the API that a page asks for fails in turn: no card is left blank without a sentence that says so."""

import re
from collections.abc import Iterator

import pytest
from playwright.async_api import Page

from dashboard_visit import BRANCH, COMPARED, CONFIGURATIONS, FINISHED, PLANNER, PUBLISHED, RUN, SWEEP
from fakes_api import FakeApi

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SHOWING = ("/", "/runs", RUN, FINISHED, "/sweeps", SWEEP, BRANCH, COMPARED, CONFIGURATIONS, PLANNER, PUBLISHED)
OTHERS = ("/reproduce", "/record", "/cost", "/learn", "/settings")
PATIENCE_MS = 12_000

CARDS = """[...document.querySelectorAll('#page .card')]
  .filter((card) => card.checkVisibility({ checkVisibilityCSS: true, checkOpacity: true }))"""
"""The visible ones."""

BLANK_CARDS = f"""() => {CARDS}
  .filter((card) => !card.querySelector('.card, .trace, .imagelayer image, td, .ag-row, li, pre'))
  .filter((card) => !/not loaded/i.test(card.innerText))
  .filter((card) => [...card.querySelectorAll('.bd, .ft')].every((part) => !part.innerText.trim()))
  .filter((card) => card.querySelector('.hd') || !card.innerText.trim())
  .map((card) => (card.querySelector('.tt') || card).innerText.trim() || card.className)"""
"""Those without anything drawn, listed or said in them; what one is called and is about says nothing."""

TOGETHER = 3
"""How many answers fail at once, where most cards stay: loading a page is what takes the time."""


@pytest.fixture(autouse=True)
def answering_again(served_api: FakeApi) -> Iterator[None]:
    served_api.failing_ends, served_api.failing_status = (), 500
    served_api.requests.clear()
    yield
    served_api.failing_ends, served_api.failing_status = (), 503


async def blank_cards(page: Page, url: str) -> list[str]:
    """What is blank once the page has had the time to say something."""
    await page.goto(url, wait_until="commit")
    await page.wait_for_selector("#page .card, #page .empty", state="attached")
    await page.wait_for_timeout(1_000)
    blank: list[str] = await page.evaluate(BLANK_CARDS)
    for _ in range(PATIENCE_MS // 1_000 if blank else 0):
        await page.wait_for_timeout(1_000)
        blank = await page.evaluate(BLANK_CARDS)
        if not blank:
            return []
    return blank


@pytest.mark.parametrize("path", [*SHOWING, *OTHERS])
async def test_no_card_is_blank_without_a_sentence_whatever_fails(
    page: Page, address: str, served_api: FakeApi, path: str
) -> None:
    assert await blank_cards(page, address + path) == [], "nothing fails"
    num_cards = await page.evaluate(f"{CARDS}.length")
    asked = sorted({called for called in served_api.paths() if called.startswith("/api/")})
    assert asked

    blank = {}
    waiting = [tuple(asked[first :: -(-len(asked) // TOGETHER)]) for first in range(-(-len(asked) // TOGETHER))]
    while waiting:
        together = waiting.pop()
        served_api.failing_ends = together
        found = await blank_cards(page, address + path)
        if len(together) > 1 and (found or 2 * await page.evaluate(f"{CARDS}.length") < num_cards):
            # what one failure takes away hides what another does to it
            waiting += [(called,) for called in together]
        elif found:
            blank[", ".join(re.sub(r"[0-9a-f-]{36}", "…", called) for called in together)] = found

    assert blank == {}
