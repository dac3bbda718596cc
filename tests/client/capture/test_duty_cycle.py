"""A budget becomes "every k-th step" by timing, with a clock and costs that the test makes."""

import random

import pytest

from noisescale.capture.duty_cycle import MAX_EVERY, NUM_TIMED, NUM_TIMED_IF_DEAR, DutyCycle, Timing


class Training:
    """Steps of 10 ms; ours cost so much, and the step after a measured one pays for taking the hooks off."""

    def __init__(self, overhead, *, measured=1e-3, off=2e-4, unmeasured=1e-5, step=1e-2, lost=0.0, noise=0.0):
        self.now = 0.0
        self.fixed = []
        self.duty = DutyCycle(1, overhead, on_fixed=self.fixed.append, clock=lambda: self.now)
        self.costs = {"measured": measured, "off": off, "unmeasured": unmeasured, "step": step}
        self.lost, self.noise, self.random = lost, noise, random.Random(0)
        self.measured = []
        self.ours = 0.0

    def run(self, num_steps):
        for _ in range(num_steps):
            is_measured = self.duty.is_measured()
            cost = self.costs["measured"] if is_measured else self.costs["unmeasured"]
            if not is_measured and self.measured and self.measured[-1]:
                cost += self.costs["off"]
            lost = self.lost if is_measured else 0.0
            self.now += self.costs["step"] * (1 + self.random.gauss(0, self.noise)) + cost + lost
            self.ours += cost + lost
            self.duty.add_cost(cost)
            self.measured.append(is_measured)
            self.duty.end_step()


def test_every_kth_step_is_measured():
    duty = DutyCycle(3, None, on_fixed=lambda _: None, clock=lambda: 0.0)
    measured = []

    for _ in range(7):
        measured.append(duty.is_measured())
        duty.end_step()

    assert measured == [True, False, False, True, False, False, True]
    assert not duty.is_timing


@pytest.mark.parametrize("overhead", [0.005, 0.01, 0.05])
def test_a_budget_is_kept_from_the_moment_it_is_fixed(overhead):
    training = Training(overhead)
    training.run(3 * NUM_TIMED + 3)
    assert training.fixed == [training.duty]
    ours, now = training.ours, training.now

    training.run(20 * training.duty.every)

    share = (training.ours - ours) / (training.now - now - (training.ours - ours))
    assert 0.6 * overhead < share <= overhead


def test_looks_at_the_learning_rate_are_part_of_the_budget():
    plain, beside_looks = (
        DutyCycle(1, 0.01, on_fixed=lambda _: None, clock=lambda: 0.0, looks=looks) for looks in (0.0, 0.0025)
    )

    assert (plain.budget, beside_looks.budget) == (0.01, 0.0075)
    assert beside_looks.overhead == 0.01


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_budget_covers_what_a_measured_step_loses_beside_our_calls(noise):
    """Caches that are cold, memory that cannot be used again: no call of ours sees that."""
    training = Training(0.01, lost=2e-3, noise=noise)
    training.run(3 * NUM_TIMED + 3)
    ours, now = training.ours, training.now

    training.run(20 * training.duty.every)

    share = (training.ours - ours) / (training.now - now - (training.ours - ours))
    assert 0.006 < share <= 0.0115


def test_steps_that_differ_by_chance_do_not_make_a_cheap_watch_rare():
    training = Training(0.01, measured=5e-5, off=1e-5, unmeasured=1e-6, noise=0.02)

    training.run(3 * NUM_TIMED + 3)

    assert training.duty.every <= 3


def test_what_costs_more_than_a_step_is_not_timed_for_long():
    training = Training(0.05, measured=0.6)

    training.run(3 * NUM_TIMED_IF_DEAR + 3)

    assert training.fixed == [training.duty]
    assert training.duty.every == pytest.approx(0.6 / (0.05 * 0.01), rel=0.05)


def test_what_takes_no_second_is_timed_to_the_end():
    training = Training(0.05, measured=0.02)

    training.run(3 * NUM_TIMED)

    assert training.fixed == []


def test_the_timing_is_that_of_20_measured_steps_and_leaves_the_hooks_out_of_the_others():
    training = Training(0.01)

    training.run(3 * NUM_TIMED + 3)

    timing = training.duty.timing
    assert (timing.step, timing.measured, timing.unmeasured) == pytest.approx((1e-2, 1.2e-3, 1e-5))
    assert sum(training.measured) == NUM_TIMED + 1


def test_what_costs_little_is_measured_at_every_step():
    training = Training(0.5)

    training.run(3 * NUM_TIMED + 3)

    assert training.duty.every == 1


def test_a_budget_below_the_cost_of_an_unmeasured_step_cannot_be_kept():
    timing = Timing(step=1e-3, measured=1e-4, unmeasured=2e-5)

    assert not timing.keeps(0.01)
    assert timing.every(0.01) == MAX_EVERY
    assert timing.keeps(0.1)
    assert timing.every(0.1) == 1
