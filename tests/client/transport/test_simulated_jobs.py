"""Jobs behind a proxy that answers every status with every body, for seconds to minutes, in simulated time."""

import pytest

from foreign_bugs import BUGS
from simulated_jobs import BODY_LIMITS, Story, cards_of, stories, told

FEW = 15
MANY = 300


def bad_outcomes(chosen: list[Story], folder) -> list[tuple[Story, object]]:
    found = [(story, told(story, folder / str(at))) for at, story in enumerate(chosen)]
    return [(story, outcome) for story, outcome in found if not is_good(story, outcome)]


def is_good(story, outcome) -> bool:
    """Every record is stored once or declared; where only foreign answers came, every record is stored."""
    return outcome.is_good and (not story.is_foreign or outcome.num_stored == outcome.num_logged)


@pytest.mark.slow
@pytest.mark.thorough
def test_behind_a_proxy_that_answers_anything_every_record_is_stored_once_or_declared(tmp_path):
    quick = [story for story in stories(2 * FEW, seed=7) if story.body_limit != BODY_LIMITS[1]]

    assert bad_outcomes(quick[:FEW], tmp_path) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_three_hundred_jobs_with_every_status_and_body(tmp_path):
    chosen = stories(MANY)
    outcomes = [told(story, tmp_path / str(at)) for at, story in enumerate(chosen)]

    assert [one for one in zip(chosen, outcomes, strict=True) if not is_good(*one)] == []
    answered = {card for outcome in outcomes for card in outcome.answered}
    assert len(answered) > 1000, "of 1,599 pairs of a status and a kind of body"


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(tmp_path, name):
    bug = BUGS[name]
    with bug.planted():
        found = any(
            not is_good(story, told(story, tmp_path / str(at)))
            for at, story in enumerate(stories(MANY, 11, cards_of(bug.statuses)))
        )

    assert found
