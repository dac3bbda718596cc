"""The page that explains, and the words that lead to it."""

import json
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from fakes_runs import RUNS, run_json
from noisescale_dashboard.answers.common import run
from noisescale_dashboard.app import page_at
from noisescale_dashboard.figures.gradient_arrows import batch_gradients
from noisescale_dashboard.learn import example as examples
from noisescale_dashboard.learn import page as learn
from noisescale_dashboard.serving.settings import DashboardSettings
from noisescale_dashboard.shell import shell
from noisescale_dashboard.shell.explained import WORDS, explained, term, tip_id
from noisescale_dashboard.shell.parts import card, fact
from noisescale_dashboard.words import glossary
from noisescale_dashboard.words.learn_sections import SECTIONS
from noisescale_dashboard.words.term import anchor
from noisescale_dashboard.words.terms import TERM_OF, TERMS

GLOSSARY = (Path(__file__).parents[3] / "docs" / "glossary.md").read_text()


def said(parts: Any) -> str:
    text = json.dumps(parts, default=lambda part: part.to_plotly_json(), ensure_ascii=False)
    # what never changes is a text in the text
    text = text.replace('\\"', '"').replace('":"', '": "')
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{WORD JOINER}", "")


def learn_page() -> str:
    return said(page_at("/learn", narrow=False, settings=DashboardSettings()))


def test_every_term_and_every_section_has_one_anchor_and_no_two_share_it() -> None:
    anchors = Counter(re.findall(r'"id": "([a-z0-9-]+)"', learn_page()))

    assert all(anchors[anchor(key)] == 1 for key in TERMS)
    assert all(anchors[key] == 1 for key in SECTIONS)
    assert max(anchors.values()) == 1
    assert len({term.word for term in TERMS.values()}) == len(TERMS)


def test_every_link_within_the_page_leads_somewhere() -> None:
    page = learn_page()

    for place in re.findall(r'"/learn#([a-z0-9-]+)"', page):
        assert f'"id": "{place}"' in page, place


def test_a_tooltip_is_one_sentence_that_needs_no_symbol() -> None:
    for found in TERMS.values():
        assert found.sentence.count(". ") == 0, found.word
        assert found.sentence.endswith("."), found.word
        assert not set(found.sentence) & set("φκΣ²÷"), found.word


def test_every_word_with_a_tooltip_is_explained() -> None:
    assert set(WORDS.values()) <= set(TERMS)


def test_the_sentence_of_every_term_is_there_once_for_who_hears_the_page() -> None:
    frame = said(shell.layout())

    assert all(frame.count(f'"id": "{tip_id(key)}"') == 1 for key in TERMS)
    assert f'"aria-describedby": "{tip_id("kappa")}"' in said(term("kappa"))


@pytest.mark.parametrize(
    ("label", "key"),
    [("Noise scale", "noise_scale"), ("Noise scale there", "noise_scale"), ("Step efficiency", "step_efficiency"),
     ("Example efficiency", "example_efficiency"), ("Resolved", "resolved"), ("κ there", "kappa")],
)  # fmt: skip
def test_a_key_figure_explains_its_label_where_it_stands(label: str, key: str) -> None:
    shown = said(fact(label, "1"))

    assert TERMS[key].sentence in shown
    assert f'"/learn#{anchor(key)}"' in shown


def test_a_card_explains_the_terms_of_its_title_and_its_subtitle_once() -> None:
    shown = said(card("Noise scale of noise scales", "tr Σ and |G|²", "", card_id="run-terms-card"))
    head = shown[: shown.index("Export, data")]

    places = re.findall(r'"/learn#([a-z-]+)"', head)
    assert places == ["noise-scale", "trace-cov", "grad-sq-norm"]


@pytest.mark.parametrize(("text", "places"), [("Unresolved steps", 0), ("ΔκB", 0), ("not resolved", 1), ("Loss", 0)])
def test_a_word_is_explained_whole_or_not_at_all(text: str, places: int) -> None:
    parts = explained(text)

    assert sum(not isinstance(part, str) for part in parts) == places
    assert "".join(part if isinstance(part, str) else part.children for part in parts) == text


