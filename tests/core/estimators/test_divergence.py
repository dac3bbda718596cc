"""Since when a run's loss or gradients are not finite."""

import pytest

from noisescale_core.advice.words import of_divergence
from noisescale_core.estimators.divergence import (
    MIN_GRADIENT_STEPS,
    Divergence,
    broken_since,
    divergence,
    seen_of_gradients,
    seen_of_loss,
)
from noisescale_core.estimators.flags import Flags

NAN, FINE, SILENT = seen_of_loss(Flags.NONFINITE_LOSS, 0), seen_of_loss(0, 1), seen_of_loss(0, 0)


@pytest.mark.parametrize(
    ("before", "seen", "since"),
    [
        (None, [FINE, FINE], None),
        (None, [FINE, NAN, NAN], 1),
        (None, [NAN, FINE, NAN], 2),
        (None, [NAN, SILENT], 0),
        (-5, [NAN, SILENT], -5),
        (-5, [SILENT], -5),
        (-5, [FINE], None),
    ],
)
def test_it_is_the_first_step_since_the_last_finite_value(before, seen, since):
    assert broken_since(before, enumerate(seen)) == since


def test_a_row_of_several_steps_with_one_finite_value_is_finite():
    assert seen_of_loss(Flags.NONFINITE_LOSS, 3).is_finite
    assert seen_of_gradients(Flags.NONFINITE_GRADIENT, has_terms=True).is_finite


def test_a_loss_counts_at_once_and_gradients_alone_after_as_many_steps_as_a_loss_scaler_takes():
    assert divergence(7, None, 7) == Divergence(7, loss=True, gradients=False)
    assert divergence(None, 7, 7 + MIN_GRADIENT_STEPS - 2) is None
    assert divergence(None, 7, 7 + MIN_GRADIENT_STEPS - 1) == Divergence(7, loss=False, gradients=True)
    assert divergence(9, 7, 9) == Divergence(7, loss=True, gradients=True)
    assert divergence(None, None, 100) is None


def test_the_sentence_says_what_since_when_and_until_when_the_noise_scale_is():
    both = Divergence(1_101, loss=True, gradients=True)

    said = of_divergence.sentence(both, until_step=1_100)

    assert said == "Loss and gradients are not finite since step 1,101. The noise scale is until step 1,100."
    assert of_divergence.said(Divergence(3, loss=False, gradients=True)) == "the gradients are not finite since step 3"
