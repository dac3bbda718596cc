"""What branches add to the noise scale of the moment at which they left."""

import math
from dataclasses import replace

import pytest

from client_runs import make_kept_run
from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.run.run import Run
from noisescale_lab.branch.result import BranchingPoint, KappaBounds, kappa_bounds, point_of, said


def measured_run(num_steps=40):
    """tr Σ = 100 and |G|² = 1 but for a little: the noise scale is 100."""
    run, _ = make_kept_run()
    for step in range(num_steps):
        wobble = 1 + 0.02 * math.sin(step)
        run.log_norms(small_batch_size=1, big_batch_size=64, small_sq_norm=101.0 * wobble, big_sq_norm=1 + 100 / 64)
    return run


def test_a_run_stands_at_its_newest_step_with_its_noise_scale():
    point = point_of(measured_run())

    assert point.step == 39
    assert point.noise_scale.low < 100 < point.noise_scale.high
    assert point.noise_scale.value == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize("run", [None, Run(Config(mode="disabled"), RunDescription())])
def test_without_a_run_that_records_there_is_no_point(run):
    assert point_of(run) is None


def test_kappa_lies_between_the_ends_of_both_intervals():
    point = point_of(measured_run())
    scale = point.noise_scale

    found = kappa_bounds(point, 64, 256)

    assert found == KappaBounds(64 / scale.high, 256 / scale.low)
    assert kappa_bounds(point, 64, None) == KappaBounds(64 / scale.high, None)
    assert kappa_bounds(point, None, 256) == KappaBounds(None, 256 / scale.low)
    to_zero = replace(point, noise_scale=replace(scale, low=0.0))
    assert kappa_bounds(to_zero, 64, 256) == KappaBounds(64 / scale.high, None)


def test_branches_that_bound_nothing_or_a_noise_scale_that_is_not_resolved_say_nothing_of_kappa():
    resolved, unresolved = point_of(measured_run()), point_of(measured_run(2))

    assert kappa_bounds(resolved, None, None) is None
    assert kappa_bounds(unresolved, 64, 256) is None
    assert kappa_bounds(None, 64, 256) is None


def test_what_is_known_is_a_sentence():
    point, nothing = point_of(measured_run()), BranchingPoint(3, point_of(measured_run(2)).noise_scale)

    assert said(point, KappaBounds(0.5, 2.0)).endswith(
        "here κ, critical batch ÷ noise scale, is above 0.5 and below 2."
    )
    assert said(point, KappaBounds(None, 2.0)).endswith("is below 2.")
    assert said(point, None).endswith("these branches do not bound the critical batch.")
    assert said(nothing, None) == "Step 3: the noise scale is not resolved there, so these branches stand alone."
