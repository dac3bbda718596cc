import numpy as np
import pytest

from noisescale_core.errors import EstimationError
from noisescale_core.estimators.noise_scale import (
    from_groups,
    from_unequal_groups,
    robust_grad_sq_norm,
    solve_equally_weighted_groups,
    two_batch,
)

GRAD_SQ_NORM = 2.5
TRACE_COV = 40.0


def test_two_batch_returns_the_exact_terms_when_fed_exact_expectations():
    small = GRAD_SQ_NORM + TRACE_COV / 8
    big = GRAD_SQ_NORM + TRACE_COV / 64

    terms = two_batch(small_sq_norm=small, big_sq_norm=big, small_batch_size=8, big_batch_size=64)

    assert terms.trace_cov == pytest.approx(TRACE_COV, rel=1e-12)
    assert terms.grad_sq_norm == pytest.approx(GRAD_SQ_NORM, rel=1e-12)


def test_from_groups_returns_the_exact_terms_when_fed_exact_expectations():
    terms = from_groups(
        mean_small_sq_norm=GRAD_SQ_NORM + TRACE_COV / 8,
        big_sq_norm=GRAD_SQ_NORM + TRACE_COV / 64,
        num_groups=8,
        batch_size=64,
    )

    assert terms.trace_cov == pytest.approx(TRACE_COV, rel=1e-12)
    assert terms.grad_sq_norm == pytest.approx(GRAD_SQ_NORM, rel=1e-12)


def test_from_unequal_groups_returns_the_exact_terms_when_fed_exact_expectations():
    sizes = np.array([3, 5, 8, 16])
    n = sizes.sum()
    weighted = float((sizes / n * (GRAD_SQ_NORM + TRACE_COV / sizes)).sum())

    terms = from_unequal_groups(
        weighted_sq_norm=weighted, big_sq_norm=GRAD_SQ_NORM + TRACE_COV / n, num_groups=4, batch_size=float(n)
    )

    assert terms.trace_cov == pytest.approx(TRACE_COV, rel=1e-12)
    assert terms.grad_sq_norm == pytest.approx(GRAD_SQ_NORM, rel=1e-12)


def test_unequal_groups_of_equal_size_are_equal_groups():
    equal = from_groups(mean_small_sq_norm=7.0, big_sq_norm=3.0, num_groups=4, batch_size=32)
    unequal = from_unequal_groups(weighted_sq_norm=7.0, big_sq_norm=3.0, num_groups=4, batch_size=32)

    assert equal == unequal


@pytest.mark.parametrize("sizes", [[4] * 8, [1, 2, 3, 10, 16]])
def test_each_term_of_a_simulation_is_unbiased(sizes):
    """Each term by itself: errors would cancel in the ratio."""
    rng = np.random.default_rng(0)
    dim, trials = 20, 20_000
    mean = rng.normal(size=dim)
    spread = np.sqrt(np.arange(1, dim + 1))
    n = sum(sizes)
    groups = [mean + spread / np.sqrt(size) * rng.normal(size=(trials, dim)) for size in sizes]
    big = sum(size / n * g for size, g in zip(sizes, groups, strict=True))
    weighted = sum(size / n * (g**2).sum(1) for size, g in zip(sizes, groups, strict=True))
    big_sq = (big**2).sum(1)

    terms = [
        from_unequal_groups(weighted_sq_norm=w, big_sq_norm=b, num_groups=len(sizes), batch_size=n)
        for w, b in zip(weighted, big_sq, strict=True)
    ]

    for name, truth in (("trace_cov", (spread**2).sum()), ("grad_sq_norm", (mean**2).sum())):
        values = np.array([getattr(t, name) for t in terms])
        standard_error = values.std() / np.sqrt(trials)
        assert abs(values.mean() - truth) < 5 * standard_error, name
        assert standard_error < 0.01 * truth, name


@pytest.mark.parametrize(("small", "big"), [(8, 8), (8, 4), (0, 8), (-1, 8)])
def test_two_batch_rejects_batch_sizes_that_cannot_separate_signal_from_noise(small, big):
    with pytest.raises(EstimationError, match=f"{big:g} and {small:g}"):
        two_batch(small_sq_norm=2, big_sq_norm=1, small_batch_size=small, big_batch_size=big)


@pytest.mark.parametrize("estimator", [from_groups, from_unequal_groups])
def test_a_single_group_is_refused_with_the_way_out(estimator):
    norm = "mean_small_sq_norm" if estimator is from_groups else "weighted_sq_norm"

    with pytest.raises(EstimationError, match="got 1: use gradient accumulation"):
        estimator(**{norm: 1.0}, big_sq_norm=1.0, num_groups=1, batch_size=8)


def test_groups_without_examples_are_refused():
    with pytest.raises(EstimationError, match="batch_size must be positive, got 0"):
        from_groups(mean_small_sq_norm=1, big_sq_norm=1, num_groups=2, batch_size=0)


def test_the_robust_estimate_needs_no_noise_in_proportion_to_one_over_the_size():
    """Two groups are ten times as noisy as their sizes say; the ordinary estimate is then wrong."""
    rng = np.random.default_rng(1)
    sizes, noise = np.array([2, 4, 8, 8]), np.array([40.0, 5.0, 2.0, 30.0])
    trials, dim = 40_000, 5
    mean = rng.normal(size=dim)
    sums = sizes[:, None] * (mean + np.sqrt(noise / dim)[:, None] * rng.normal(size=(trials, 4, dim)))
    n = float(sizes.sum())

    found = robust_grad_sq_norm(
        sum_sq_norm=(sums.sum(1) ** 2).sum(-1),
        sum_of_sq_norms=(sums**2).sum((1, 2)),
        batch_size=n,
        sum_of_sq_sizes=float((sizes**2).sum()),
    )

    truth, standard_error = (mean**2).sum(), found.std() / np.sqrt(trials)
    weighted = ((sums**2).sum(-1) / sizes).sum(1) / n
    ordinary = from_unequal_groups(
        weighted_sq_norm=weighted, big_sq_norm=(sums.sum(1) ** 2).sum(-1) / n**2, num_groups=4, batch_size=n
    ).grad_sq_norm
    assert abs(found.mean() - truth) < 5 * standard_error
    assert abs(ordinary.mean() - truth) > 20 * standard_error


def test_a_robust_estimate_of_one_group_is_refused():
    with pytest.raises(EstimationError, match="got batch_size 8 and sum_of_sq_sizes 64: use gradient accumulation"):
        robust_grad_sq_norm(sum_sq_norm=4.0, sum_of_sq_norms=4.0, batch_size=8.0, sum_of_sq_sizes=64.0)


def test_means_of_unequal_groups_averaged_with_equal_weight_return_the_exact_terms():
    sizes = np.array([3.0, 5.0, 8.0, 16.0])

    trace_cov, grad_sq_norm = solve_equally_weighted_groups(
        mean_sq_norm=float((GRAD_SQ_NORM + TRACE_COV / sizes).mean()),
        big_sq_norm=float(GRAD_SQ_NORM + TRACE_COV * (1 / sizes).sum() / 16),
        num_groups=4,
        mean_inverse_size=float((1 / sizes).mean()),
    )

    assert trace_cov == pytest.approx(TRACE_COV, rel=1e-12)
    assert grad_sq_norm == pytest.approx(GRAD_SQ_NORM, rel=1e-12)
