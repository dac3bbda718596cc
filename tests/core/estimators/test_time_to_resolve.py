import math
import re

import numpy as np
import pytest

from noisescale.window.recent_updates import NoiseScale, RecentUpdates
from noisescale_core.estimators.noise_scale import Terms
from noisescale_core.estimators.windows import predict_updates_to_resolve, run_until_resolved, updates_needed
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


def test_a_run_is_as_long_as_its_window_and_what_confirms_it_or_as_its_share_demands():
    lengths = [run_until_resolved(needed, window_share=0.05, shortest_window=16) for needed in (1, 16, 17, 25.6, 100)]

    assert lengths[:2] == [32, 32]
    assert 32 < lengths[2] < lengths[3]
    assert lengths[3:] == pytest.approx([0.85 * 25.6 / 0.05, 0.85 * 100 / 0.05])


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("setting", "steps", "num_runs"),
    [
        (Setting(1, 8, "30 equal"), 60, 40),
        (Setting(2.5, 8, "30 equal"), 900, 40),
        (Setting(5, 8, "30 equal"), 2400, 30),
    ],
    ids=["easy", "at the edge of the shortest window", "medium"],
)
def test_hardly_a_run_is_resolved_before_the_steps_that_it_takes_at_least(setting, steps, num_runs):
    """`benchmarks/benchmark_outlook.py` has more settings and harder ones."""
    trace, square = simulated_terms(np.random.default_rng(1), setting, runs=num_runs, steps=steps)
    num_resolved, too_soon = 0, 0
    for terms in zip(trace.tolist(), square.tolist(), strict=True):
        recent, at_least = RecentUpdates(), 0.0
        for number, (trace_cov, grad_sq_norm) in enumerate(zip(*terms, strict=True), start=1):
            recent.add(Terms(trace_cov=trace_cov, grad_sq_norm=grad_sq_norm))
            if number not in (16, 64) and (number < 32 or number % (1 + number // 100)):
                continue
            now = NoiseScale(recent.estimate(), number)
            if now.state == "resolved":
                num_resolved += 1
                too_soon += number < at_least
                break
            more = re.search(r"at least ([0-9.]+) more steps", str(now))
            if number in (16, 64) and more:
                at_least = number + float(more[1])

    assert num_resolved > 0.9 * num_runs
    assert too_soon <= 0.1 * num_runs
