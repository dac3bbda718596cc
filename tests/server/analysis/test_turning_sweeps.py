"""Sweeps whose examples rise again at small batches: found, fitted without the rise, and said."""

import math

import numpy as np
import pytest

from noisescale_server.analysis.sweeps.batch_sweep.fit import fit_sweep
from noisescale_server.analysis.sweeps.batch_sweep.prediction import predict
from noisescale_server.analysis.sweeps.fitting.refusal import Refusal, RefusalReason
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.points.sweep import Repeats, SweepPoint
from synthetic_sweeps import Setting
from turning_sweeps import CRITICAL_BATCH, MIN_STEPS, TurningSetting, lifted, power


def fitted(points: list[SweepPoint]) -> SweepFit:
    outcome = fit_sweep(points)
    assert isinstance(outcome, SweepFit), outcome
    return outcome


def turned(points: list[SweepPoint]) -> bool:
    outcome = fit_sweep(points)
    return isinstance(outcome, SweepFit) and outcome.turn is not None


def outcomes(setting: TurningSetting, count: int, seed: int = 0) -> list[SweepFit | Refusal]:
    rng = np.random.default_rng(seed)
    return [fit_sweep(setting.sweep(rng)) for _ in range(count)]


def test_steps_without_noise_give_back_the_turning_curve():
    fit = fitted(TurningSetting(rise=0.3, scatter=0).sweep())

    assert fit.critical_batch.value == pytest.approx(CRITICAL_BATCH, rel=0.01)
    assert fit.min_steps.value == pytest.approx(MIN_STEPS, rel=0.01)
    assert fit.min_examples.value == pytest.approx(MIN_STEPS * CRITICAL_BATCH, rel=0.01)
    assert fit.turn is not None
    assert fit.turn.power == 1.5
    assert fit.turn.rise == pytest.approx(0.3, abs=0.02)


def test_the_best_batch_is_where_examples_are_fewest():
    setting = TurningSetting(rise=0.3, scatter=0.03)
    fit = fitted(setting.sweep(np.random.default_rng(1)))

    assert fit.turn is not None
    assert fit.turn.best_batch.holds(setting.best_batch())
    best, low, high = fit.turn.best_batch.value, fit.turn.best_batch.low, fit.turn.best_batch.high
    assert predict(fit, best).examples.value < min(
        predict(fit, size).examples.value for size in (best / 1.2, best * 1.2)
    )
    assert low < best < high < 1.6 * low


def test_what_was_left_out_is_said_with_the_batch_sizes_and_a_reason():
    fit = fitted(TurningSetting(rise=0.3, scatter=0.03).sweep(np.random.default_rng(1)))

    assert fit.turn is not None
    assert fit.turn.batch_sizes == (16.0, 32.0)
    assert fit.turn.probability < 0.01
    for words in ("more at 16", "β2, weight decay or the floor of a rate", "left out of B_crit"):
        assert words in fit.turn.explanation


def test_a_prediction_below_the_best_batch_has_the_rise():
    setting = TurningSetting(rise=0.3, scatter=0.01)
    found = predict(fitted(setting.sweep(np.random.default_rng(2))), 16.0)

    assert found.examples.holds(MIN_STEPS * CRITICAL_BATCH * setting.examples()[0])


def test_a_hyperbola_does_not_turn():
    assert not turned(TurningSetting(rise=0, scatter=0).sweep())
    found = outcomes(TurningSetting(rise=0, scatter=0.04), 40)

    assert sum(isinstance(one, SweepFit) and one.turn is not None for one in found) <= 3


@pytest.mark.thorough
@pytest.mark.parametrize(
    "shape", [pytest.param(power(1.5), marks=pytest.mark.slow), lifted(3)], ids=["power", "lifted"]
)
def test_turns_are_found_and_leave_the_critical_batch_alone(shape):
    found = outcomes(TurningSetting(rise=0.25, scatter=0.04, shape=shape), 16)

    fits = [one for one in found if isinstance(one, SweepFit) and one.turn is not None]
    assert len(fits) >= 14
    error = np.median([math.log(one.critical_batch.value / CRITICAL_BATCH) for one in fits])
    assert abs(error) < math.log(1.15)
    assert sum(one.critical_batch.holds(CRITICAL_BATCH) for one in fits) >= 0.8 * len(fits)


def test_the_hyperbola_through_all_batch_sizes_would_put_the_critical_batch_too_high():
    points = TurningSetting(rise=0.3, scatter=0).sweep()

    outcome = fit_sweep(points, is_robust=True)

    assert isinstance(outcome, SweepFit)
    assert outcome.critical_batch.value > 1.3 * CRITICAL_BATCH


def test_a_turn_is_no_reason_to_ask_for_larger_batches():
    setting = TurningSetting(rise=0.6, scatter=0.02, critical_place=6.0)

    fit = fitted(setting.sweep(np.random.default_rng(3)))

    assert fit.critical_batch.value == pytest.approx(CRITICAL_BATCH, rel=0.2)


@pytest.mark.slow
@pytest.mark.thorough
def test_a_sharper_bend_than_the_hyperbolas_is_seldom_taken_for_a_turn():
    rng = np.random.default_rng(4)

    found = [turned(Setting(exponent=1.4, num_batch_sizes=7).sweep(rng)) for _ in range(30)]

    assert sum(found) <= 12


def test_examples_that_still_fall_at_the_largest_batch_are_no_turn():
    points = TurningSetting(rise=2.0, scatter=0, critical_place=40, num_batch_sizes=6).sweep()

    outcome = fit_sweep(points)

    assert isinstance(outcome, Refusal)
    assert outcome.reason in {RefusalReason.ALL_BELOW, RefusalReason.EXAMPLES_FALL}


def test_four_batch_sizes_are_too_few_for_a_turn():
    assert not turned(TurningSetting(rise=0.5, scatter=0, num_batch_sizes=4, critical_place=2).sweep())


@pytest.mark.slow
def test_repeats_that_scatter_more_at_small_batches_are_no_misfit_of_a_turn():
    setting, rng = TurningSetting(rise=0.3, scatter=0), np.random.default_rng(5)
    pairs = zip(setting.sweep(), np.geomspace(0.2, 0.01, 7), strict=True)
    points = [
        SweepPoint(point.batch_size, Repeats.from_steps([math.exp(mean + sd * one) for one in rng.standard_normal(5)]))
        for point, sd in pairs
        for mean in [point.repeats.mean_log_steps]
    ]

    outcome = fit_sweep(points)

    assert isinstance(outcome, SweepFit)
    assert outcome.lack_of_fit.misfit_probability > 0.01
    assert outcome.critical_batch.value == pytest.approx(CRITICAL_BATCH, rel=0.15)
