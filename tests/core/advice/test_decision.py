"""The word of a decision at each of its thresholds, and what limits change of it."""

import pytest

from advised_runs import KNOWN, advised_run, stretch
from noisescale_core.advice.decision import word_of
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.limited import Inside, LimitedBatch
from noisescale_core.advice.parts.parts import Interval
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import recommend
from noisescale_core.theory.expected_cost import Stake
from noisescale_core.theory.limits import Choice, Limit, LimitKind


def stake(probability=0.9, saving=0.2, present_regret=0.5):
    return Stake(probability, saving, worst_case=0.1, present_regret=present_regret, regret=0.01)


def words(found, *, factor=2.0, inside=None):
    """For a batch that many times as large, and as small."""
    return [word_of(found, now=1000.0, then=then, inside=inside) for then in (1000.0 * factor, 1000.0 / factor)]


@pytest.mark.parametrize(
    ("found", "factor", "is_sure"),
    [
        (stake(probability=0.8), 2.0, True),
        (stake(probability=0.799), 2.0, False),
        (stake(saving=0.04), 2.0, True),
        (stake(saving=0.0399), 2.0, False),
        (stake(), 1.401, True),
        (stake(), 1.399, False),
        (stake(probability=0.6), 2.0, False),
        (stake(), 1.191, False),
    ],
)
def test_a_change_is_advised_where_it_is_likely_worth_it_and_large_enough_else_probably(found, factor, is_sure):
    probably = "" if is_sure else "probably_"

    assert words(found, factor=factor) == [f"{probably}increase", f"{probably}decrease"]


@pytest.mark.parametrize("found", [stake(probability=0.599), stake(probability=0.1, saving=-0.3)])
def test_where_neither_batch_is_likely_cheaper_the_present_one_is_kept_for_now(found):
    assert words(found) == ["keep_for_now"] * 2


def test_a_batch_that_is_next_to_the_present_one_is_no_change_even_if_it_is_surely_cheaper():
    assert words(stake(probability=0.99), factor=1.189) == ["keep_for_now"] * 2


@pytest.mark.parametrize(("present_regret", "is_kept"), [(0.0, True), (0.125, True), (0.1251, False)])
@pytest.mark.parametrize("probability", [0.1, 0.7, 0.799])
def test_a_batch_that_costs_little_more_than_the_best_is_kept(present_regret, is_kept, probability):
    found = words(stake(probability=probability, present_regret=present_regret))

    assert found == (["keep"] * 2 if is_kept else words(stake(probability=probability)))
    assert is_kept or "keep" not in found


def test_what_is_surely_worth_it_is_advised_before_a_good_batch_is_kept():
    assert words(stake(probability=0.8, saving=0.04, present_regret=0.05)) == ["increase", "decrease"]


def test_a_small_change_of_a_good_batch_is_not_worth_the_trouble():
    assert words(stake(present_regret=0.02), factor=1.1) == ["keep"] * 2


def inside(limit, *, batch, low, high, is_binding=True):
    choice = Choice(batch, (limit,) if is_binding else (), (limit,))
    limited = LimitedBatch(batch, low, high, (limit.kind.value,), "")
    return Inside(choice, limited, Interval(batch, low, high), int(batch), 0.0, (limit,))


UP_TO_500 = Limit(LimitKind.MEMORY, 0.0, 500.0)
FROM_2000 = Limit(LimitKind.STEPS, 2000.0, float("inf"))


@pytest.mark.parametrize(
    ("limit", "batch", "ends", "word"),
    [
        (UP_TO_500, 500.0, (400.0, 500.0), "decrease"),
        (UP_TO_500, 500.0, (400.0, 1500.0), "probably_decrease"),
        (FROM_2000, 2000.0, (1500.0, 3000.0), "increase"),
        (FROM_2000, 2000.0, (900.0, 3000.0), "probably_increase"),
    ],
)
def test_a_present_batch_outside_a_limit_is_moved_inside_whatever_the_odds(limit, batch, ends, word):
    found = inside(limit, batch=batch, low=ends[0], high=ends[1])

    for odds in (stake(), stake(probability=0.0, saving=-1.0, present_regret=0.0)):
        assert word_of(odds, now=1000.0, then=batch, inside=found) == word


@pytest.mark.parametrize(
    ("saving", "probability", "word"),
    # 1 / 9 saved is 1 / 8 more than what is left
    [(0.111, 0.7, "keep"), (0.112, 0.7, "probably_increase"), (0.112, 0.5, "keep_for_now"), (0.112, 0.8, "increase")],
)
def test_under_a_limit_the_present_batch_is_held_against_the_best_one_inside(saving, probability, word):
    up_to_2000 = Limit(LimitKind.MEMORY, 0.0, 2000.0)
    found = inside(up_to_2000, batch=2000.0, low=2000.0, high=2000.0)
    # the best one of all is far away and out of reach
    odds = stake(probability=probability, saving=saving, present_regret=9.0)

    assert word_of(odds, now=1000.0, then=2000.0, inside=found) == word


def test_a_limit_that_does_not_bind_changes_no_word():
    found = inside(FROM_2000, batch=4000.0, low=3000.0, high=5000.0, is_binding=False)

    for odds in (stake(), stake(probability=0.7), stake(probability=0.1)):
        assert [word_of(odds, now=3000.0, then=4500.0, inside=one) for one in (found, None)] == [
            word_of(odds, now=3000.0, then=4500.0)
        ] * 2


@pytest.mark.parametrize(
    ("batch_size", "given", "direction"),
    [
        # 5,000 steps of 2 s at 700 take 2.78 h
        (700.0, {"max_hours": 2.6}, "increase"),
        (1300.0, {"num_devices": 16, "examples_per_device": 75, "max_micro_batches": 1}, "decrease"),
    ],
)
def test_a_present_batch_that_breaks_a_limit_is_not_kept_though_its_price_is_good(batch_size, given, direction):
    run = advised_run(batch_size=batch_size, spent=[stretch(batch_size)] * 50)

    found = recommend(run, Measured(KNOWN), Question(**given))

    assert recommend(run, Measured(KNOWN)).decision == "keep"
    assert found.decision in (direction, f"probably_{direction}")


def test_what_readers_with_other_prices_would_take_is_inside_the_limits_and_can_be_run_too():
    devices = Question(num_devices=4, examples_per_device=50, max_micro_batches=6)

    found = recommend(advised_run(), Measured(KNOWN), devices)

    assert found.limited.binding == ()
    assert [one.preference for one in found.otherwise] == [0.2, 0.8]
    assert [one.batch_size for one in found.otherwise] == [200, 1200]
