"""Where a run stands: sums of its losses, of which differences say how a stretch of it went."""

import math

import pytest
import torch

from client_runs import make_kept_run
from noisescale.window.standing import LossSums, RunningLosses


def sums(*losses):
    found = RunningLosses()
    for loss in losses:
        found.add(loss)
    return found.so_far()


def test_the_mean_and_its_error_are_of_the_steps_since_then():
    mean, error = sums(9.0, 1.0, 2.0, 3.0).since(sums(9.0))

    assert mean == pytest.approx(2.0)
    assert error == pytest.approx(1 / math.sqrt(3))


def test_a_loss_that_was_not_finite_makes_the_mean_infinite_until_the_next_stretch():
    before = sums(1.0, math.nan)

    assert before.since(LossSums())[0] == math.inf
    assert sums(1.0, math.nan, 2.0).since(before) == (2.0, math.inf)


def test_without_a_loss_nothing_is_known():
    mean, error = LossSums().since(LossSums())

    assert math.isnan(mean)
    assert error == math.inf


def test_equal_losses_have_no_error():
    assert sums(*[0.1] * 7).since(LossSums())[1] == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("every", [1, 4])
def test_a_run_tells_its_losses_measured_or_not_its_looks_its_path_and_its_model(every):
    run, _ = make_kept_run()
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run.watch(model, optimizer, every=every, small_batches="per_example")
    losses = []
    for step in range(16):
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        losses.append(float(loss.detach()) if step != 5 else math.nan)
        run.log_gradients(loss=losses[-1])
        optimizer.step()
        optimizer.zero_grad()

    found = run.standing()

    assert found.model is model
    assert (found.losses.num_finite, found.losses.num_not_finite) == (15, 1)
    assert found.losses.total == pytest.approx(sum(loss for loss in losses if not math.isnan(loss)))
    assert sum(look.num_updates for look in found.looks) == pytest.approx(16 / every, abs=1)
    assert found.path is not None
    assert found.batch_size == 8


def test_an_optimizer_that_is_not_watched_stands_nowhere():
    run, _ = make_kept_run(strict=False)

    assert run.standing("nobody") is None
    assert run.faults.count == 1
