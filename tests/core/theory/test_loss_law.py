import json
import math
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory import loss_law
from noisescale_core.theory.loss_law import KAPLAN_WEBTEXT2, LearningCurve, LossLaw
from noisescale_core.theory.trade_off import TradeOff


def published(quantity):
    values = json.loads(resources.files("noisescale_server").joinpath("data/reference_values.json").read_text())
    return [entry for entry in values["values"] if entry["quantity"] == quantity]


def test_kaplans_critical_batches_at_their_losses():
    """0.27 million tokens at a loss of 4, 1.07 at 3, 4.7 at 2.2."""
    entries = published("bcrit_at_loss")

    assert [round(entry["value"] / 1e6, 2) for entry in entries[:3]] == [0.27, 1.07, 4.68]
    for entry in entries:
        assert KAPLAN_WEBTEXT2.critical_batch(entry["loss_nats"]) == pytest.approx(entry["value"])


def test_the_critical_batch_doubles_for_every_13_and_a_half_percent_of_loss():
    assert KAPLAN_WEBTEXT2.fall_that_doubles == pytest.approx(0.135, abs=5e-4)
    assert KAPLAN_WEBTEXT2.critical_batch(3 * (1 - KAPLAN_WEBTEXT2.fall_that_doubles)) == pytest.approx(
        2 * KAPLAN_WEBTEXT2.critical_batch(3)
    )


def test_the_batch_grows_with_compute_by_the_ratio_of_the_exponents():
    """Published: 0.24, as L goes as C^-0.050."""
    [published_exponent] = published("B_exponent_in_compute")
    at = [KAPLAN_WEBTEXT2.critical_batch(compute**-0.05) for compute in (1.0, math.e)]

    assert math.log(at[1] / at[0]) == pytest.approx(published_exponent["value"], abs=0.003)


@given(loss=st.floats(1.8, 10), exponent=st.floats(0.1, 2))
def test_the_law_and_its_inverse_agree_above_the_irreducible_loss(loss, exponent):
    law = LossLaw(1e6, exponent, "tokens", "nats", irreducible_loss=1.7)

    assert law.loss_at(law.critical_batch(loss)) == pytest.approx(loss)


@given(min_steps=st.floats(1, 1e6), critical=st.floats(1, 1e6), batch=st.floats(1, 1e6))
def test_adjusted_steps_and_compute_are_the_limits_of_the_trade_off(min_steps, critical, batch):
    run = TradeOff(min_steps, min_steps * critical, "loss 2.5")
    at = {"batch": batch, "critical_batch": critical}

    assert loss_law.min_steps(steps=run.steps(batch), **at) == pytest.approx(min_steps)
    assert loss_law.min_compute(compute=run.examples(batch), **at) == pytest.approx(run.min_examples)


def test_the_learning_curve_adds_what_size_and_steps_leave():
    curve = LearningCurve(size_scale=1e13, size_exponent=0.076)

    assert curve.loss(parameters=1e13, min_steps=2.1e3) == pytest.approx(2)
    assert curve.loss(parameters=1e9, min_steps=1e30) == pytest.approx(1e4**0.076)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LossLaw(1e6, 0, "tokens", "nats"), "exponent must be positive and finite, got 0: fit it"),
        (lambda: KAPLAN_WEBTEXT2.critical_batch(0), "loss must exceed irreducible_loss 0, got 0: it is a limit"),
        (lambda: KAPLAN_WEBTEXT2.loss_at(0), "critical_batch must be positive"),
        (lambda: loss_law.min_steps(steps=0, batch=1, critical_batch=1), "steps must be positive"),
        (lambda: LearningCurve(1e13, 0.076).loss(parameters=0, min_steps=1), "parameters must be positive"),
    ],
)
def test_a_loss_law_without_meaning_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
