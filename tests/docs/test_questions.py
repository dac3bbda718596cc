"""Twenty questions of a fresh reader: each has a page that answers it, and the page holds the sentence that does."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUESTIONS = tomllib.loads((ROOT / "tests/docs/questions.toml").read_text())["question"]


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_there_are_twenty_questions_and_each_is_asked_once() -> None:
    assert len({question["ask"] for question in QUESTIONS}) == len(QUESTIONS) >= 20
    assert all(question["answer"] for question in QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS, ids=[question["ask"][:40] for question in QUESTIONS])
def test_a_page_answers_the_question(question: dict[str, str]) -> None:
    page = ROOT / question["page"]

    assert plain(question["key"]) in plain(page.read_text()), question["ask"]


@pytest.mark.parametrize("page", sorted({question["page"] for question in QUESTIONS}))
def test_a_reader_can_get_to_the_page_from_the_first_one(page: str) -> None:
    """By links and names of pages alone, starting at README."""
    reached, waiting = set(), ["README.md"]
    while waiting:
        here = waiting.pop()
        if here in reached:
            continue
        reached.add(here)
        text, folder = (ROOT / here).read_text(), (ROOT / here).parent
        named = [folder / one for one in re.findall(r"\]\(([\w./-]+\.md)", text)]
        named += [ROOT / one for one in re.findall(r"`(docs/[\w/]+\.md)`", text)]
        waiting += [str(one.resolve().relative_to(ROOT)) for one in named if one.exists()]

    assert page in reached
