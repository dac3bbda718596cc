"""The noise scale between runs, against exact expectations and simulated runs whose parameters differ."""

import random
from statistics import fmean

import pytest

from noisescale_core.errors import EstimationError
from noisescale_core.estimators.between_runs import DIFFERENT_PARAMETERS, USUAL_SPREAD, SizedNorm, between_runs

SIZES = (16, 64, 256, 1024)


def expected(batch_size, grad_sq_norm=2.0, trace_cov=300.0):
    return SizedNorm(batch_size, grad_sq_norm + trace_cov / batch_size, 0.01)


@pytest.mark.parametrize("sizes", [(16, 256), (16, 64, 256), SIZES])
def test_exact_expectations_give_both_terms_exactly(sizes):
    [found] = between_runs([[expected(size) for size in sizes]])

    assert found.grad_sq_norm == pytest.approx(2.0, rel=1e-9)
    assert found.trace_cov == pytest.approx(300.0, rel=1e-9)
    assert found.flag == DIFFERENT_PARAMETERS
    assert found.value is None or found.low < 150.0 < found.high


@pytest.mark.parametrize(("spread", "sizes"), [(0.05, SIZES), (0.15, SIZES), (0.15, (16, 256)), (0.05, (32, 2048))])
def test_intervals_cover_the_truth_where_parameters_differ_by_no_more_than_is_usual(spread, sizes):
    rng = random.Random(7)
    covered = []
    for _ in range(400):
        norms = [SizedNorm(size, expected(size).sq_norm * (1 + spread * rng.gauss(0, 1)), 0.02) for size in sizes]
        if all(one.sq_norm > 0 for one in norms):
            [found] = between_runs([norms])
            covered.append((found.low or 0.0) <= 150.0 and (found.high is None or found.high >= 150.0))

    assert fmean(covered) >= 0.93


def test_runs_that_miss_the_line_widen_the_intervals_of_all_losses():
    rng = random.Random(3)
    good = [[expected(size) for size in SIZES]] * 4
    bad = [[SizedNorm(size, expected(size).sq_norm * rng.choice((0.6, 1.4)), 0.01) for size in SIZES]] * 4

    narrow, wide = between_runs(good)[0], between_runs([*bad, *good])[-1]

    assert narrow.spread == USUAL_SPREAD < wide.spread
    assert wide.high is None or wide.high / wide.low > narrow.high / narrow.low


def test_a_gradient_that_is_lost_in_the_noise_has_no_value_and_no_upper_bound():
    [found] = between_runs([[SizedNorm(16, 300 / 16, 0.05), SizedNorm(64, 300 / 64, 0.05)]])

    assert found.value is None
    assert found.high is None


@pytest.mark.parametrize("sizes", [(16,), (16, 16), (16, 20)])
def test_batch_sizes_that_are_too_near_are_refused_with_the_way_out(sizes):
    with pytest.raises(EstimationError, match=r"differ by 1\.5 times"):
        between_runs([[expected(size) for size in sizes]])


def test_a_norm_of_zero_is_refused():
    with pytest.raises(EstimationError, match="positive"):
        between_runs([[SizedNorm(16, 0.0, 0.1), expected(64)]])
