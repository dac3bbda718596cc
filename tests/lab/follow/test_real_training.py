"""A real training, measured by its own micro-batches, whose right batch is known at every step."""

import math

import pytest
import torch

import noisescale
from client_runs import make_kept_run
from noisy_mean import DIMENSIONS, Mean

PRICE, MICRO_BATCH, NUM_STEPS = 64.0, 8, 240


def train(start, **arguments):
    """Batches after each step, with the right one then; the noise scale grows as the gradient shrinks."""
    run, _ = make_kept_run()
    model = Mean(128.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.002)
    run.watch(model, optimizer)
    follower = noisescale.follow(
        run, optimizer, price=PRICE, planned_steps=NUM_STEPS, progress=lambda _: None, dry_run=False, may=["batch"],
        batches=noisescale.Batches(now=start, micro_batch=MICRO_BATCH, largest=4096, **arguments),
    )  # fmt: skip
    generator = torch.Generator().manual_seed(3)
    seen, right = [], []
    for _ in range(NUM_STEPS):
        count = follower.accumulation_steps
        for _ in range(count):
            (model(torch.randn(MICRO_BATCH, DIMENSIONS, generator=generator)) / count).backward()
        run.log_gradients()
        seen.append(count * MICRO_BATCH)
        right.append(math.sqrt(PRICE * model.noise_scale))
        optimizer.step()
        optimizer.zero_grad()
        follower.step()
    return seen, right, follower, optimizer


@pytest.mark.thorough
@pytest.mark.parametrize("start", [pytest.param(16, marks=pytest.mark.slow), 768])
def test_a_run_that_starts_eight_times_off_ends_at_the_right_batch(start):
    seen, right, follower, _ = train(start)

    off = [max(batch / best, best / batch) for batch, best in zip(seen, right, strict=True)]
    assert off[0] > 5
    # the critical batch is thought to lie off the noise scale by what it did on other tasks, by progress
    assert all(factor < 3 for factor in off[-60:])
    assert follower.faults.count == 0


@pytest.mark.slow
@pytest.mark.thorough
def test_a_batch_that_only_grows_stays_near_the_right_one():
    seen, right, _, optimizer = train(16, may_shrink=False)

    assert seen == sorted(seen)
    assert seen[-1] > 16
    assert all(max(batch / best, best / batch) < 3 for batch, best in zip(seen[60:], right[60:], strict=True))
    assert 0.002 < optimizer.param_groups[0]["lr"] <= 0.002 * (seen[-1] / 16) ** 0.5
