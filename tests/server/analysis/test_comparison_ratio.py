"""The ratio of two noise scales where both runs have come equally far."""

import math

import pytest

from noisescale_server.analysis.comparison.ratio import Place, first_at_each_loss, ratio_along
from noisescale_server.analysis.estimate import Estimate


def place(x: float, value: float | None, *, factor: float = 1.2, is_resolved: bool = True) -> Place:
    scale = None if value is None else Estimate(value, value / factor, value * factor, 0.95)
    return Place(x, scale, is_resolved and scale is not None)


def test_the_ratio_carries_both_errors() -> None:
    found = ratio_along([place(1, 200)], [place(1, 100)])

    (point,) = found.points
    assert point.ratio.value == pytest.approx(2)
    assert point.ratio.high == pytest.approx(2 * 1.2 ** math.sqrt(2))
    assert point.ratio.low == pytest.approx(2 / 1.2 ** math.sqrt(2))


def test_between_two_windows_the_other_run_is_interpolated_on_a_log_scale() -> None:
    found = ratio_along([place(1.5, 100)], [place(1, 10), place(2, 1000)])

    assert found.points[0].ratio.value == pytest.approx(1)


def test_nothing_is_said_beyond_the_other_run_nor_across_its_gaps() -> None:
    base = [place(1, 10), place(2, None), place(3, 10), place(4, 10)]

    found = ratio_along([place(x, 10) for x in (0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5)], base)

    assert [point.x for point in found.points] == [1, 3, 3.5, 4]


def test_the_mean_is_of_resolved_points_alone_and_its_interval_is_no_narrower_than_theirs() -> None:
    of = [place(x, 200, is_resolved=x < 3) for x in range(4)]

    found = ratio_along(of, [place(x, 100) for x in range(4)])

    assert found.mean is not None
    assert [point.is_resolved for point in found.points] == [True, True, True, False]
    assert (found.mean.value, found.mean.low) == (
        pytest.approx(found.points[0].ratio.value),
        pytest.approx(found.points[0].ratio.low),
    )
    assert ratio_along(of[3:], [place(3, 100)]).mean is None


def test_at_equal_loss_the_window_counts_that_reaches_it_first() -> None:
    """A loss that rises again is not met a second time, or the later noise scale would stand for the earlier one."""
    by_time = [place(3.0, 10), place(2.0, 20), place(2.5, 99), place(2.0, 99), place(1.0, 30)]

    found = first_at_each_loss(by_time)

    assert [one.x for one in found] == [-3.0, -2.0, -1.0]
    assert [one.scale.value for one in found if one.scale] == [10, 20, 30]
