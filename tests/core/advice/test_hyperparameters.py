import math

import pytest

from noisescale_core.advice.effects import rescaling
from noisescale_core.advice.parts.parts import Interval, RunSoFar
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, State

PHI = 1000.0
SCALE = NoiseScaleEstimate(State.RESOLVED, PHI, 800.0, 1300.0, 0.95, 7.0, None, None, 64, 16, 1.0, 0.1, 0.001, 0.0001)

EXACT = Interval(PHI, PHI, PHI)


def run(optimizer="AdamW", batch_size=250.0, **changes):
    fields = {"noise_scale": SCALE, "batch_size": batch_size, "optimizer": optimizer, "learning_rate": 0.1}
    return RunSoFar(**(fields | changes))


def test_everything_that_the_config_tells_of_adam_is_rescaled():
    config = {"adam_beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0.1, "warmup_iters": 100, "momentum": 0.5}

    found = rescaling(run(), config, EXACT, 500.0)

    fields = [change.field for change in found.changes]
    assert fields == ["learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "warmup_steps"]
    gain = (1 + PHI / 250) / (1 + PHI / 500)
    assert found.of("learning_rate").after == pytest.approx(0.1 * math.sqrt(gain))
    assert found.of("beta1").after == pytest.approx(0.8)
    assert found.of("weight_decay").after == pytest.approx(0.1 * 2 / math.sqrt(gain))


def test_sgd_has_momentum_and_no_betas():
    found = rescaling(run("SGD"), {"momentum": 0.9, "beta1": 0.9}, EXACT, 500.0)

    assert [change.field for change in found.changes] == ["learning_rate", "momentum"]


@pytest.mark.parametrize("value", ["0.9", True, -1, 1.5, None, [0.9], math.nan])
def test_a_config_that_tells_nothing_usable_is_left_out(value):
    found = rescaling(run(), {"beta1": value}, EXACT, 500.0)

    assert [change.field for change in found.changes] == ["learning_rate"]


@pytest.mark.parametrize("changes", [{"learning_rate": None}, {"learning_rate": 0.0}, {"batch_size": None}])
def test_without_a_rate_or_a_batch_there_is_no_set(changes):
    assert rescaling(run(**changes), {}, EXACT, 500.0) is None


def test_no_rule_reaches_a_million_fold_batch():
    assert rescaling(run(batch_size=1e-3), {}, EXACT, 1e6) is None
    assert rescaling(run(), {}, EXACT, None) is None