@pytest.mark.parametrize(
    ("address", "keys"),
    [
        (f"/runs/{RUNS[0].id}", {"noise_scale", "trace_cov", "interval"}),
        ("/compare", {"noise_scale"}),
        ("/planner", {"binding_limit", "schedule"}),
        ("/sweeps", {"sweep"}),
        ("/reproduce", {"noise_scale", "critical_batch"}),
        ("/record", {"interval"}),
    ],
)
def test_a_page_explains_its_terms_where_they_are_first_met(address: str, keys: set[str]) -> None:
    page = said(page_at(address, narrow=False, settings=DashboardSettings()))
    met = set(re.findall(r'"aria-describedby": "tip-([a-z-]+)"', page))

    assert {anchor(key) for key in keys} <= met


def test_a_word_without_a_meaning_is_refused() -> None:
    with pytest.raises(KeyError):
        term("made_up")


def test_the_glossary_says_what_the_page_says() -> None:
    assert glossary.rewritten(GLOSSARY) == GLOSSARY, (
        "run python -m noisescale_dashboard.words.glossary docs/glossary.md"
    )


@pytest.mark.parametrize("name", TERM_OF)
def test_a_term_names_what_the_glossary_has(name: str) -> None:
    first_column = [row.split("|")[1] for row in GLOSSARY.partition(glossary.TITLE)[0].splitlines() if row[:1] == "|"]

    assert any(name in cell for cell in first_column)


def test_no_word_of_the_glossary_belongs_to_two_terms() -> None:
    assert len(TERM_OF) == sum(len(term.named) for term in TERMS.values())


async def test_a_run_of_this_server_is_the_example(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.runs = (replace(RUNS[0], diverged_at=3), RUNS[1])

    changed = await callbacks.post("learn-example.children", {"learn-asked.data": 1, "narrow.data": False})

    assert RUNS[1].name in said(changed["learn-example"]["children"])
    assert changed["learn-run"]["data"]["run_id"] == RUNS[1].id
    assert changed["learn-noise-figures"]["data"]["noise"]["data"]


async def test_without_a_run_all_is_explained_on_a_made_up_one(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.runs = ()

    changed = await callbacks.post("learn-example.children", {"learn-asked.data": 1, "narrow.data": False})

    assert "A made-up run" in said(changed["learn-example"]["children"])
    assert changed["learn-noise-figures"]["data"]["noise"]["data"]


async def test_the_slider_moves_the_batch_along_the_curve(callbacks: Callbacks) -> None:
    kept = examples.stored(examples.MADE_UP)

    changed = await callbacks.post("learn-told.children", {"learn-octaves.value": 1, "learn-run.data": kept})

    assert changed["learn-batch"]["children"] == "2,048"
    assert "33 % of each example" in said(changed["learn-told"]["children"])


def test_the_example_says_what_the_formulas_say() -> None:
    """Eqs. 2.5 to 2.7 at B = 256 and a noise scale of 1,024."""
    one = run({**run_json(RUNS[0]), "global_batch": 256.0})
    one = replace(one, noise_scale=replace(one.noise_scale, value=1024.0))

    for example in (examples.newest_clear([one]), examples.newest_clear([])):
        told = said(learn.said(example))
        for number in ("80 %", "20 %", "40 % fewer steps", "20 % more examples"):
            assert number in told


@pytest.mark.parametrize("ratio", [0.25, 1.0, 16.0])
def test_the_arrows_scatter_by_the_noise_of_their_batch(ratio: float) -> None:
    """Variance tr Σ ÷ B = |G|² ÷ ratio in all, around the true gradient (1, 0)."""
    ends = batch_gradients(ratio)
    variance = sum((x - 1) ** 2 + y**2 for x, y in ends) / len(ends)

    assert variance == pytest.approx(1 / ratio, rel=0.03)
    assert sum(x for x, _ in ends) / len(ends) == pytest.approx(1, abs=0.05 / ratio**0.5)


def test_the_made_up_run_ends_in_what_is_said_of_it() -> None:
    points = examples.made_up_series().points

    assert points.value[-1] == examples.MADE_UP.noise_scale.value
    assert all(first < second for first, second in pairwise(points.step))
