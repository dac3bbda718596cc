"""Against brute force: sums over the belief written out, and the best batch looked for on a fine grid."""

import math
import random
from dataclasses import astuple

import pytest

from noisescale_core.errors import DomainError
from noisescale_core.estimators.belief import Belief
from noisescale_core.theory.expected_cost import least_expected_cost, stake
from noisescale_core.theory.prices import from_preference, worth_examples

BALANCED = from_preference(0.5)


def certain(critical):
    return Belief(math.log(critical), 0.1, (1.0,))


def some_belief(seed, points=12, spacing=0.4):
    """Of any shape, with several peaks, between about 10 and 10,000."""
    source = random.Random(seed)
    weights = [source.random() ** 3 for _ in range(points)]
    return Belief(source.uniform(2, 5), spacing, tuple(weight / sum(weights) for weight in weights))


def scaled(found, factor):
    return Belief(found.start + math.log(factor), found.spacing, found.weights)


def log_cost(critical, rate, batch):
    """ln ((1 + b / B)(r + B)), S_min being 1."""
    return math.log((1 + critical / batch) * (rate.at(critical) + batch))


def mean_log_cost(found, rate, batch):
    return sum(weight * log_cost(math.exp(log), rate, batch) for log, weight in found.points())


def regrets(found, rate, batch):
    """What the batch costs above the least possible, in logarithms, with the weight of each critical batch."""
    for log, weight in found.points():
        critical = math.exp(log)
        best = math.sqrt(rate.at(critical) * critical)
        yield log_cost(critical, rate, batch) - log_cost(critical, rate, best), weight


@pytest.mark.parametrize(("critical", "rate"), [(1000.0, 10.0), (1000.0, 1e5), (3.0, 3e-6), (1e14, 1e-8)])
def test_a_certain_critical_batch_gives_the_root_of_it_times_the_price(critical, rate):
    found = least_expected_cost(certain(critical), worth_examples(rate))

    assert found == pytest.approx(math.sqrt(rate * critical))


@pytest.mark.parametrize(("preference", "share"), [(0.5, 1.0), (0.2, 0.25), (0.8, 4.0)])
def test_a_preference_gives_its_share_of_a_certain_critical_batch(preference, share):
    assert least_expected_cost(certain(700.0), from_preference(preference)) == pytest.approx(share * 700)


@pytest.mark.parametrize("rate", [BALANCED, from_preference(0.2), worth_examples(3.0), worth_examples(1e5)])
@pytest.mark.parametrize("seed", range(4))
def test_no_batch_on_a_fine_grid_costs_less(seed, rate):
    found = some_belief(seed)

    best = least_expected_cost(found, rate)

    grid = [best * 1.02**place for place in range(-400, 401)]
    assert min(grid, key=lambda batch: mean_log_cost(found, rate, batch)) == best
    near = [mean_log_cost(found, rate, best * factor) for factor in (0.999, 1.001)]
    assert min(near) > mean_log_cost(found, rate, best)


@pytest.mark.parametrize("rate", [BALANCED, worth_examples(50.0)])
@pytest.mark.parametrize(("now", "then"), [(30.0, 400.0), (5000.0, 400.0), (400.0, 500.0)])
def test_what_is_at_stake_is_what_the_sums_say(now, then, rate):
    for seed in range(5):
        belief = some_belief(seed)

        found = stake(belief, rate, now=now, then=then)

        before, after = list(regrets(belief, rate, now)), list(regrets(belief, rate, then))
        change = [(new - old, weight) for (old, weight), (new, _) in zip(before, after, strict=True)]
        assert found.probability == pytest.approx(sum(weight for one, weight in change if one < 0))
        mean = mean_log_cost(belief, rate, then) - mean_log_cost(belief, rate, now)
        assert found.saving == pytest.approx(1 - math.exp(mean))
        assert found.present_regret == pytest.approx(math.exp(sum(one * weight for one, weight in before)) - 1)
        assert found.regret == pytest.approx(math.exp(sum(one * weight for one, weight in after)) - 1)
        worse = sum(weight for one, weight in change if math.expm1(one) > found.worst_case + 1e-9)
        no_better = sum(weight for one, weight in change if math.expm1(one) >= found.worst_case - 1e-9)
        assert worse <= 0.05 <= no_better


def test_with_a_certain_critical_batch_the_best_one_is_surely_cheaper():
    found = stake(certain(1000.0), BALANCED, now=100.0, then=1000.0)

    cost_now, least = (1 + 10) * (1000 + 100), 4 * 1000
    assert found.probability == 1
    assert found.saving == pytest.approx(1 - least / cost_now)
    assert found.worst_case == pytest.approx(-found.saving)
    assert found.present_regret == pytest.approx(cost_now / least - 1)
    assert found.regret == pytest.approx(0, abs=1e-12)


def test_no_change_saves_nothing_and_is_never_cheaper():
    found = stake(some_belief(1), BALANCED, now=300.0, then=300.0)

    assert (found.probability, found.saving, found.worst_case) == (0, 0, 0)
    assert found.present_regret == found.regret > 0


def test_the_way_there_and_back_are_each_others_odds():
    there, back = (stake(some_belief(2), BALANCED, now=now, then=then) for now, then in ((40.0, 700.0), (700.0, 40.0)))

    assert there.probability + back.probability == pytest.approx(1)
    assert (1 - there.saving) * (1 - back.saving) == pytest.approx(1)
    assert (there.present_regret, there.regret) == pytest.approx((back.regret, back.present_regret))


def test_the_batch_of_least_expected_cost_has_the_least_regret():
    belief = some_belief(3)
    best = least_expected_cost(belief, BALANCED)

    regrets_of = [stake(belief, BALANCED, now=100.0, then=best * one).regret for one in (1, 1 / 3, 0.9, 1.1, 3)]
    assert min(regrets_of[1:]) > regrets_of[0]


@pytest.mark.parametrize("scale", [512.0, 1 / 7, 1e-6])
def test_counting_in_another_unit_changes_no_probability_and_no_cost(scale):
    belief = some_belief(4)
    for rate, other in ((BALANCED, BALANCED), (worth_examples(50.0), worth_examples(50.0 * scale))):
        plain = stake(belief, rate, now=90.0, then=600.0)
        moved = stake(scaled(belief, scale), other, now=90.0 * scale, then=600.0 * scale)

        assert astuple(moved) == pytest.approx(astuple(plain))
        best = least_expected_cost(belief, rate)
        assert least_expected_cost(scaled(belief, scale), other) == pytest.approx(best * scale)


def test_a_belief_as_wide_as_numbers_go_has_a_best_batch():
    wide = Belief(math.log(1e-9), 1.0, (1 / 56,) * 56)

    for rate in (BALANCED, from_preference(0.001), worth_examples(1e-9), worth_examples(1e15)):
        best = least_expected_cost(wide, rate)

        assert 0 < best < math.inf
        assert mean_log_cost(wide, rate, best) <= min(mean_log_cost(wide, rate, best * one) for one in (0.9, 1.1))


@pytest.mark.parametrize("batches", [{"now": 0.0, "then": 8.0}, {"now": 8.0, "then": -1.0}])
def test_a_batch_that_is_none_is_refused(batches):
    with pytest.raises(DomainError, match="a batch holds at least one example"):
        stake(certain(100.0), BALANCED, **batches)
