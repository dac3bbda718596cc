import math

import pytest

from noisescale_lab.reproduce.claim.stacked_trial import steps_of, train_rates
from noisescale_lab.reproduce.registry import ALL


def test_a_rate_takes_the_same_steps_alone_and_in_a_stack() -> None:
    task = ALL["iris_softmax"]()

    (alone,) = train_rates(task, batch=32, rates=[2.0], seeds=range(4), limit=500)
    together = train_rates(task, batch=32, rates=[1.0, 2.0], seeds=range(4), limit=500)

    assert steps_of(together[1], 0.15, "min") == pytest.approx(steps_of(alone, 0.15, "min"), rel=1e-3)


def test_a_rate_is_given_up_at_thirteen_tenths_of_the_best() -> None:
    task = ALL["iris_softmax"]()

    fast, slow = train_rates(task, batch=32, rates=[4.0, 0.01], seeds=range(4), limit=5000)

    assert math.isfinite(steps_of(fast, task.targets[-1], "min"))
    assert math.isinf(steps_of(slow, task.targets[-1], "min"))
    assert slow.last_step <= 1.5 * fast.last_step + 2


def test_a_rate_that_diverges_is_infeasible_and_never_arrives() -> None:
    task = ALL["powerlaw_regression"]()

    (trial,) = train_rates(task, batch=8, rates=[50.0], seeds=range(2), limit=500)

    assert trial.status == "infeasible"
    assert math.isinf(steps_of(trial, task.targets[0], "min"))
