"""The questions of docs/questions.md: each path from the first page, click by click, to words that stand there."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from served_app import TOKEN

pytestmark = [pytest.mark.processes, pytest.mark.browser, pytest.mark.slow]

TABLE = Path(__file__).parents[2] / "docs" / "questions.md"
MOST_CLICKS = 2
ROLES = ("link", "button", "tab", "radio")


@dataclass(frozen=True, slots=True)
class Question:
    """A row of the table."""

    text: str
    clicks: tuple[str, ...]
    answer: str


def questions() -> list[Question]:
    rows = [line.strip("|").split("|") for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    found = [(text.strip(), re.findall(r"`([^`]+)`", clicks), answer.strip(" `")) for text, clicks, answer in rows[1:]]
    return [Question(text, tuple(clicks), answer) for text, clicks, answer in found]


@pytest.fixture(scope="module")
async def reader(demo_url: str, browser: Browser) -> AsyncIterator[Page]:
    """A reader who is logged in."""
    context = await browser.new_context(viewport={"width": 1440, "height": 1000}, reduced_motion="reduce")
    page = await context.new_page()
    await page.goto(f"{demo_url}/login?token={TOKEN}&next=/")
    yield page
    await context.close()


def what_says(page: Page, words: str) -> Locator:
    """What can be clicked and has these words or this name, of what is seen; a field with them, else."""
    found = page.get_by_placeholder(words, exact=True)
    for role in ROLES:
        found = found.or_(page.get_by_role(role, name=words, exact=True))  # type: ignore[arg-type]
    named = page.locator(f'summary[aria-label="{words}"], input[value="{words}"]')
    # what unfolds, and the words of a switch, whose button nobody sees
    whole = re.compile(rf"^\s*{re.escape(words)}\s*$")
    written = page.locator("summary, .mantine-SegmentedControl-label", has_text=whole)
    return found.or_(named).or_(written).filter(visible=True).first


def test_the_twenty_questions_and_twenty_more_are_at_most_two_clicks_away() -> None:
    asked = questions()

    assert len({one.text for one in asked}) == 40
    assert all(len(one.clicks) <= MOST_CLICKS for one in asked)


@pytest.mark.parametrize("question", questions(), ids=lambda one: one.text)
async def test_a_question_is_answered_where_the_table_says(demo_url: str, reader: Page, question: Question) -> None:
    await reader.goto(demo_url, wait_until="domcontentloaded")

    for words in question.clicks:
        await what_says(reader, words).click()

    await expect(reader.get_by_text(question.answer).filter(visible=True).first).to_be_visible(timeout=20_000)
