import numpy as np
import pytest

from noisescale.reproduce.claim.noise_over_run import (
    NoiseWindow,
    exact_average,
    ideal_step_average,
    run_average,
    seeds_needed,
    windows_of,
)
from noisescale.reproduce.claim.watched_run import Terms


def terms(trace: float, square: float, *, steps: int = 100, seeds: int = 4, spread: float = 0.1) -> Terms:
    generator = np.random.default_rng(1)
    noise = 1 + spread * generator.standard_normal((2, steps, seeds))
    return Terms(trace * noise[0], square * noise[1])


def test_windows_are_a_twentieth_of_a_run_whose_gradient_is_seen_well() -> None:
    found = windows_of(terms(50.0, 2.0), terms(50.0, 2.0, spread=0.0))

    assert [window.num_steps for window in found] == [5] * 20
    assert all(window.exact == pytest.approx(25) for window in found)
    assert run_average(found) == pytest.approx(25, rel=0.05)


def test_windows_grow_where_the_gradient_is_drowned_in_noise() -> None:
    found = windows_of(terms(50.0, 2.0, spread=1.5), terms(50.0, 2.0, spread=0.0))

    assert found[0].num_steps > 5


def test_steps_without_terms_are_left_out() -> None:
    watched = terms(50.0, 2.0)
    watched.trace_cov[::3, 0] = np.nan

    found = windows_of(watched, terms(50.0, 2.0, spread=0.0))

    assert run_average(found) == pytest.approx(25, rel=0.05)


def test_averages_weigh_steps_ideal_steps_and_nothing_after_the_target() -> None:
    windows = (
        NoiseWindow(0, 10, 10.0, 5.0, 20.0, 11.0),
        NoiseWindow(10, 30, 30.0, 15.0, 60.0, 31.0),
        NoiseWindow(40, 10, None, 50.0, None, 90.0),
        NoiseWindow(50, 50, 90.0, 45.0, 180.0, 91.0),
    )

    assert run_average(windows, until=45) == pytest.approx((10 * 10 + 30 * 30) / 40)
    assert exact_average(windows, until=45) == pytest.approx((10 * 11 + 30 * 31) / 40)
    weights = (10 * 30 / 40, 30 * 30 / 60)
    expected = (weights[0] * 10 + weights[1] * 30) / sum(weights)
    assert ideal_step_average(windows, 30, until=45) == pytest.approx(expected)
    assert run_average(windows[2:3]) is None


def test_short_runs_are_watched_with_more_seeds() -> None:
    assert [seeds_needed(steps) for steps in (10, 40, 1000)] == [16, 8, 1]
