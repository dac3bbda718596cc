"""The menu of a card says how what it shows is computed: each card has a text, and each text can be followed up."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import noisescale_dashboard
from fakes_runs import RUNS
from fakes_sweeps import SWEEPS
from noisescale_dashboard.app import page_at
from noisescale_dashboard.serving.settings import DashboardSettings
from noisescale_dashboard.shell import parts
from noisescale_dashboard.shell.how import How
from noisescale_dashboard.shell.how_computed import HOW, NOTHING_COMPUTED
from noisescale_dashboard.words.learn_sections import SECTIONS
from noisescale_dashboard.words.term import anchor
from noisescale_dashboard.words.terms import TERM_OF

REPOSITORY = Path(__file__).parents[3]
ADDRESSES = ("/", "/runs", f"/runs/{RUNS[0].id}", "/compare", "/planner", "/sweeps", f"/sweeps/{SWEEPS[0].id}")
ADDRESSES += ("/reproduce", "/record", "/cost", "/learn", "/settings")
GLOSSARY = (REPOSITORY / "docs" / "glossary.md").read_text()


def laid_out(address: str) -> str:
    parts = page_at(address, narrow=False, settings=DashboardSettings())
    return json.dumps(parts, default=lambda part: part.to_plotly_json(), ensure_ascii=False)


def cards_of_the_layouts() -> Iterator[str]:
    for address in ADDRESSES:
        yield from re.findall(r'"aria-labelledby": "([a-z-]+)-title"', laid_out(address))


def cards_in_the_source() -> Iterator[str]:
    """Cards that callbacks make, by their literal names."""
    for path in Path(noisescale_dashboard.__file__).parent.rglob("*.py"):
        yield from re.findall(r'\bcard_id="([a-z-]+)"', path.read_text())


def test_each_card_says_how_it_is_computed_and_no_text_is_left_over() -> None:
    cards = {*cards_of_the_layouts(), *cards_in_the_source()} - NOTHING_COMPUTED

    assert {"run-noise-card", "sweep-steps-card", "planner-what-if-card", "run-advice", "runs-change"} <= cards
    assert cards | {"runs-card"} == set(HOW)


@pytest.mark.parametrize("address", ADDRESSES[:-1])
def test_the_text_stands_in_the_menu_of_the_card(address: str) -> None:
    # a menu is a text in the text
    said = laid_out(address).replace('\\"', '"').replace('":"', '": "')

    assert said.count('"data-card-action": "how"') == said.count('"className": "how-computed"') > 0


@pytest.mark.parametrize(("card", "how"), HOW.items())
def test_a_text_is_short_and_can_be_followed_up(card: str, how: How) -> None:
    sentences = re.findall(r"[.](?= [A-Z]|$)", how.text)

    assert 1 <= len(sentences) <= 3, card
    assert (REPOSITORY / "docs" / how.page).is_file()
    assert all(f"`{word}`" in GLOSSARY for word in how.words), card
    assert set(how.words) <= set(TERM_OF), "each word is explained on the page Learn"
    assert how.section in SECTIONS


@pytest.mark.parametrize("card", HOW)
def test_every_card_leads_to_its_section_and_its_words_on_the_page_that_explains(card: str) -> None:
    said = json.dumps(parts.explanation(card), default=lambda part: part.to_plotly_json(), ensure_ascii=False)

    assert f'"/learn#{HOW[card].section}"' in said
    assert all(f'"/learn#{anchor(key)}"' in said for key in HOW[card].terms)
    assert "docs/" not in said
    assert ".md" not in said


def test_a_card_without_a_text_cannot_be_made() -> None:
    made: dict[str, Any] = {"title": "Title", "subtitle": "", "body": "", "card_id": "unknown-card"}

    with pytest.raises(KeyError, match="unknown-card"):
        parts.card(**made)
