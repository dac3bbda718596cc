"""A glimpse is what the product would show of an unadvised run at a share of its length."""

import pytest

from noisescale.window.recent_updates import RecentUpdates
from noisescale_core.estimators.noise_scale import Terms
from noisescale_lab.reproduce.advice.glimpses import glimpses
from noisescale_lab.reproduce.advice.run import Start
from noisescale_lab.reproduce.advice.sweep import Reference, Tuned
from noisescale_lab.reproduce.registry import ALL
from noisescale_lab.reproduce.stacked.random_stream import RandomStream
from noisescale_lab.reproduce.trainer import Replicas, train

REFERENCE = Reference("digits_softmax", 0.4, (Tuned(32, 0.8, 60.0), Tuned(256, 0.8, 40.0)), 35.0, 40.0)


def test_a_glimpse_is_the_products_window_over_the_steps_so_far():
    task, never = ALL["digits_softmax"](), Reference("digits_softmax", 0.0, (Tuned(256, 0.8, 40.0),), 35.0, 40.0)
    record = train(task, RandomStream(), Replicas.new(task, [5]), seeds=[5], learning_rate=[0.8], batch=256, steps=30)
    recent = RecentUpdates()
    for trace_cov, grad_sq_norm in zip(record.trace_cov[:, 0], record.grad_sq_norm[:, 0], strict=True):
        recent.add(Terms(trace_cov, grad_sq_norm))

    [half, whole] = glimpses(task, never, [Start(1, 1, 5)], (0.5, 1.0))

    assert half.batch == 256
    assert half.latest.num_updates == recent.estimate().num_updates == 16
    assert half.latest.grad_sq_norm == pytest.approx(recent.estimate().grad_sq_norm, rel=1e-4)
    assert half.latest.value == pytest.approx(recent.estimate().value, rel=1e-4)
    assert whole.latest.grad_sq_norm < half.latest.grad_sq_norm


def test_the_exact_noise_scale_is_that_of_many_examples_at_the_weights_of_the_moment():
    [glimpse] = glimpses(ALL["digits_softmax"](), REFERENCE, [Start(1, 1, 5)], (1.0,))

    task, replicas = ALL["digits_softmax"](), Replicas.new(ALL["digits_softmax"](), [5])
    train(task, RandomStream(), replicas, seeds=[5], learning_rate=[0.8], batch=32, steps=60)
    record = train(task, RandomStream(), replicas, seeds=[99], learning_rate=[0.0], batch=8192, steps=1)
    assert glimpse.exact == pytest.approx(record.trace_cov[0, 0] / record.grad_sq_norm[0, 0], rel=0.35)


def test_a_run_that_diverges_is_looked_at_for_its_whole_plan_and_shows_nothing_new():
    never = Reference("teacher_student", 0.1, (Tuned(32, 1e4, 40.0),), 10.0, 40.0)

    [half, whole] = glimpses(ALL["teacher_student"](), never, [Start(1, 1, 5)], (0.5, 1.0))

    assert whole.latest.num_updates == half.latest.num_updates
    assert whole.latest.value is None


@pytest.mark.thorough
def test_a_rate_that_decays_ends_where_its_plan_does():
    constant, decaying = (
        glimpses(ALL["digits_softmax"](), REFERENCE, [Start(1, 0.25, 5, decays)], (1.0,))[0] for decays in (False, True)
    )

    assert decaying.latest.num_updates >= constant.latest.num_updates
    assert decaying.latest.grad_sq_norm > constant.latest.grad_sq_norm
