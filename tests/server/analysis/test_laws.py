"""Laws of noise scale and critical batch: planted exponents, intervals that hold, shapes that are told apart."""

import math

import numpy as np
import pytest

from noisescale_server.analysis.errors import AnalysisError
from noisescale_server.analysis.forecast.laws.cluster_robust import cluster_robust
from noisescale_server.analysis.forecast.laws.ladder import Crossing, fit_ladder
from noisescale_server.analysis.forecast.laws.law import Law, NoLaw, curve, fit_law
from noisescale_server.analysis.forecast.laws.shape_fit import LawObservations, fit_shape
from noisescale_server.analysis.forecast.laws.shapes import Axis, ShapeName, shapes

ALPHA, BATCH_AT_ONE = 0.21, 2e8
"""Kaplan et al. 2020, eq. 5.3: transformer language models on WebText2."""


def kaplan(loss: np.ndarray | float) -> np.ndarray:
    return np.log(BATCH_AT_ONE) - np.log(loss) / ALPHA


def power_fit(data: LawObservations):
    power = next(shape for shape in shapes(Axis.LOSS, float(data.x.min())) if shape.name is ShapeName.POWER)
    return fit_shape(power, data)


def of_runs(
    rng: np.random.Generator, *, num_runs: int, shared: float = 0.15, own: float = 0.1, noise_of_loss: float = 0.0
) -> LawObservations:
    """Twelve windows of each run, whose errors have a part in common and one of their own."""
    x, y, cluster = [], [], []
    for number in range(num_runs):
        loss = np.geomspace(4, rng.uniform(2.2, 3), 12)
        y.append(kaplan(loss) + shared * rng.normal() + own * rng.normal(size=12))
        x.append(loss + noise_of_loss * rng.normal(size=12))
        cluster += [number] * 12
    loss, size = np.concatenate(x), 12 * num_runs
    noise = np.full(size, noise_of_loss)
    return LawObservations(loss, np.concatenate(y), np.full(size, own), noise, np.array(cluster))


def of_one_run(rng: np.random.Generator, *, log_value, loss=None, error: float = 0.12, memory: float = 0.0):
    """Twenty windows of a run whose errors go on from one to the next."""
    loss = 4 * np.linspace(1, 20, 20) ** -0.12 if loss is None else loss
    errors = rng.normal(size=20)
    for place in range(1, 20):
        errors[place] = memory * errors[place - 1] + math.sqrt(1 - memory**2) * errors[place]
    cluster = np.arange(20) * 6 // 20
    return LawObservations(loss, log_value(loss) + error * errors, np.full(20, error), np.zeros(20), cluster)


def crossings(rng: np.random.Generator, *, num_sizes: int, shared: float, own: float) -> list[Crossing]:
    """Steps to five targets; a batch size's luck moves all of them together."""
    found = []
    for size in 256 * 2 ** np.linspace(-4, 4, num_sizes):
        luck = shared * rng.normal()
        for target in (0.6, 0.5, 0.45, 0.4, 0.36):
            critical = 256 * (target / 0.4) ** (-1 / 0.3)
            steps = 1000 * (target / 0.4) ** -4 * (1 + critical / size) * math.exp(luck + own * rng.normal())
            found.append(Crossing(target, float(size), steps))
    return found


def coverage(draw, truth_of, *, num_draws: int) -> float:
    return sum(truth_of(draw()) for _ in range(num_draws)) / num_draws


