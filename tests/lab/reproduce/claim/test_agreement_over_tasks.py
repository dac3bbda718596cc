import pytest

from noisescale_lab.reproduce.claim.judged.retrospect import PUBLISHED, Point, agreement, exclusions, series
from reproduced_tasks import make_result


def test_noise_scales_that_are_all_half_of_b_crit_lie_on_a_line_and_off_by_two() -> None:
    points = [Point(f"task {place}", 0.1, 10.0**place, 2 * 10.0**place) for place in range(6)]

    found = agreement(points)

    assert found is not None
    assert found.r_squared_of_fit.value == pytest.approx(1)
    assert found.slope.value == pytest.approx(1)
    assert found.rms_factor.value == pytest.approx(2)
    assert found.within_factor_3.value == 1
    assert found.decades == pytest.approx(5)


def test_the_published_table_has_the_correlation_that_is_known_of_it() -> None:
    """0.765 over its eight single numbers."""
    found = agreement(PUBLISHED)

    assert found is not None
    assert found.r_squared_of_fit.value == pytest.approx(0.765, abs=0.001)
    assert found.r_squared_of_fit.low < 0.765 < found.r_squared_of_fit.high


def test_four_tasks_with_many_targets_give_no_figures() -> None:
    points = [Point(f"task {place % 4}", place, 10.0 + place, 20.0 + place) for place in range(12)]

    assert agreement(points) is None


def test_series_leave_groups_out_and_name_what_does_not_count() -> None:
    results = [
        make_result("a", critical_batch=10, noise_scale=12),
        make_result("b", critical_batch=100, noise_scale=90, group="own"),
        make_result("c", critical_batch=1000, noise_scale=1500, group="label_noise"),
        make_result("d", critical_batch=50, noise_scale=40, exclusion="S_min is 3.0, below 5 steps"),
    ]

    found = {(one.average, one.targets, one.tasks): one for one in series(results)}

    assert len(found["near_critical", "all", "all tasks"].points) == 7
    assert {point.task for point in found["all_batches", "hardest", "without both"].points} == {"a", "d"}
    assert found["published", "all", "Table 1"].points == PUBLISHED
    assert "d at 0.5: S_min is 3.0, below 5 steps" in exclusions(results)
    assert any(line.startswith("charlm_transformer: left out of --quick") for line in exclusions(results))
