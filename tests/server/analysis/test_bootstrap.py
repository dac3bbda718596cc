"""Seeds drawn again: the luck of a choice, and intervals beside those of the likelihood."""

import math

import numpy as np
import pytest

from noisescale_server.analysis.sweeps.batch_sweep.bootstrap import Bootstrap, NoBootstrap, bootstrap
from noisescale_server.analysis.sweeps.batch_sweep.quick_fit import quick_fits
from noisescale_server.analysis.sweeps.batch_sweep.target_answer import TargetAnswer, target_answer
from noisescale_server.analysis.sweeps.steps_to_target.crossing import Direction, MetricCurve, steps_to_target
from noisescale_server.analysis.sweeps.steps_to_target.many_crossings import many_crossings
from noisescale_server.analysis.sweeps.steps_to_target.seed_average import CommonCurves
from noisescale_server.analysis.sweeps.steps_to_target.setting import Setting, settings_of
from synthetic_grids import TARGET, trial

MIN_STEPS, CRITICAL_BATCH = 400.0, 256.0
SIZES = (16, 64, 256, 1024, 4096)


def sweep_of(rng, *, rates=5, seeds=4, noise=0.1, valley=0.0) -> tuple[Setting, ...]:
    """Rates whose steps rise by `valley` (in logs) an octave from the middle one; each run has noise of its own."""
    trials = []
    for size in SIZES:
        for rate in range(rates):
            for seed in range(seeds):
                away = valley * abs(rate - rates // 2)
                steps = MIN_STEPS * (1 + CRITICAL_BATCH / size) * math.exp(away + noise * rng.standard_normal())
                trials.append(trial(size, 2.0**rate, steps, seed=100 * rate + seed))
    return settings_of(trials)


def drawn_again(settings) -> tuple[TargetAnswer, Bootstrap]:
    answer = target_answer(settings, TARGET, level=0.95)
    found = bootstrap(settings, answer.points, answer.outcome, TARGET)
    assert isinstance(found, Bootstrap)
    return answer, found


def test_crossings_of_many_means_are_those_of_each():
    rng = np.random.default_rng(0)
    steps = (0.0, *map(float, sorted(rng.choice(np.arange(1, 500), 30, replace=False))))
    for direction in Direction:
        values = rng.standard_normal((4, 31)) * 0.3 + (1 if direction is Direction.MIN else -1) * 0.5
        together = CommonCurves(steps, values, direction)
        weights = rng.dirichlet(np.ones(4), 100)

        found = many_crossings(together, weights, 0.2)

        curves = [MetricCurve(steps, tuple(row), direction) for row in weights @ values]
        expected = [steps_to_target(curve, 0.2).steps for curve in curves]
        assert found == pytest.approx([math.inf if one is None else math.log(one) for one in expected])


def test_quick_fits_are_those_of_the_curve_they_lie_on():
    log_batch = np.log(SIZES)
    critical = np.array([30.0, 256.0, 3000.0])
    log_steps = math.log(MIN_STEPS) + np.log1p(critical[:, None] / np.array(SIZES))
    log_steps[0, 2] = np.nan

    found = quick_fits(log_batch, log_steps, np.ones(len(SIZES)))

    assert np.exp(found.log_critical) == pytest.approx(critical, rel=0.01)
    assert np.exp(found.log_min_steps) == pytest.approx(MIN_STEPS, rel=0.01)


def test_a_curve_without_a_bend_has_no_critical_batch():
    log_batch = np.log(SIZES)

    found = quick_fits(log_batch, np.stack([8 - log_batch, np.full(len(SIZES), 5.0)]), np.ones(len(SIZES)))

    assert list(found.log_critical) == [math.inf, -math.inf]
    assert found.log_min_steps[0] == -math.inf


@pytest.mark.slow
@pytest.mark.thorough
def test_where_rates_are_equally_good_most_of_the_luck_of_choosing_is_seen():
    """The best of five means of four seeds reads low by 1.163 × 0.1 / 2 in log steps, at every batch size."""
    found, shown = [], []
    for seed in range(12):
        answer, again = drawn_again(sweep_of(np.random.default_rng(seed)))
        found += [one.log_ratio for one in again.luck]
        shown += [
            math.log(point.average.steps.steps / (MIN_STEPS * (1 + CRITICAL_BATCH / point.batch_size)))
            for point in answer.points
        ]

    error = 5 * np.std(shown) / math.sqrt(len(shown))
    assert np.mean(shown) == pytest.approx(-1.163 * 0.05, abs=error)
    assert 0.5 <= np.mean(found) / np.mean(shown) <= 1.0


def test_where_one_rate_is_clearly_best_there_is_no_luck():
    _, again = drawn_again(sweep_of(np.random.default_rng(1), valley=0.8))

    assert all(abs(one.log_ratio) < 0.01 for one in again.luck)
    assert again.without_luck.critical_batch == pytest.approx(again.critical_batch.value, rel=0.05)


def test_intervals_of_draws_are_about_those_of_the_likelihood():
    ratios = []
    for seed in range(12):
        answer, again = drawn_again(sweep_of(np.random.default_rng(20 + seed), rates=1, seeds=6))
        likelihood, drawn = answer.outcome.critical_batch, again.critical_batch
        ratios.append(math.log(drawn.high / drawn.low) / math.log(likelihood.high / likelihood.low))

    assert 0.75 <= float(np.median(ratios)) <= 1.25


@pytest.mark.parametrize(("offset", "least", "most"), [(0, -0.005, 0.005), (100, -0.08, -0.03)])
def test_seeds_that_rates_share_are_drawn_together(offset, least, most):
    """Two rates of the same seeds differ by a constant: no draw prefers the worse one, so nothing is luck."""
    found = []
    for sweep in range(4):
        rng, trials = np.random.default_rng(sweep), []
        for size in SIZES:
            for seed in range(4):
                steps = MIN_STEPS * (1 + CRITICAL_BATCH / size) * math.exp(0.2 * rng.standard_normal())
                trials += [trial(size, 1.0, steps, seed=seed), trial(size, 2.0, 1.02 * steps, seed=seed + offset)]
        _, again = drawn_again(settings_of(trials))
        found += [one.log_ratio for one in again.luck]

    assert least <= float(np.mean(found)) <= most


def test_single_runs_cannot_be_drawn_again():
    settings = sweep_of(np.random.default_rng(4), seeds=1)
    answer = target_answer(settings, TARGET, level=0.95)

    found = bootstrap(settings, answer.points, answer.outcome, TARGET)

    assert isinstance(found, NoBootstrap)
    assert "needs 2 of them" in found.explanation
