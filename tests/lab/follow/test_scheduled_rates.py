"""A schedule goes on as it was, times the factor, in every group."""

import pytest
import torch
from torch.optim import lr_scheduler

from noisescale_lab.follow.scheduled_rates import ScheduledRates
from scripted_run import make_optimizer

NUM_STEPS, CHANGES = 60, {20: 1.7, 35: 0.4}


def sequential(optimizer):
    warm_up = lr_scheduler.LinearLR(optimizer, 0.1, total_iters=25)
    cosine = lr_scheduler.CosineAnnealingLR(optimizer, 35, eta_min=0.001)
    return lr_scheduler.SequentialLR(optimizer, [warm_up, cosine], milestones=[25])


def chained(optimizer):
    return lr_scheduler.ChainedScheduler(
        [lr_scheduler.ExponentialLR(optimizer, 0.99), lr_scheduler.ConstantLR(optimizer, 0.5, total_iters=30)]
    )


class Wrapped:
    """As Accelerate wraps a schedule."""

    def __init__(self, optimizer):
        self.scheduler = lr_scheduler.LambdaLR(optimizer, lambda step: 0.98**step)

    def step(self):
        self.scheduler.step()


SCHEDULES = {
    "none": lambda optimizer: None,
    "lambda": lambda optimizer: lr_scheduler.LambdaLR(optimizer, lambda step: 0.97**step),
    "step": lambda optimizer: lr_scheduler.StepLR(optimizer, 15, 0.3),
    "milestones": lambda optimizer: lr_scheduler.MultiStepLR(optimizer, [10, 30, 50], 0.3),
    "exponential": lambda optimizer: lr_scheduler.ExponentialLR(optimizer, 0.95),
    "polynomial": lambda optimizer: lr_scheduler.PolynomialLR(optimizer, 70, 2.0),
    "linear": lambda optimizer: lr_scheduler.LinearLR(optimizer, 0.1, total_iters=50),
    "cosine": lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, NUM_STEPS),
    "cosine to a floor": lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, NUM_STEPS, eta_min=0.002),
    "cosine beyond its end": lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, 25, eta_min=0.002),
    "restarts": lambda optimizer: lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 15, eta_min=0.001),
    "one cycle": lambda optimizer: lr_scheduler.OneCycleLR(
        optimizer, [0.1, 0.01], total_steps=NUM_STEPS + 1, cycle_momentum=False
    ),
    "cyclic": lambda optimizer: lr_scheduler.CyclicLR(
        optimizer, [0.01, 0.001], [0.1, 0.01], step_size_up=10, cycle_momentum=False
    ),
    "sequential": sequential,
    "chained": chained,
    "wrapped": Wrapped,
}


def rates(make_schedule, changes):
    """Learning rates of both groups after each step, and the factor then."""
    optimizer = make_optimizer(num_groups=2)
    schedule = make_schedule(optimizer)
    scaled = ScheduledRates(optimizer, schedule)
    found = []
    for step in range(NUM_STEPS):
        optimizer.step()
        if schedule is not None:
            schedule.step()
        if step in changes:
            scaled.scale_to(changes[step])
        found.append([group["lr"] for group in optimizer.param_groups])
    return found


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_goes_on_as_it_was_times_the_factor(name):
    plain, scaled = rates(SCHEDULES[name], {}), rates(SCHEDULES[name], CHANGES)

    factors = [0.4 if step >= 35 else 1.7 if step >= 20 else 1.0 for step in range(NUM_STEPS)]
    expected = [[factor * rate for rate in row] for factor, row in zip(factors, plain, strict=True)]
    assert scaled == [pytest.approx(row, rel=1e-9) for row in expected]


def test_a_plateau_drops_the_rate_to_its_scaled_floor():
    optimizer = make_optimizer()
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=0, min_lr=0.02)
    scaled = ScheduledRates(optimizer, plateau)

    scaled.scale_to(2.0)
    for _ in range(5):
        plateau.step(1.0)

    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.04)


def test_a_rate_on_a_device_is_changed_where_it_is():
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=torch.tensor(0.1), foreach=False)
    rate = optimizer.param_groups[0]["lr"]

    ScheduledRates(optimizer, None).scale_to(0.5)

    assert optimizer.param_groups[0]["lr"] is rate
    assert float(rate) == pytest.approx(0.05)


def test_the_scheduled_rate_is_the_one_without_the_factor():
    optimizer = make_optimizer()
    schedule = lr_scheduler.StepLR(optimizer, 1, 0.5)
    scaled = ScheduledRates(optimizer, schedule)

    scaled.scale_to(3.0)
    optimizer.step()
    schedule.step()

    assert scaled.scheduled() == pytest.approx(0.05)


@pytest.mark.parametrize("name", ["lambda", "cosine to a floor", "one cycle", "sequential"])
def test_a_resumed_schedule_keeps_its_scale(name):
    optimizer = make_optimizer(num_groups=2)
    schedule = SCHEDULES[name](optimizer)
    ScheduledRates(optimizer, schedule).scale_to(1.7)
    resumed = make_optimizer(num_groups=2)
    resumed_schedule = SCHEDULES[name](resumed)

    resumed.load_state_dict(optimizer.state_dict())
    resumed_schedule.load_state_dict(schedule.state_dict())
    for each, its in ((optimizer, schedule), (resumed, resumed_schedule)):
        for _ in range(30):
            each.step()
            its.step()

    assert [group["lr"] for group in resumed.param_groups] == [group["lr"] for group in optimizer.param_groups]
