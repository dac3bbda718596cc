"""How high a run's recommendation is, and how many numbers it says at once."""

import re
from collections.abc import Sequence

from playwright.async_api import Locator, Page, expect

MOST_PIXELS, MOST_NUMBERS = 420, 14

SAID = """(card) => {
  const walker = document.createTreeWalker(card, NodeFilter.SHOW_TEXT), said = [];
  while (walker.nextNode()) {
    const text = walker.currentNode;
    if (!text.parentElement.closest(".st, .sr-only, details, [hidden]")) said.push(text.data);
  }
  return said;
}"""
"""Whatever stands in the card, wherever it came from, but for the step at its top and what is folded away."""

NUMBER = r"\d[\d.,]*(?:e[-−]?\d+)?"
BETWEEN = rf"[−+]?{NUMBER} ?[k%×M]* (?:–|to) [−+]?{NUMBER} ?[k%×M]*"


async def shown_card(page: Page, url: str) -> tuple[int, int]:
    """Height in pixels, and how many numbers, of the recommendation at this address when all of the page has come."""
    await page.goto(url)
    card = page.locator(".card.rec")
    await expect(card.locator(".big")).not_to_be_empty()
    await page.wait_for_load_state("networkidle")
    return await height_of(card), numbers_of(await card.evaluate(SAID))


async def height_of(card: Locator) -> int:
    """In pixels."""
    box = await card.bounding_box()
    assert box is not None
    return round(box["height"])


def numbers_of(texts: Sequence[str]) -> int:
    """How many numbers are said; an interval goes with the value beside it."""
    return sum(len(re.findall(NUMBER, re.sub(BETWEEN, "", text.replace("\u00a0", " ")))) for text in texts)
