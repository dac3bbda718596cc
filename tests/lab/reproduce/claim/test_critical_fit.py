import numpy as np
import pytest

from noisescale_lab.reproduce.claim.critical_fit import exclusion, fit

BATCHES = (4, 16, 64, 256, 1024)


def steps(batch: int, *, min_steps: float = 30.0, critical: float = 80.0) -> float:
    return min_steps * (1 + critical / batch)


def test_exact_points_give_the_exact_curve() -> None:
    found = fit([(batch, steps(batch)) for batch in BATCHES])

    assert found is not None
    assert found.critical_batch == pytest.approx(80, rel=0.01)
    assert found.min_steps == pytest.approx(30, rel=0.01)
    assert exclusion(found) is None


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    generator = np.random.default_rng(0)
    held = 0

    for _ in range(300):
        found = fit([(batch, steps(batch) * np.exp(0.05 * generator.standard_normal())) for batch in BATCHES])
        assert found is not None
        held += (found.low or 0) <= 80 <= (found.high or np.inf)

    assert abs(held / 300 - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 300)


def test_batch_sizes_far_below_the_critical_one_leave_its_interval_open() -> None:
    points = [(batch, steps(batch, critical=1e5) * factor) for batch, factor in ((4, 1.02), (8, 0.98), (16, 1.01))]

    found = fit(points)

    assert found is not None
    assert found.high is None
    assert exclusion(found) == "B_crit has no bounded interval"


def test_a_target_met_within_five_steps_does_not_count_and_says_so() -> None:
    found = fit([(batch, steps(batch, min_steps=3.0)) for batch in BATCHES])

    assert exclusion(found) == "S_min is 3.0, below 5 steps"


def test_two_batch_sizes_give_no_fit() -> None:
    found = fit([(4, 100.0), (16, 40.0), (64, float("inf"))])

    assert found is None
    assert exclusion(found) == "met at fewer than three batch sizes"
