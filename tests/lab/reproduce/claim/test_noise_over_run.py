import numpy as np
import pytest

from noisescale_lab.reproduce.claim.noise_over_run import (
    NoiseWindow,
    exact_average,
    ideal_step_average,
    interval_of_average,
    joined,
    run_average,
    seeds_needed,
    windows_of,
)
from noisescale_lab.reproduce.claim.watched_run import Terms


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

    assert run_average(windows, until=25) == pytest.approx((10 * 10 + 15 * 30) / 25)
    assert exact_average(windows, until=45) == pytest.approx((10 * 11 + 30 * 31) / 40)
    weights = (10 * 30 / 40, 30 * 30 / 60)
    expected = (weights[0] * 10 + weights[1] * 30) / sum(weights)
    assert ideal_step_average(windows, 30, until=45) == pytest.approx(expected)
    assert run_average(windows[2:3]) is None


def test_open_windows_are_joined_to_their_neighbours_so_that_an_average_misses_no_step() -> None:
    """The last third's gradient drowns in noise; left out, its large noise scale would be missing."""
    generator = np.random.default_rng(5)
    trace = 50 * (1 + 0.05 * generator.standard_normal((90, 8)))
    square = np.concatenate([np.full((60, 8), 2.0), 0.1 + 1.5 * generator.standard_normal((30, 8))])
    watched = Terms(trace, square)
    windows = windows_of(watched, watched)

    spans = joined(watched, watched, windows)

    assert any(window.value is None for window in windows)
    assert all(span.value is not None for span in spans)
    assert sum(span.num_steps for span in spans) == 90
    assert [span.first for span in spans] == sorted(span.first for span in spans)


def test_a_run_that_is_open_as_a_whole_has_no_spans() -> None:
    watched = terms(50.0, 0.0, spread=1.0)
    watched.grad_sq_norm[:] = np.random.default_rng(2).standard_normal(watched.grad_sq_norm.shape)

    assert joined(watched, watched, windows_of(watched, watched)) == ()


def test_short_runs_are_watched_with_more_seeds() -> None:
    assert [seeds_needed(steps) for steps in (10, 40, 1000)] == [16, 8, 1]


def test_the_interval_of_an_average_holds_the_mean_of_true_values_as_often_as_it_says() -> None:
    generator = np.random.default_rng(3)
    truths, lengths = np.array([10.0, 20.0, 40.0]), (5, 5, 10)
    mean = float(np.average(truths, weights=lengths))
    held = 0

    for _ in range(1000):
        values = truths + np.array([1.0, 3.0, 4.0]) * generator.standard_normal(3)
        widths = 1.96 * np.array([1.0, 3.0, 4.0])
        rows = zip((0, 5, 10), lengths, values, widths, strict=True)
        found = interval_of_average([NoiseWindow(at, n, v, v - width, v + width, v) for at, n, v, width in rows])
        assert found is not None
        held += found[0] <= mean <= found[1]

    assert abs(held / 1000 - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 1000)


def test_an_average_of_nothing_has_no_interval() -> None:
    assert interval_of_average([NoiseWindow(0, 10, None, 5.0, None, 7.0)]) is None
