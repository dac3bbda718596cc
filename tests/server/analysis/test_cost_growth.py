"""Compute of a training, and the doubling time: its interval holds planted truth through gaps and outliers."""

import math
import random

import pytest

from noisescale_server.analysis.cost.growth import (
    LEAST_TRAININGS,
    device_trend,
    fit_growth,
    from_device_hours,
    from_parameters,
    known_device,
    published_line,
)

DAYS_PER_MONTH = 365.25 / 12
NUM_DRAWS, LEAST_HOLDING = 300, 0.93


def drawn(seed: int, *, months: float, num: int = 30) -> tuple[list[float], list[float]]:
    """Three years of trainings that double so often, a year of silence in them, and one in ten far off."""
    rng = random.Random(seed)
    days = sorted(rng.choice([rng.uniform(0, 365), rng.uniform(730, 1095)]) for _ in range(num))
    logs = [day / DAYS_PER_MONTH / months + rng.gauss(0, 1.5) for day in days]
    off = [log + rng.choice([-10, 10]) if rng.random() < 0.1 else log for log in logs]
    return days, [2.0**log for log in off]


def test_the_interval_holds_a_planted_doubling_time_in_93_of_100_draws() -> None:
    holding = 0
    for seed in range(NUM_DRAWS):
        found = fit_growth(*drawn(seed, months=3.4))
        assert found is not None
        assert found.months is not None
        holding += found.months.holds(3.4)

    assert holding >= LEAST_HOLDING * NUM_DRAWS


def test_an_exact_line_is_found_exactly_whatever_three_of_twenty_trainings_say() -> None:
    days = [50.0 * i for i in range(20)]
    values = [3.0 * 2.0 ** (day / DAYS_PER_MONTH / 6) for day in days]
    values[3], values[9], values[15] = 1e9, 1e-9, 1e6

    found = fit_growth(days, values)

    assert found is not None
    assert found.months is not None
    assert found.months.value == pytest.approx(6)
    assert found.at_end == pytest.approx(values[-1])


def test_spending_and_compute_per_usd_add_up_to_compute() -> None:
    """Where each follows a line: 3 doublings a year are 2 of willingness and 1 of price."""
    years = [0.1 * i for i in range(12)]
    days = [365.25 * year for year in years]
    usd = [100 * 2.0 ** (2 * year) for year in years]
    per_usd = [0.01 * 2.0**year for year in years]
    compute = [a * b for a, b in zip(usd, per_usd, strict=True)]

    slopes = [fit_growth(days, values) for values in (compute, usd, per_usd)]

    assert [one and one.doublings_per_year.value for one in slopes] == pytest.approx([3, 2, 1])


def test_what_does_not_grow_has_no_doubling_time_and_slow_growth_an_open_end() -> None:
    falling = fit_growth([30.0 * i for i in range(9)], [0.5**i for i in range(9)])
    rng = random.Random(3)
    unsure = fit_growth([10.0 * i for i in range(12)], [2.0 ** rng.gauss(0.02 * i, 2) for i in range(12)])

    assert falling is not None
    assert falling.months is None
    assert unsure is not None
    assert unsure.doublings_per_year.low is not None
    assert unsure.doublings_per_year.low < 0
    assert unsure.months is None or unsure.months.high is None


def test_few_trainings_or_few_days_say_nothing() -> None:
    few = LEAST_TRAININGS - 1

    assert fit_growth([100.0 * i for i in range(few)], [1.0] * few) is None
    assert fit_growth([0.5 * i for i in range(20)], [1.0] * 20) is None


def test_compute_is_six_operations_a_parameter_and_unit_or_hours_at_a_share_of_the_peak() -> None:
    """GPT-3: 175e9 parameters, 300e9 tokens: 3640 PF-days by its own table D.1, which counts 3.14e23 operations."""
    assert from_parameters(174.6e9, 300e9).pf_days == pytest.approx(3640, rel=2e-3)
    v100 = known_device("Tesla V100-SXM2-32GB")
    assert v100 is not None
    found = from_device_hours(24 * 8, v100, utilisation=0.5)
    assert found.pf_days == pytest.approx(8 * 125e12 * 0.5 / 1e15)
    assert found.basis == "device_hours"
    assert "50% utilisation" in found.said


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("GeForce GTX 1080 Ti", "GTX 1080 Ti"),
        ("NVIDIA L40S", None),
        ("x86_64", None),
        (None, None),
    ],
)
def test_a_device_is_known_by_the_name_that_jobs_report(name: str | None, device: str | None) -> None:
    found = known_device(name)

    assert (found and found.device) == device


def test_a_published_line_doubles_in_its_months_and_ends_where_it_is_told() -> None:
    line = published_line([0.0, 3.4 * DAYS_PER_MONTH], at_end=8.0, months=3.4)

    assert line == pytest.approx([4.0, 8.0])
    assert math.log2(line[1] / line[0]) == pytest.approx(1)


def test_devices_have_grown_and_their_peaks_faster_than_their_memories() -> None:
    found = device_trend()

    assert found.peak is not None
    assert found.memory is not None
    assert found.peak.doublings_per_year.value > found.memory.doublings_per_year.value > 0
