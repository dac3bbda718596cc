import math

import pytest

from noisescale_lab.sweep.rate_search import best_of, search


def cliff(best: float):
    """Steps fall with the rate up to a cliff, where training never arrives."""
    tried = []

    def score(lr):
        tried.append(lr)
        if lr > 1.2 * best:
            return math.inf, lr
        return 100 * (best / lr + 0.3 * (lr / best) ** 3), 0.0

    return score, tried


@pytest.mark.parametrize("start", [0.001, 0.1, 30.0])
def test_the_best_rate_is_found_from_far_below_and_far_above(start):
    score, tried = cliff(best=0.13)

    found = search(score, start)

    exact = 100 * min(0.13 / lr + 0.3 * (lr / 0.13) ** 3 for lr in [0.13 * 2 ** (k / 50) for k in range(-60, 13)])
    assert found.score[0] < 1.03 * exact
    assert not found.is_at_edge
    assert len(tried) == len(set(tried)) <= 15


def test_a_parabola_finds_the_best_between_the_grid():
    found = search(lambda lr: (100 * math.exp(math.log(lr / 0.118) ** 2), 0.0), 0.1)

    assert found.lr == pytest.approx(0.118, rel=1e-6)


def test_where_nothing_arrives_the_search_goes_where_the_metric_is_better_and_says_edge():
    found = search(lambda lr: (math.inf, 1 / lr), 1.0)

    assert found.is_at_edge
    assert found.lr == 2.0**13
    assert math.isinf(found.score[0])


def test_of_given_rates_the_best_is_taken_and_an_edge_is_said():
    assert best_of(lambda lr: (lr, 0.0), [0.4, 0.1, 0.2]).is_at_edge
    assert not best_of(lambda lr: (abs(lr - 0.2) + 1, 0.0), [0.4, 0.1, 0.2]).is_at_edge
    assert not best_of(lambda lr: (lr, 0.0), [0.4]).is_at_edge
