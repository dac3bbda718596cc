"""A noise scale from the first steps of a run is right for these and wrong for the plan: it says so."""

from dataclasses import replace

import pytest

from noisescale_core.advice.early import Before, caution, why_early
from noisescale_core.advice.parts.parts import RunSoFar, SpentPoint
from noisescale_core.advice.recommendation import recommend
from noisescale_core.estimators.uncertainty import NOTHING_MEASURED, State

NOW = replace(
    NOTHING_MEASURED, state=State.RESOLVED, value=1.44, low=1.2, high=1.8, z=17.0, num_updates=16, num_blocks=16,
    reason=None,
)  # fmt: skip
"""As nanoGPT's after 40 steps."""

EQUAL = Before(19, 1.4, 1.7)


def at(steps_done, *, planned=None, before=EQUAL, now=NOW):
    return why_early(now, before, steps_done=steps_done, planned_steps=planned)


@pytest.mark.parametrize(("steps_done", "is_early"), [(40, True), (249, True), (250, False), (4_000, False)])
def test_before_a_twentieth_of_the_plan_a_number_is_early(steps_done, is_early):
    assert (at(steps_done, planned=5_000) is not None) == is_early


def test_what_is_said_names_the_share_of_the_plan_and_when_to_look_again():
    found = at(40, planned=5_000)

    assert found.clause == "early: 0.8 % of the plan, and it rises while a run is young"
    assert found.sentence.endswith("holds for the steps at hand and not for the plan.")
    assert found.way_out == "Look again at step 250."


@pytest.mark.parametrize(("steps_done", "is_early"), [(0, False), (8, True), (31, True), (32, False), (5_000, False)])
def test_without_a_plan_two_windows_show_whether_it_rises(steps_done, is_early):
    """0: nobody knows how many steps there were."""
    assert (at(steps_done) is not None) == is_early


@pytest.mark.parametrize(
    ("before", "is_rising"),
    [
        (Before(19, 0.72, 1.1), True),
        (Before(19, 0.73, 1.1), False),  # less than twice
        (Before(19, 0.3, 1.2), False),  # within both intervals
        (Before(19, None, None), False),
        (Before(19, 5.0, 9.0), False),  # falling
        (None, False),
    ],
)
def test_twice_the_value_beyond_both_intervals_is_rising(before, is_rising):
    assert (at(40, before=before) is not None) == is_rising


def test_past_half_of_the_plan_the_steps_do_not_double_again():
    risen = Before(999, 0.1, 0.2)

    assert at(2_499, planned=5_000, before=risen).clause == "rising: about 10 × since step 999"
    assert at(2_500, planned=5_000, before=risen) is None


def test_without_a_number_there_is_nothing_to_say_it_of():
    assert at(40, planned=5_000, now=NOTHING_MEASURED) is None


def young(**changes):
    """40 steps in five stretches, the noise scale three times as large at each."""
    spent = [SpentPoint(512.0, 64.0, 0.02 * 3**k, 0.016 * 3**k, 0.026 * 3**k, num_steps=8.0) for k in range(5)]
    fields = {"noise_scale": NOW, "batch_size": 64.0, "steps_done": 40, "spent": spent, "optimizer": "AdamW"}
    return RunSoFar(**(fields | changes))


def test_the_card_says_first_that_the_noise_scale_is_rising_and_since_when():
    answer = recommend(young())

    assert answer.headline.startswith("Lower the batch") or answer.headline.startswith("Probably lower")
    assert answer.warnings[0].code == "early_in_run"
    assert answer.warnings[0].text.startswith("The noise scale has risen about 20 × since step 15 and may go on")


def test_a_run_that_has_ended_is_not_told_to_look_again():
    assert caution(young()).text.endswith("Look again at step 80, or plan a batch that grows.")
    assert caution(young(has_ended=True)).text.endswith("holds for the steps at hand and not for a longer run.")


@pytest.mark.parametrize(
    "changes",
    [{"spent": ()}, {"planned_steps": 60}, {"noise_scale": NOTHING_MEASURED}],
    ids=["nothing known of before", "late in the plan", "no number"],
)
def test_no_other_card_says_so(changes):
    assert caution(young(**changes)) is None
    assert "early_in_run" not in {one.code for one in recommend(young(**changes)).warnings}
