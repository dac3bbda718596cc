"""Size, learning rate and batch at equal loss: planted effects, intervals that hold, and what is not known."""

import math

import numpy as np
import pytest

from noisescale_server.analysis.comparison.equal_loss import LossWindow, NotKnown
from noisescale_server.analysis.comparison.model_size import SizedRun, SizeEffect, size_effect
from noisescale_server.analysis.comparison.temperature_effect import TemperatureEffect, temperature_effect

SIZES = (1e6, 1e6, 1e7, 1e7, 1e8, 1e8)


def windows(
    rng: np.random.Generator,
    *,
    size: float = 1e7,
    effect: float = 0.0,
    power: float = -3.0,
    g: float = 0.0,
    h: float = 0.0,
    lr: tuple[float, float] = (0.1, 0.1),
    batch: float = 64.0,
    shared: float = 0.1,
    error: float = 0.1,
) -> tuple[LossWindow, ...]:
    """Fifteen windows of a run; larger models reach lower losses, and the learning rate drops after nine windows."""
    losses = np.geomspace(4, 2.3 * (size / 1e7) ** -0.05, 15)
    rates = np.where(np.arange(15) < 9, *lr)
    of_run = shared * rng.normal()
    log_values = 5 + power * np.log(losses) + effect * np.log10(size / 1e7) + of_run
    log_values += g * np.log(rates / 0.1) + h * math.log(batch / 64) + error * rng.normal(size=15)
    return tuple(
        LossWindow(float(loss), float(value), 0.1, float(rate), batch, rate >= 0.1 * max(lr))
        for loss, value, rate in zip(losses, log_values, rates, strict=True)
    )


def sized(rng: np.random.Generator, **planted: float) -> list[SizedRun]:
    return [SizedRun(size, windows(rng, size=size, **planted)) for size in SIZES]


class TestModelSize:
    @pytest.mark.parametrize("effect", [0.0, 0.3])
    def test_the_planted_effect_lies_inside_as_often_as_it_says(self, effect: float) -> None:
        rng, inside, num_draws = np.random.default_rng(1), np.zeros(2), 100

        for _ in range(num_draws):
            found = size_effect(sized(rng, effect=effect))
            inside += found.factor_per_decade.holds(math.exp(effect)), found.loss_power.holds(-3.0)

        assert (np.abs(inside / num_draws - 0.95) < 5 * math.sqrt(0.95 * 0.05 / num_draws)).all()

    @pytest.mark.slow
    @pytest.mark.parametrize("sizes", [(1e6, 1e7, 1e8), SIZES, SIZES * 2])
    def test_coverage_with_three_to_twelve_runs(self, sizes: tuple[float, ...]) -> None:
        rng, inside = np.random.default_rng(2), 0

        for _ in range(1000):
            found = size_effect([SizedRun(size, windows(rng, size=size, effect=0.1)) for size in sizes])
            inside += found.factor_per_decade.holds(math.exp(0.1))

        assert 0.925 < inside / 1000 < 0.975

    def test_no_effect_is_said_with_its_interval(self) -> None:
        found = size_effect(sized(np.random.default_rng(3), shared=0.03))

        assert found.verdict == "no_effect_seen"
        assert found.explanation.startswith("No: ×")
        assert "per 10 × size at equal loss" in found.explanation
        assert found.has_common_losses
        assert (found.num_runs, found.num_sizes, found.num_windows) == (6, 3, 90)

    def test_a_plain_comparison_of_sizes_would_see_an_effect_that_the_loss_explains(self) -> None:
        """Larger models reach lower losses, where the noise scale is larger: at equal loss nothing is left."""
        runs = sized(np.random.default_rng(4), power=-12.0, shared=0.02)
        means = {run.size: np.mean([one.log_value for one in run.windows]) for run in runs}

        found = size_effect(runs)

        assert means[1e8] - means[1e6] > 0.5
        assert abs(math.log(found.factor_per_decade.value)) < 0.1

    def test_a_large_effect_is_named(self) -> None:
        larger = size_effect(sized(np.random.default_rng(5), effect=0.7, shared=0.03))
        smaller = size_effect(sized(np.random.default_rng(5), effect=-0.7, shared=0.03))

        assert (larger.verdict, smaller.verdict) == ("larger", "smaller")

    def test_three_noisy_runs_cannot_tell(self) -> None:
        rng = np.random.default_rng(6)

        found = size_effect([SizedRun(size, windows(rng, size=size, shared=0.5)) for size in (1e6, 1e7, 1e8)])

        assert isinstance(found, SizeEffect)
        assert found.verdict == "cannot_tell"
        assert found.interaction is None

    def test_windows_after_the_decay_do_not_count(self) -> None:
        rng = np.random.default_rng(7)
        runs = [SizedRun(size, windows(rng, size=size, lr=(0.1, 0.005), g=-1.0, shared=0.02)) for size in SIZES]

        found = size_effect(runs)

        assert found.num_windows == 9 * len(SIZES)
        assert found.loss_power.holds(-3.0)

    def test_one_size_is_not_enough(self) -> None:
        rng = np.random.default_rng(8)

        found = size_effect([SizedRun(1e6, windows(rng)) for _ in range(4)])

        assert isinstance(found, NotKnown)
        assert "4 runs of 1 sizes" in found.explanation


class TestTemperature:
    SETTINGS = (
        ((0.1, 0.01), 64.0),
        ((0.2, 0.06), 128.0),
        ((0.05, 0.05), 64.0),
        ((0.1, 0.05), 256.0),
        ((0.2, 0.02), 32.0),
        ((0.1, 0.1), 64.0),
    )

    def runs(self, rng: np.random.Generator, **planted: float) -> list[tuple[LossWindow, ...]]:
        return [windows(rng, lr=lr, batch=batch, **planted) for lr, batch in self.SETTINGS]

    def test_both_exponents_lie_inside_as_often_as_they_say(self) -> None:
        rng, inside, num_draws = np.random.default_rng(9), np.zeros(3), 100

        for _ in range(num_draws):
            found = temperature_effect(self.runs(rng, g=-1.0, h=0.5))
            assert isinstance(found, TemperatureEffect)
            inside += found.learning_rate.holds(-1.0), found.batch.holds(0.5), found.loss_power.holds(-3.0)

        assert (inside / num_draws > 0.95 - 5 * math.sqrt(0.95 * 0.05 / num_draws)).all()

    def test_what_never_moved_has_no_exponent(self) -> None:
        rng = np.random.default_rng(10)

        found = temperature_effect([windows(rng, lr=lr, g=-1.0) for lr, _ in self.SETTINGS])

        assert found.batch is None
        assert found.learning_rate.low < -1 < found.learning_rate.high
        assert found.exponents().batch == 0.0

    def test_runs_alike_in_both_tell_nothing(self) -> None:
        rng = np.random.default_rng(11)

        found = temperature_effect([windows(rng) for _ in range(6)])

        assert isinstance(found, NotKnown)
        assert "vary one" in found.explanation

    def test_three_runs_are_not_enough(self) -> None:
        found = temperature_effect(self.runs(np.random.default_rng(12))[:3])

        assert isinstance(found, NotKnown)
