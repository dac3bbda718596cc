import math

import numpy as np
import pytest

from noisescale.estimators.time_to_resolve import predict_updates_to_resolve, updates_needed
from simulated_runs import Setting, simulated_terms


def test_the_number_of_updates_grows_with_the_square_of_what_z_lacks():
    found = predict_updates_to_resolve(num_updates=64, z=2.5)

    assert found.expected == 256
    assert found.at_least == math.ceil(64 * (5 / 4.459964) ** 2)
    assert found.at_most == math.ceil(64 * (5 / 0.540036) ** 2)


def test_noise_that_could_explain_a_window_leaves_no_upper_end():
    found = predict_updates_to_resolve(num_updates=64, z=1.5)

    assert found.at_least < found.expected
    assert found.at_most is None


def test_a_negative_gradient_still_says_how_long_it_takes_at_least():
    found = predict_updates_to_resolve(num_updates=64, z=-0.5)

    assert found.expected is None
    assert found.at_least > 64


@pytest.mark.parametrize("z", [0.0, -3.0, 1e-12, math.nan])
def test_a_gradient_that_no_run_would_show_promises_nothing(z):
    assert updates_needed(64, z) is None


@pytest.mark.parametrize("steps", [8, 24])
def test_the_interval_holds_what_the_moments_of_the_noise_demand(steps):
    """From the first 8 updates on, while z is small: 25 rel.var of |G|² is the truth."""
    _, square = simulated_terms(np.random.default_rng(0), Setting(3, 8, "power law"), runs=1500, steps=steps)
    truth = 25 * square.var()
    z = square.mean(1) / (square.std(1, ddof=1) / math.sqrt(steps))

    found = [predict_updates_to_resolve(num_updates=steps, z=float(one)) for one in z]

    held = [
        (one.at_least is not None and one.at_least <= truth) and (one.at_most is None or truth <= one.at_most)
        for one in found
    ]
    assert np.mean(held) > 0.9
    assert np.median(z) < 5
