"""Best learning rates of sweeps: planted curves are found, and what cannot be told apart is said so."""

import math

import numpy as np
import pytest

from noisescale_core.theory.learning_rate import RuleFamily
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.sweeps.learning_rate_sweep.best_rates import BestRate, best_rates
from noisescale_server.analysis.sweeps.learning_rate_sweep.claims import claims
from noisescale_server.analysis.sweeps.learning_rate_sweep.curves import CurveName
from noisescale_server.analysis.sweeps.learning_rate_sweep.fit import NoRateFits, RateFits, fit_rates
from noisescale_server.analysis.sweeps.steps_to_target.crossing import Direction, MetricCurve
from noisescale_server.analysis.sweeps.steps_to_target.setting import Trial, settings_of

SIZES = 2.0 ** np.arange(3, 14)


def sgd(batch: float) -> float:
    """The published fit to SVHN: McCandlish et al. 2018, appendix D.2, footnote 20."""
    return 0.27 / (1 + 96 / batch)


def adam(batch: float) -> float:
    return 0.01 / (1 + 500 / batch) ** 0.6


def square_root(batch: float) -> float:
    return 1e-4 * math.sqrt(batch)


def surge(batch: float) -> float:
    return 2 * 0.01 / (math.sqrt(300 / batch) + math.sqrt(batch / 300))


def tuned(truth, rng: np.random.Generator, *, step: float = 2.0, noise: float = 0.1, sizes=SIZES) -> list[BestRate]:
    """The grid point next to the true best rate, which tuning misses by its noise; each batch size has its own grid."""
    found = []
    for size in sizes:
        log_rate = math.log(truth(size)) + noise * rng.normal()
        offset = rng.uniform()
        lr = step ** (round(log_rate / math.log(step) - offset) + offset)
        found.append(BestRate(float(size), lr, lr / step**0.5, lr * step**0.5, 100.0, 5, 1, is_at_grid_edge=False))
    return found


def possible(fits: RateFits) -> set[CurveName]:
    return {one.curve.name for one in fits.curves if one.has_support}


class TestFits:
    @pytest.mark.parametrize(
        ("truth", "name", "parameters"),
        [
            (sgd, CurveName.SATURATING_SGD, {"limit": 0.27, "batch_scale": 96.0}),
            (adam, CurveName.SATURATING, {"limit": 0.01, "batch_scale": 500.0, "exponent": 0.6}),
            (square_root, CurveName.SQUARE_ROOT, {"lr_at_one": 1e-4}),
            (surge, CurveName.SURGE, {"peak": 0.01, "peak_batch": 300.0}),
        ],
    )
    def test_exact_rates_give_the_planted_parameters(self, truth, name: CurveName, parameters: dict) -> None:
        rates = [BestRate(float(b), truth(b), truth(b) / 1.4, truth(b) * 1.4, 100.0, 5, 1, False) for b in SIZES]

        fits = fit_rates(rates)

        assert isinstance(fits, RateFits)
        found = fits.of(name)
        assert found.has_support
        for parameter, value in parameters.items():
            assert found.estimates[parameter].value == pytest.approx(value, rel=1e-3)
        assert found.at(64.0).value == pytest.approx(truth(64.0), rel=1e-3)

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        ("truth", "name", "parameter", "value"),
        [
            (sgd, CurveName.SATURATING_SGD, "batch_scale", 96.0),
            pytest.param(sgd, CurveName.SATURATING_SGD, "limit", 0.27, marks=pytest.mark.slow),
            pytest.param(sgd, CurveName.SATURATING, "exponent", 1.0, marks=pytest.mark.slow),
            (adam, CurveName.SATURATING, "exponent", 0.6),
            (surge, CurveName.SURGE, "peak_batch", 300.0),
        ],
    )
    def test_intervals_hold_on_grids_of_a_factor_of_two(
        self, truth, name: CurveName, parameter: str, value: float
    ) -> None:
        rng, inside, num_draws = np.random.default_rng(3), 0, 20

        for _ in range(num_draws):
            inside += fit_rates(tuned(truth, rng)).of(name).estimates[parameter].holds(value)

        assert inside / num_draws >= 0.95 - 5 * math.sqrt(0.95 * 0.05 / num_draws)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("truth", "name", "parameter", "value"),
        [
            (sgd, CurveName.SATURATING_SGD, "batch_scale", 96.0),
            (adam, CurveName.SATURATING, "exponent", 0.6),
            (surge, CurveName.SURGE, "peak_batch", 300.0),
        ],
    )
    def test_coverage_of_parameters(self, truth, name: CurveName, parameter: str, value: float) -> None:
        rng = np.random.default_rng(5)

        inside = sum(fit_rates(tuned(truth, rng)).of(name).estimates[parameter].holds(value) for _ in range(500))

        assert inside / 500 > 0.925

    @pytest.mark.thorough
    def test_the_true_curve_is_hardly_ever_excluded_and_a_short_range_cannot_tell(self) -> None:
        rng, kept, told = np.random.default_rng(7), 0, 0

        for _ in range(15):
            fits = fit_rates(tuned(square_root, rng, sizes=SIZES[:6]))
            kept += CurveName.SQUARE_ROOT in possible(fits)
            told += fits.can_tell

        assert kept >= 14
        assert told <= 2

    def test_over_ten_octaves_a_fine_grid_tells_sgd_from_a_power_law(self) -> None:
        fits = fit_rates(tuned(sgd, np.random.default_rng(8), step=1.4))

        assert fits.can_tell
        assert possible(fits) <= {CurveName.SATURATING, CurveName.SATURATING_SGD}
        assert "0.27" not in fits.explanation
        assert "follow" in fits.explanation

    def test_what_cannot_be_told_apart_is_said_plainly(self) -> None:
        fits = fit_rates(tuned(square_root, np.random.default_rng(9), sizes=SIZES[:4]))

        assert not fits.can_tell
        assert "cannot tell" in fits.explanation

    def test_scatter_beyond_the_grid_widens_every_interval(self) -> None:
        calm = fit_rates(tuned(sgd, np.random.default_rng(10), step=1.1, noise=0.0))
        wild = fit_rates(tuned(sgd, np.random.default_rng(10), step=1.1, noise=0.4))

        assert wild.error_factor > 3 > calm.error_factor
        width = [math.log(one.at(64.0).high / one.at(64.0).low) for one in (calm.curves[0], wild.curves[0])]
        assert width[1] > 3 * width[0]

    def test_rates_at_the_edge_of_their_grid_are_left_out(self) -> None:
        rates = tuned(sgd, np.random.default_rng(11))
        open_end = BestRate(2.0**14, 0.01, None, 0.02, 100.0, 3, 1, is_at_grid_edge=True)

        fits = fit_rates([*rates, open_end])

        assert 2.0**14 not in fits.used
        assert len(fits.used) == len(rates)

    def test_two_batch_sizes_are_no_curve(self) -> None:
        found = fit_rates(tuned(sgd, np.random.default_rng(12), sizes=SIZES[:2]))

        assert isinstance(found, NoRateFits)
        assert "try rates beyond" in found.explanation