class TestPowerLaw:
    def test_exact_values_give_the_published_constants(self) -> None:
        loss = np.geomspace(4, 2, 10)
        data = LawObservations(loss, kaplan(loss), np.full(10, 0.1), np.zeros(10), np.arange(10))

        law = fit_law(data, Axis.LOSS)

        assert isinstance(law, Law)
        assert law.alpha.value == pytest.approx(ALPHA)
        assert law.power.value == pytest.approx(-1 / ALPHA)
        assert law.at(3.0).curve.value == pytest.approx(1.069e6, rel=1e-3)
        assert law.choice.verdict == "changes_on"

    @pytest.mark.slow
    @pytest.mark.thorough
    @pytest.mark.parametrize(("num_runs", "noise_of_loss"), [(6, 0.0), (6, 0.2)])
    def test_intervals_hold_with_errors_in_clusters_and_a_noisy_loss(self, num_runs: int, noise_of_loss: float) -> None:
        rng = np.random.default_rng(11)

        def holds_power() -> bool:
            fit = power_fit(of_runs(rng, num_runs=num_runs, noise_of_loss=noise_of_loss))
            half = fit.errors.half_width(np.array([0.0, 1.0]), 0.95)
            return abs(fit.parameters[1] + 1 / ALPHA) < half

        share = coverage(holds_power, bool, num_draws=200)

        assert abs(share - 0.95) < 5 * math.sqrt(0.95 * 0.05 / 200)

    @pytest.mark.slow
    @pytest.mark.parametrize(("num_runs", "noise_of_loss"), [(4, 0.0), (6, 0.0), (10, 0.0), (6, 0.2), (12, 0.2)])
    def test_coverage_lies_between_92_5_and_97_5_percent(self, num_runs: int, noise_of_loss: float) -> None:
        rng = np.random.default_rng(12)
        inside = np.zeros(2)
        num_draws = 2000

        for _ in range(num_draws):
            fit = power_fit(of_runs(rng, num_runs=num_runs, noise_of_loss=noise_of_loss))
            inside[0] += abs(fit.parameters[1] + 1 / ALPHA) < fit.errors.half_width(np.array([0.0, 1.0]), 0.95)
            inside[1] += fit.bands(2.0, 0.95)[0].holds(math.exp(kaplan(2.0)))

        assert (inside / num_draws > 0.925).all()
        assert (inside / num_draws < 0.975).all()

    def test_a_noisy_loss_does_not_flatten_the_law(self) -> None:
        """Least squares on a loss with errors of 0.2 reads too flat; with the loss moved along its error not."""
        rng = np.random.default_rng(3)
        data = [of_runs(rng, num_runs=40, shared=0.0, noise_of_loss=0.2) for _ in range(20)]
        naive = [LawObservations(one.x, one.log_value, one.standard_error, 0 * one.x, one.cluster) for one in data]

        moved, flat = ([power_fit(one).parameters[1] for one in each] for each in (data, naive))

        error = 5 * np.std(moved) / math.sqrt(20)
        assert abs(np.mean(moved) + 1 / ALPHA) < max(error, 0.02 / ALPHA)
        assert np.mean(flat) > -0.95 / ALPHA

    def test_treating_windows_as_independent_would_be_too_sure(self) -> None:
        data = of_runs(np.random.default_rng(4), num_runs=6, shared=0.3)
        alone = LawObservations(data.x, data.log_value, data.standard_error, data.x_standard_error, np.arange(72))

        together, apart = power_fit(data), power_fit(alone)

        contrast = np.array([1.0, math.log(3.0)])
        assert together.errors.half_width(contrast, 0.95) > 2 * apart.errors.half_width(contrast, 0.95)
        assert together.errors.freedom(np.array([0.0, 1.0])) < 6

    def test_one_run_with_errors_that_go_on_is_covered_by_its_sixths(self) -> None:
        rng = np.random.default_rng(6)

        def holds_power() -> bool:
            fit = power_fit(of_one_run(rng, log_value=kaplan, memory=0.5))
            return abs(fit.parameters[1] + 1 / ALPHA) < fit.errors.half_width(np.array([0.0, 1.0]), 0.95)

        share = coverage(holds_power, bool, num_draws=200)

        assert share > 0.95 - 5 * math.sqrt(0.95 * 0.05 / 200)

    def test_an_irreducible_loss_is_found_by_the_profile(self) -> None:
        rng = np.random.default_rng(7)
        data = of_one_run(rng, log_value=lambda loss: 10 - 1.5 * np.log(loss - 2), error=0.03)

        law = fit_law(data, Axis.LOSS)

        assert law.irreducible_loss.low < 2 < law.irreducible_loss.high
        assert law.irreducible_loss.low > 0
        assert law.choice.shape is ShapeName.POWER_ABOVE_LIMIT

    def test_without_one_the_profile_holds_zero(self) -> None:
        law = fit_law(of_one_run(np.random.default_rng(8), log_value=kaplan), Axis.LOSS)

        assert law.irreducible_loss.low == 0.0


