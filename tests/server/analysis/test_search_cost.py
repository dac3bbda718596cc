"""Best of n, three ways to search, and B_crit with fewer trials: against enumeration of every draw."""

import math
from itertools import combinations
from statistics import fmean

import pytest

from noisescale_server.analysis.cost.search import best_of_n, critical_with_fewer, strategies

STEPS = [400.0, 250.0, 900.0, 310.0, 180.0, math.inf, 520.0]
CRITICAL = 256.0


@pytest.mark.parametrize("n", range(1, len(STEPS) + 1))
def test_the_best_of_n_is_what_every_draw_of_n_trials_says(n: int) -> None:
    draws = sorted(min(drawn) for drawn in combinations(STEPS, n))

    found = best_of_n(STEPS)[n - 1]

    assert found.num_trials == n
    assert found.median == draws[math.ceil(0.5 * len(draws)) - 1]
    assert found.low == draws[math.ceil(0.1 * len(draws)) - 1]
    assert found.none_reaches == pytest.approx(sum(map(math.isinf, draws)) / len(draws))


def test_where_no_trial_reaches_the_target_there_is_no_best() -> None:
    found = best_of_n([math.inf] * 3)

    assert [one.median for one in found] == [None] * 3
    assert [one.none_reaches for one in found] == [1.0] * 3


def bowl(best: float, rates: list[float]) -> dict[float, float]:
    return {rate: 100 * (2 + rate / best + best / rate) for rate in rates}


def test_informed_search_needs_one_trial_where_the_rule_is_right_and_grid_beats_random_on_a_bowl() -> None:
    rates = [0.01 * 2**i for i in range(8)]
    steps = bowl(0.16, rates)

    found = strategies(steps, foreseen=0.16)

    assert found.informed[0] == min(steps.values())
    assert found.random[-1] == found.grid[-1] == found.informed[-1] == min(steps.values())
    assert found.grid[0] == pytest.approx(fmean(steps.values()))
    assert found.grid[1] is not None
    assert found.grid[1] <= fmean(min(p) for p in combinations(steps.values(), 2))
    wrong = strategies(steps, foreseen=10.0)
    assert wrong.informed[0] == steps[max(rates)]


def swept(sizes: list[int], rates: int) -> dict[float, list[float]]:
    """Steps on the curve of B_crit 256 at the best rate, and twice as many and so on beside it."""
    return {size: [1000 * (1 + CRITICAL / size) * 2.0**i for i in range(rates)] for size in sizes}


def test_with_all_trials_the_critical_batch_is_the_planted_one_and_with_fewer_it_is_unsure() -> None:
    found = critical_with_fewer(swept([32, 64, 128, 256, 512, 1024, 2048], rates=4))

    assert [one.num_trials for one in found] == [1, 2, 3, 4]
    everything, one = found[-1], found[0]
    assert everything.median == everything.low == everything.high == pytest.approx(CRITICAL, rel=0.02)
    assert one.low is None or everything.low is None or one.low < everything.low
    assert one.high is None or one.high > CRITICAL


def test_batch_sizes_that_never_reach_the_target_are_left_out_and_two_are_too_few() -> None:
    trials = swept([32, 64, 128, 1024], rates=2) | {4096: [math.inf, math.inf]}

    assert critical_with_fewer(trials)[-1].median == pytest.approx(CRITICAL, rel=0.05)
    assert critical_with_fewer(swept([32, 64], rates=2)) == ()