class TestClaims:
    CRITICAL = Estimate(96.0, 80.0, 120.0, 0.95)

    def test_sgd_in_proportion_saturating_and_bending_at_the_critical_batch(self) -> None:
        fits = fit_rates(tuned(sgd, np.random.default_rng(8), step=1.4))

        found = claims(fits, RuleFamily.SGD, self.CRITICAL)

        assert [claim.holds for claim in found] == [True, True, True]
        assert found[0].estimate.low < 1 < found[0].estimate.high

    def test_a_square_root_contradicts_what_is_claimed_of_sgd(self) -> None:
        truth = [BestRate(float(b), 0.01 / (1 + 500 / b) ** 0.5, 0.0, 0.0, 1.0, 5, 1, False) for b in SIZES]
        rates = [BestRate(r.batch_size, r.lr, r.lr / 1.05, r.lr * 1.05, 1.0, 5, 1, False) for r in truth]

        found = claims(fit_rates(rates), RuleFamily.SGD, Estimate(500.0, 400.0, 600.0, 0.95))

        assert found[0].holds is False
        assert claims(fit_rates(rates), RuleFamily.ADAM, None)[0].holds is True

    def test_nothing_is_claimed_of_other_optimizers(self) -> None:
        assert claims(fit_rates(tuned(sgd, np.random.default_rng(8))), RuleFamily.OTHER, self.CRITICAL) == ()


class TestBestRates:
    def trials(self, steps: dict[float, tuple[float, ...]]) -> list[Trial]:
        """Losses that meet 1 after these steps of the seeds of each rate."""
        grid = tuple(float(step) for step in range(1, 400))
        return [
            Trial(64.0, lr, seed, MetricCurve(grid, tuple((step / need) ** -0.5 for step in grid), Direction.MIN))
            for lr, needs in steps.items()
            for seed, need in enumerate(needs)
        ]

    def test_whiskers_reach_half_way_to_the_neighbours(self) -> None:
        (rate,) = best_rates(settings_of(self.trials({0.1: (150,), 0.2: (100,), 0.8: (180,)})), 1.0)

        assert (rate.lr, rate.num_as_good, rate.is_at_grid_edge) == (pytest.approx(0.2), 1, False)
        assert (rate.low, rate.high) == (pytest.approx(math.sqrt(0.02)), pytest.approx(0.4))
        assert rate.log_standard_error == pytest.approx(math.log(rate.high / rate.low) / math.sqrt(12))

    def test_rates_that_noise_cannot_tell_apart_are_one_wide_optimum(self) -> None:
        noisy = {0.1: (150, 160, 170), 0.2: (90, 100, 115), 0.4: (95, 101, 110), 0.8: (180, 190, 200)}

        (rate,) = best_rates(settings_of(self.trials(noisy)), 1.0)

        assert rate.num_as_good == 2
        assert rate.lr == pytest.approx(math.sqrt(0.08))
        assert (rate.low, rate.high) == (pytest.approx(math.sqrt(0.02)), pytest.approx(math.sqrt(0.32)))

    def test_the_last_rate_tried_has_an_open_end(self) -> None:
        (rate,) = best_rates(settings_of(self.trials({0.1: (150,), 0.2: (100,)})), 1.0)

        assert (rate.is_at_grid_edge, rate.high, rate.log_standard_error) == (True, None, None)

    def test_a_divergence_ends_the_grid(self) -> None:
        diverged = Trial(64.0, 0.4, 0, None)

        (rate,) = best_rates(settings_of([*self.trials({0.1: (150,), 0.2: (100,)}), diverged]), 1.0)

        assert (rate.is_at_grid_edge, rate.high) == (False, pytest.approx(math.sqrt(0.08)))

    def test_a_single_rate_was_not_tuned(self) -> None:
        assert best_rates(settings_of(self.trials({0.1: (150,)})), 1.0) == ()
