import numpy as np
import pytest

from noisescale_core.errors import EstimationError
from noisescale_core.estimators.heterogeneity import (
    MeanSquares,
    RankHeterogeneity,
    are_duplicates,
    mean_squares,
)


def steps_of(rng, *, num_steps, num_ranks=4, num_micro_batches=2, dim=10, shift=0.0, tail_freedom=None, num_copies=0):
    """The mean squares of simulated steps; tr Σ of one example is 8.

    One rank's gradients are shifted by a fixed vector, and the last `num_copies` ranks have the data of the first.
    """
    sizes = rng.integers(2, 9, size=(num_ranks, num_micro_batches))
    scale = np.ones((num_steps, num_ranks, num_micro_batches, 1))
    if tail_freedom:
        scale = np.sqrt((tail_freedom - 2) / rng.chisquare(tail_freedom, size=scale.shape))
    gradients = np.ones(dim) + scale * rng.normal(size=(num_steps, num_ranks, num_micro_batches, dim)) * np.sqrt(
        8 / dim / sizes[..., None]
    )
    gradients[:, 0, :, 0] += shift
    if num_copies:
        sizes[-num_copies:] = sizes[0]
        gradients[:, -num_copies:] = gradients[:, :1]
    weights = sizes / sizes.sum()
    ranks = (gradients * sizes[..., None]).sum(2) / sizes.sum(1)[:, None]
    whole = (ranks * weights.sum(1)[:, None]).sum(1)
    norms = zip(
        ((gradients**2).sum(-1) * weights).sum((1, 2)),
        ((ranks**2).sum(-1) * weights.sum(1)).sum(1),
        (whole**2).sum(-1),
        strict=True,
    )
    for small, rank, big in norms:
        yield mean_squares(
            small_sq_norm=float(small),
            rank_sq_norm=float(rank),
            big_sq_norm=float(big),
            num_ranks=num_ranks,
            num_small_batches=num_ranks * num_micro_batches,
            batch_size=float(sizes.sum()),
        )


def first_alarm(steps):
    """The number of the first step after which ranks are said to see different or repeated data, or None."""
    found = RankHeterogeneity()
    for number, step in enumerate(steps, start=1):
        found = found.plus(step)
        if found.is_heterogeneous or found.is_repeated:
            return number
    return None


def test_both_mean_squares_estimate_the_trace_where_ranks_see_the_same_data():
    steps = list(steps_of(np.random.default_rng(0), num_steps=20_000))

    for values in ([s.between for s in steps], [s.within for s in steps]):
        standard_error = np.std(values) / np.sqrt(len(values))
        assert abs(np.mean(values) - 8) < 5 * standard_error
        assert standard_error < 0.05


@pytest.mark.parametrize(("dim", "shift"), [(1, 1.15), (10, 1.15)])
def test_a_rank_whose_data_overstate_the_trace_by_a_fifth_is_found_within_some_hundred_steps(dim, shift):
    alarms = []
    overstated = []
    for seed in range(20):
        steps = list(steps_of(np.random.default_rng(seed), num_steps=800, dim=dim, shift=shift))
        alarms.append(first_alarm(steps))
        overstated.append(np.mean([(3 * s.between + 4 * s.within) / 7 for s in steps]) / 8)

    assert 1.15 < np.mean(overstated) < 1.25
    assert None not in alarms
    assert np.median(alarms) < 250


@pytest.mark.parametrize("num_copies", [1, 3])
def test_ranks_that_repeat_each_others_data_are_found(num_copies):
    found = RankHeterogeneity()
    for step in steps_of(np.random.default_rng(0), num_steps=400, num_micro_batches=3, num_copies=num_copies):
        found = found.plus(step)

    assert found.is_repeated
    assert not found.is_heterogeneous
    assert found.f == pytest.approx({1: 5 / 6, 3: 0}[num_copies], abs=0.1)


@pytest.mark.thorough
def test_ranks_with_the_same_data_raise_no_alarm():
    alarms = [first_alarm(steps_of(np.random.default_rng(seed), num_steps=1500, dim=3)) for seed in range(30)]

    assert alarms == [None] * 30


@pytest.mark.slow
@pytest.mark.parametrize(
    "ranks",
    [{"dim": 1}, {"dim": 3, "num_ranks": 2}, {"dim": 30, "num_micro_batches": 4}, {"dim": 4, "tail_freedom": 5}],
)
def test_no_run_of_50_raises_an_alarm_in_10_000_looks(ranks):
    alarms = [first_alarm(steps_of(np.random.default_rng(seed), num_steps=10_000, **ranks)) for seed in range(50)]

    assert alarms == [None] * 50


def test_a_trace_that_falls_by_orders_of_magnitude_does_not_hide_a_shifted_rank():
    """Only the newest steps set the scale of the differences."""
    rng = np.random.default_rng(3)
    calm = [MeanSquares(1e6 * s.between, 1e6 * s.within, 4, 8) for s in steps_of(rng, num_steps=200)]
    shifted = list(steps_of(rng, num_steps=1500, shift=3.0))

    alarm = first_alarm([*calm, *shifted])

    assert alarm is not None
    assert alarm > 200


def test_the_overstatement_is_said_as_f():
    found = RankHeterogeneity()
    for step in steps_of(np.random.default_rng(4), num_steps=300, shift=3.0):
        found = found.plus(step)

    assert found.f == pytest.approx(found.between / found.within)
    assert found.f > 2
    assert RankHeterogeneity().f is None


def test_steps_that_are_not_finite_are_left_out():
    found = RankHeterogeneity().plus(MeanSquares(float("nan"), 1.0, 4, 8))

    assert found == RankHeterogeneity()


@pytest.mark.parametrize(("num_ranks", "num_small_batches"), [(1, 8), (4, 4)])
def test_one_micro_batch_a_rank_cannot_tell_noise_from_data(num_ranks, num_small_batches):
    with pytest.raises(EstimationError, match="use gradient accumulation"):
        mean_squares(
            small_sq_norm=2.0,
            rank_sq_norm=1.5,
            big_sq_norm=1.0,
            num_ranks=num_ranks,
            num_small_batches=num_small_batches,
            batch_size=8,
        )


def test_nothing_to_count_is_refused():
    with pytest.raises(EstimationError, match="batch_size must be positive, got 0"):
        mean_squares(
            small_sq_norm=2.0, rank_sq_norm=1.5, big_sq_norm=1.0, num_ranks=2, num_small_batches=4, batch_size=0.0
        )


def test_the_same_data_on_every_rank_are_duplicates_and_a_small_noise_is_none():
    assert are_duplicates(small_sq_norm=3.0, big_sq_norm=3.0 * (1 - 1e-12))
    assert are_duplicates(small_sq_norm=3.0, big_sq_norm=3.0 * (1 + 3e-7))
    assert not are_duplicates(small_sq_norm=3.0, big_sq_norm=3.0 * (1 - 1e-5))
    assert not are_duplicates(small_sq_norm=0.0, big_sq_norm=0.0)
