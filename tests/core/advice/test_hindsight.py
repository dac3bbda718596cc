"""An advice is right by the critical batch that is known later, and not by the one that it took."""

import pytest

from noisescale_core.advice.evidence.critical_belief import critical_of, near
from noisescale_core.advice.hindsight import hindsight
from noisescale_core.estimators.belief import Belief


def known(critical_batch, batch_size, log_sd=0.1):
    belief = Belief.of_interval(critical_batch, critical_batch * 0.99, critical_batch * 1.01, 0.95)
    return critical_of(belief, log_mean=0.0, odds_log_sd=log_sd, shown_log_sd=log_sd, usual=(near(batch_size),))


def test_a_change_towards_the_best_batch_was_right():
    found = hindsight(known(1000.0, 64.0), batch_size=64.0, critical_batch=1000.0, price_ratio=1.0)

    assert (found.word, found.is_change, found.is_cheaper, found.is_right) == ("increase", True, True, True)
    assert found.regret < 0.01 < found.kept
    assert found.control == pytest.approx(0.0)


def test_a_change_by_a_wrong_critical_batch_was_wrong_however_sure():
    found = hindsight(known(64_000.0, 64.0), batch_size=64.0, critical_batch=64.0, price_ratio=1.0)

    assert found.word == "increase"
    assert found.probability > 0.99
    assert (found.is_cheaper, found.is_right) == (False, False)
    assert found.regret > found.kept == pytest.approx(0.0)


@pytest.mark.parametrize(("critical_batch", "is_right"), [(1000.0, True), (100_000.0, False)])
def test_keep_was_right_where_the_batch_costs_an_eighth_more_at_most(critical_batch, is_right):
    found = hindsight(
        known(1000.0, 1000.0), batch_size=1000.0, critical_batch=critical_batch, price_ratio=1000.0 / critical_batch
    )

    assert found.word == "keep"
    # at a price of 1,000 examples a step the best batch is then 10,000
    assert found.kept == pytest.approx(0.0 if is_right else 0.67, abs=0.01)
    assert found.is_right is is_right


def test_for_now_and_probably_are_told_apart():
    unsure = known(1000.0, 400.0, log_sd=3.0)

    found = hindsight(unsure, batch_size=400.0, critical_batch=1000.0, price_ratio=1.0)

    assert found.word == "keep_for_now" or found.word.startswith("probably")
    assert found.is_right is (None if found.word == "keep_for_now" else found.is_cheaper)
