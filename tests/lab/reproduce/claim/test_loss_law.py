import math
from dataclasses import replace

import numpy as np
import pytest

from noisescale_lab.reproduce.claim.judged.loss_law import least_squares, loss_laws, size_effect
from noisescale_lab.reproduce.claim.noise_over_run import NoiseWindow
from noisescale_lab.reproduce.claim.task_result import TaskResult
from reproduced_tasks import make_result


def made(task: str, factor: float = 1.0) -> TaskResult:
    """Loss 10 ÷ (step + 1), noise scale 3 ÷ loss² times a factor, known at ten windows."""
    curve = tuple((step, 10.0 / (step + 1)) for step in range(101))
    spans = tuple(
        NoiseWindow(first, 10, value, value / 2, value * 2, value)
        for first in range(0, 100, 10)
        for value in [factor * 3 / curve[first + 5][1] ** 2]
    )
    result = make_result(task)
    return replace(result, runs=tuple(replace(run, curve=curve, spans=spans) for run in result.runs))


def test_the_exponent_of_a_power_of_the_loss_comes_back() -> None:
    (law,) = loss_laws([made("digits_mlp")])

    assert law.exponent.value == pytest.approx(-2, abs=1e-6)
    assert law.r_squared == pytest.approx(1)
    assert law.highest_loss > law.lowest_loss


def test_sizes_that_differ_by_their_loss_alone_have_no_effect_at_an_equal_one() -> None:
    found = size_effect([made("digits_mlp_16"), made("digits_mlp"), made("digits_mlp_256")])

    assert found is not None
    assert found.sizes == (16, 64, 256)
    assert found.size_exponent.value == pytest.approx(0, abs=1e-6)
    assert found.loss_exponent.value == pytest.approx(-2, abs=1e-6)


def test_a_size_that_doubles_the_noise_scale_at_an_equal_loss_is_seen() -> None:
    found = size_effect([made("digits_mlp_16"), made("digits_mlp", 2), made("digits_mlp_256", 4)])

    assert found is not None
    assert found.size_exponent.value == pytest.approx(math.log(2) / math.log(4), abs=1e-6)


def test_one_size_alone_gives_no_test() -> None:
    assert size_effect([made("digits_mlp")]) is None


def test_intervals_of_slopes_hold_the_truth_as_often_as_they_say() -> None:
    generator = np.random.default_rng(0)
    columns = generator.standard_normal((2, 12))
    held = 0

    for _ in range(400):
        found = least_squares(list(columns), 1 + 2 * columns[0] - columns[1] + generator.standard_normal(12))
        assert found is not None
        held += found.slopes[0].low <= 2 <= found.slopes[0].high

    assert abs(held / 400 - 0.95) < 5 * math.sqrt(0.95 * 0.05 / 400)


def test_columns_that_say_the_same_have_no_slopes() -> None:
    assert least_squares([[1, 2, 3, 4], [2, 4, 6, 8]], [1, 2, 3, 5]) is None