class TestForecast:
    def test_the_band_widens_and_beyond_half_a_decade_it_is_far(self) -> None:
        law = fit_law(of_one_run(np.random.default_rng(9), log_value=kaplan), Axis.LOSS)
        near, far = law.at(law.lowest), law.at(law.lowest / 4)

        assert near.curve.high / near.curve.low < far.curve.high / (far.curve.low or 1e-9)
        assert (near.is_extrapolated, near.is_far) == (False, False)
        assert (far.is_extrapolated, far.is_far) == (True, True)
        assert law.decades_beyond(law.highest * 10) == pytest.approx(1.0)

    def test_the_curve_reaches_from_what_was_seen_to_the_end_asked_for(self) -> None:
        law = fit_law(of_one_run(np.random.default_rng(9), log_value=kaplan), Axis.LOSS)

        points = curve(law, 2.0, 30)

        assert len(points) == 30
        assert (points[0].x, points[-1].x) == (pytest.approx(2.0), pytest.approx(law.highest))
        assert all(point.window.low is None or point.window.low <= point.curve.low for point in points)

    @pytest.mark.slow
    @pytest.mark.thorough
    def test_a_further_window_falls_into_its_band(self) -> None:
        rng, inside = np.random.default_rng(10), 0

        for _ in range(40):
            law = fit_law(of_one_run(rng, log_value=kaplan), Axis.LOSS)
            inside += law.at(2.6).window.holds(math.exp(kaplan(2.6) + 0.12 * rng.normal()))

        assert inside >= 34


class TestChoice:
    STEPS = np.linspace(500, 10_000, 20)

    def verdicts(self, axis: Axis, log_value, x: np.ndarray | None = None) -> dict[str, int]:
        rng, found = np.random.default_rng(13), {}
        for _ in range(20):
            law = fit_law(of_one_run(rng, log_value=log_value, loss=x), axis)
            found[law.choice.verdict] = found.get(law.choice.verdict, 0) + 1
        return found

    def test_growth_over_steps_is_told_from_a_plateau(self) -> None:
        grows = self.verdicts(Axis.STEPS, lambda t: 5 + 0.3 * np.log(t), self.STEPS)
        levels_off = self.verdicts(Axis.STEPS, lambda t: 7 + np.log(-np.expm1(-t / 1500)), self.STEPS)

        assert grows.get("changes_on", 0) >= 15
        assert grows.get("levels_off", 0) <= 2
        assert levels_off.get("levels_off", 0) >= 15
        assert levels_off.get("changes_on", 0) <= 1

    @pytest.mark.slow
    @pytest.mark.thorough
    def test_a_plateau_over_the_loss_is_seen(self) -> None:
        found = self.verdicts(Axis.LOSS, lambda loss: 10 + np.log(-np.expm1(-((3.4 / loss) ** 15))))

        assert found.get("levels_off", 0) >= 15

    def test_no_change_is_constant_or_not_told(self) -> None:
        found = self.verdicts(Axis.STEPS, lambda t: 7 + 0 * t, self.STEPS)

        assert found.get("constant", 0) + found.get("cannot_tell", 0) >= 19
        assert found.get("constant", 0) >= 5

    def test_cannot_tell_is_said_plainly_and_the_band_holds_every_shape_with_support(self) -> None:
        rng = np.random.default_rng(21)
        laws = [fit_law(of_one_run(rng, log_value=lambda t: 7 + 0 * t, loss=self.STEPS), Axis.STEPS) for _ in range(20)]

        law = next(one for one in laws if one.choice.verdict == "cannot_tell")

        assert "cannot tell" in law.choice.explanation
        point = law.at(30_000).curve
        supported = {one.shape for one in law.choice.candidates if one.has_support}
        bands = [fit.bands(30_000, 0.95)[0] for fit in law.fits if fit.shape.name in supported]
        assert len(bands) > 1
        assert (point.low, point.high) == (min(one.low for one in bands), max(one.high for one in bands))


