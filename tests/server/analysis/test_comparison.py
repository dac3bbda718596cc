"""Noise scales against critical batches over tasks; the published table gives the figures of its authors' data."""

import math

import numpy as np
import pytest

from noisescale_server.analysis.comparison.comparison import kappa_estimate, statistics
from noisescale_server.analysis.comparison.task_order import Rung, task_order
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.series.averages import Window, averages
from noisescale_server.services.comparison import reference_values
from noisescale_server.services.comparison.reference_values import published_tasks


@pytest.fixture(scope="module")
def published() -> reference_values.PublishedComparison:
    return reference_values.published(reference_values.load())


@pytest.mark.parametrize(("place", "num_tasks", "r_squared"), [(0, 8, 0.765), (1, 9, 0.755), (2, 10, 0.842)])
def test_table_1_gives_its_squared_correlation(published, place: int, num_tasks: int, r_squared: float) -> None:
    found = published.statistics[place].statistics

    assert found.num_tasks == num_tasks
    assert found.r_squared.value == pytest.approx(r_squared, abs=5e-4)
    assert found.r_squared.low < r_squared < found.r_squared.high


def test_table_1_spans_decades_and_is_still_off_by_a_factor(published) -> None:
    """What r² hides: the noise scale is off by a factor of 7 (rms), and within 2 of half of the tasks at most."""
    found = published.statistics[0].statistics

    assert found.decades_of_noise_scale > 5
    assert found.rms_factor.value == pytest.approx(7.2, abs=0.1)
    assert found.within_factor_2.value == pytest.approx(2 / 8)
    assert found.within_factor_3.value == pytest.approx(3 / 8)
    assert 0.5 < found.median_abs_log10_kappa.value < 1


def test_only_what_was_published_as_a_range_or_a_bound_is_one(published) -> None:
    forms = {one.task: one.form for one in published.tasks}

    assert len(forms) == 10
    assert forms.pop("Atari (7 games, A2C)") == "range"
    assert forms.pop("Dota 5v5 (PPO)") == "lower_bound"
    assert set(forms.values()) == {"point"}


def test_harder_published_tasks_have_larger_numbers(published) -> None:
    """Images rise, and from Pong, which is inside the range of Atari, to Dota 5v5 a factor of 10,000 is possible."""
    assert [order.holds for order in published.orders] == [True] * 4
    by_place = {(order.chain, order.quantity): order for order in published.orders}
    of_play = by_place["reinforcement learning", "noise_scale"]
    assert of_play.factor_low < 10_000 < of_play.factor_high
    assert by_place["reinforcement learning", "critical_batch"].factor_high is None


def test_published_tasks_keep_their_source_and_start(published) -> None:
    tasks = {one.task: one for one in published_tasks(reference_values.load())}

    assert tasks["SVHN"].noise_scale_at_start.value == 300
    assert all(one.source and one.source_address and one.evidence for one in tasks.values())


def test_four_tasks_have_no_statistics() -> None:
    assert statistics([(1.0, 2.0), (10.0, 11.0), (100.0, 90.0), (1000.0, 1300.0)]) is None


def test_the_interval_over_tasks_holds_the_truth() -> None:
    """Tasks drawn with log10 κ normal of sd 0.3: the rms factor and the slope of all tasks lie inside mostly."""
    truth, inside, num_draws = 10**0.3, 0, 60
    rng = np.random.default_rng(5)

    for _ in range(num_draws):
        scale = 10 ** rng.uniform(1, 6, 20)
        found = statistics(list(zip(scale, scale * 10 ** rng.normal(0, 0.3, 20), strict=True)))
        inside += found.rms_factor.holds(truth)

    assert inside / num_draws > 0.8


def test_the_identity_explains_less_than_a_line() -> None:
    scale = np.geomspace(10, 1e5, 8)

    found = statistics([(one, 5 * one) for one in scale])

    assert found.r_squared.value == pytest.approx(1.0)
    assert found.slope.value == pytest.approx(1.0)
    assert found.typical_kappa.value == pytest.approx(5.0)
    assert found.r_squared_of_identity.value < 1
    assert found.within_factor_3.value == 0.0
    assert 0 < found.within_factor_3.high < 0.5


def test_kappa_takes_both_errors_in_quadrature() -> None:
    scale, critical = Estimate(100.0, 50.0, 200.0, 0.95), Estimate(300.0, 150.0, 600.0, 0.95)

    found = kappa_estimate(scale, critical)

    assert found.value == pytest.approx(3.0)
    assert math.log(found.high / found.value) == pytest.approx(math.sqrt(2) * math.log(2))
    assert math.log(found.value / found.low) == pytest.approx(math.sqrt(2) * math.log(2))
    assert kappa_estimate(Estimate(100.0, 50.0, None, 0.95), critical).low is None
    assert kappa_estimate(None, critical) is None


def test_averages_of_a_run_are_four_different_numbers() -> None:
    """φ = 100 for 30 steps at B = 100, then 400 for 10 steps at B = 800; ideal steps 15 and 20/3."""
    windows = [Window(30, 100.0, 100.0, 90.0, 110.0, 0.95), Window(10, 800.0, 400.0, 300.0, 500.0, 0.95)]

    found = averages(windows)

    assert found.run_average.value == pytest.approx(175.0)
    assert found.ideal_step_average.value == pytest.approx((15 * 100 + 20 / 3 * 400) / (15 + 20 / 3))
    assert found.equal_example_average.value == pytest.approx((3000 * 100 + 8000 * 400) / 11000)
    assert (found.start.value, found.start.low, found.start.high) == (100.0, 90.0, 110.0)
    assert found.run_average.low == pytest.approx(142.5)
    assert averages([]) is None


def test_a_number_that_may_be_zero_bounds_no_factor() -> None:
    order = task_order("chain", "noise_scale", [Rung("a", 0.0, 2.0), Rung("b", 3.0, 4.0)])

    assert (order.factor_low, order.factor_high) == (1.5, None)


@pytest.mark.parametrize(
    ("rungs", "holds"),
    [
        ([Rung("a", 1, 2), Rung("b", 3, 4)], True),
        ([Rung("a", 1, 3), Rung("b", 2, 4)], None),
        ([Rung("a", 5, 6), Rung("b", 2, 4)], False),
        ([Rung("a", 1, None), Rung("b", 2, 4)], None),
    ],
)
def test_an_order_holds_only_where_intervals_are_apart(rungs: list[Rung], holds: bool | None) -> None:
    assert task_order("chain", "noise_scale", rungs).holds is holds