class TestLadder:
    def test_exact_steps_give_the_planted_exponent(self) -> None:
        law = fit_ladder(crossings(np.random.default_rng(0), num_sizes=7, shared=0.0, own=0.0))

        assert isinstance(law, Law)
        assert law.alpha.value == pytest.approx(0.3, rel=1e-4)
        assert law.at(0.4).curve.value == pytest.approx(256, rel=1e-3)

    @pytest.mark.slow
    def test_intervals_hold_when_a_batch_size_moves_all_its_targets(self) -> None:
        rng, inside = np.random.default_rng(1), np.zeros(2)

        for _ in range(20):
            law = fit_ladder(crossings(rng, num_sizes=7, shared=0.05, own=0.02))
            power = next(fit for fit in law.fits if fit.shape.name is ShapeName.POWER)
            inside += law.power.holds(-1 / 0.3), power.bands(0.33, 0.95)[0].holds(256 * (0.33 / 0.4) ** (-1 / 0.3))

        assert (inside >= 16).all()

    @pytest.mark.slow
    @pytest.mark.parametrize(("num_sizes", "shared", "own"), [(7, 0.05, 0.02), (9, 0.02, 0.05), (5, 0.05, 0.02)])
    def test_coverage_of_ladders(self, num_sizes: int, shared: float, own: float) -> None:
        rng, inside = np.random.default_rng(2), np.zeros(2)

        for _ in range(200):
            law = fit_ladder(crossings(rng, num_sizes=num_sizes, shared=shared, own=own))
            power = next(fit for fit in law.fits if fit.shape.name is ShapeName.POWER)
            inside += law.power.holds(-1 / 0.3), power.bands(0.33, 0.95)[0].holds(256 * (0.33 / 0.4) ** (-1 / 0.3))

        assert (inside / 200 > 0.925).all()

    @pytest.mark.parametrize(
        ("kept", "word"),
        [
            (lambda one: one.target > 0.46, "targets"),
            (lambda one: one.batch_size < 100, "batch sizes"),
        ],
    )
    def test_too_little_is_refused_with_the_way_out(self, kept, word: str) -> None:
        data = [one for one in crossings(np.random.default_rng(0), num_sizes=7, shared=0.0, own=0.0) if kept(one)]

        law = fit_ladder(data)

        assert isinstance(law, NoLaw)
        assert word in law.explanation


class TestTooLittle:
    def test_few_windows_are_no_law(self) -> None:
        loss = np.geomspace(4, 3, 4)
        data = LawObservations(loss, kaplan(loss), np.full(4, 0.1), np.zeros(4), np.arange(4))

        law = fit_law(data, Axis.LOSS)

        assert isinstance(law, NoLaw)
        assert "train on" in law.explanation

    def test_a_loss_that_did_not_move_is_no_law(self) -> None:
        loss = np.linspace(3.0, 3.05, 20)
        data = LawObservations(loss, kaplan(loss), np.full(20, 0.1), np.zeros(20), np.arange(20) * 6 // 20)

        law = fit_law(data, Axis.LOSS)

        assert isinstance(law, NoLaw)
        assert "1.05" in law.explanation

    def test_a_loss_that_is_not_positive_is_refused(self) -> None:
        with pytest.raises(AnalysisError, match="x must be positive"):
            LawObservations(np.array([1.0, -1.0]), np.zeros(2), np.ones(2), np.zeros(2), np.arange(2))


@pytest.mark.slow
@pytest.mark.thorough
def test_with_a_cluster_each_the_errors_are_those_of_unequal_variances() -> None:
    """CR2 with clusters of one is HC2, which is unbiased for equal variances: the usual formula on average."""
    rng = np.random.default_rng(14)
    design = np.column_stack([np.ones(12), np.linspace(0, 1, 12)])
    exact = np.linalg.inv(design.T @ design)
    total = np.zeros((2, 2))

    for _ in range(2000):
        errors = rng.normal(size=12)
        residuals = errors - design @ (exact @ (design.T @ errors))
        total += cluster_robust(design, residuals, np.ones(12), list(range(12)), np.zeros(2)).covariance

    assert total / 2000 == pytest.approx(exact, rel=0.1)
