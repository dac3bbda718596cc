"""Only every k-th step is measured: by choice, or as a budget allows."""

import logging

import pytest
import torch
from torch import nn

from client_runs import make_batch, make_kept_run, make_model
from noisescale.capture.duty_cycle import MAX_EVERY, NUM_TIMED, NUM_WARM_UP, ROUND, DutyCycle
from noisescale.track.step_counter import StepPace
from noisescale.transport.wire import RunRecord
from noisescale_core.estimators.flags import Flags


class Loop:
    """Four micro-batches a step, other data at each."""

    def __init__(self, *, lr=0.1, optimizer=True, **options):
        self.model = make_model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.run, self.kept = make_kept_run(**{k: options.pop(k) for k in ("log_every", "strict") if k in options})
        self.watch(optimizer, **options)

    def watch(self, optimizer, **options):
        self.run.watch(self.model, self.optimizer if optimizer else None, **options)

    def step(self, index, *, log=True, **arguments):
        inputs, classes = make_batch(16, seed=index)
        loss = torch.zeros(())
        for x, y in zip(inputs.split(4), classes.split(4), strict=True):
            part = nn.functional.cross_entropy(self.model(x), y) / 4
            part.backward()
            loss += part.detach()
        if log:
            self.run.log_gradients(**{"loss": loss, **arguments})
        gradients = torch.cat([p.grad.flatten() for p in self.model.parameters()]).clone()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss, gradients

    def is_hooked(self):
        return bool(self.model._forward_pre_hooks) or any(p._backward_hooks for p in self.model.parameters())


@pytest.mark.usefixtures("either_way")
def test_the_rows_of_measured_steps_are_those_of_a_loop_that_measures_all():
    every, all_steps = Loop(every=3), Loop()

    for index in range(10):
        every.step(index)
        all_steps.step(index)
    every.run.finish()

    rows, truth = every.kept.rows(), all_steps.kept.rows()
    assert [row.step for row in rows] == [0, 3, 6, 9]
    for row in rows:
        assert row.sum_trace_cov == truth[row.step].sum_trace_cov
        assert row.sum_grad_sq_norm == truth[row.step].sum_grad_sq_norm
        assert (row.num_updates, row.flags) == (1, 0)


@pytest.mark.usefixtures("either_way")
def test_losses_of_all_steps_and_their_examples_are_in_the_rows():
    loop = Loop(every=3)

    losses = [float(loop.step(index)[0]) for index in range(7)]
    loop.run.finish()

    rows = loop.kept.rows()
    assert [(row.step, row.num_loss, row.examples) for row in rows] == [(0, 1, 16), (3, 3, 64), (6, 3, 112)]
    assert [row.sum_loss for row in rows] == pytest.approx([losses[0], sum(losses[1:4]), sum(losses[4:7])])


def test_finish_sends_what_followed_the_last_measured_step():
    loop = Loop(every=4)

    losses = [float(loop.step(index, lr=0.5 if index == 6 else None)[0]) for index in range(7)]
    loop.run.finish()

    last = loop.kept.rows()[-1]
    assert [row.step for row in loop.kept.rows()] == [0, 4, 6]
    assert (last.num_updates, last.num_loss, last.sum_trace_cov, last.lr) == (2, 2, None, 0.5)
    assert last.sum_loss == pytest.approx(sum(losses[5:]))


def test_rows_of_several_updates_count_steps_that_were_not_measured():
    loop = Loop(every=2, log_every=4)

    for index in range(9):
        loop.step(index)
    loop.run.finish()

    assert [(row.step, row.num_updates, row.num_loss) for row in loop.kept.rows()] == [(4, 3, 5), (8, 2, 4)]


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("options", [{"every": 3}, {"overhead": 0.01}, {"overhead": 1.0}])
def test_training_is_bit_identical(options):
    watched, plain = Loop(**options), Loop()
    plain.run.unwatch()

    for index in range(40):
        for ours, theirs in zip(watched.step(index), plain.step(index, log=False), strict=True):
            assert torch.equal(ours, theirs)

    for ours, theirs in zip(watched.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.usefixtures("either_way")
def test_between_measured_steps_nothing_of_ours_is_on_the_model():
    loop = Loop(every=3)
    is_hooked = []

    for index in range(7):
        is_hooked.append(loop.is_hooked())
        loop.step(index)

    assert is_hooked == [True, False, False, True, False, False, True]


def test_a_loss_that_is_not_finite_is_flagged_in_an_unmeasured_step_too():
    loop = Loop(every=3)

    loop.step(0)
    loop.step(1, loss=float("nan"))
    loop.step(2)
    loop.step(3)

    row = loop.kept.rows()[1]
    assert (row.num_loss, row.flags) == (2, Flags.NONFINITE_LOSS)


def test_steps_without_a_log_are_counted_all_the_same():
    loop = Loop(every=2)

    for index in range(8):
        loop.step(index, log=index != 2)
    loop.run.finish()

    assert [row.step for row in loop.kept.rows()] == [0, 4, 6, 7]


def test_without_an_optimizer_the_logs_are_counted():
    loop = Loop(every=3, optimizer=False)

    for index in range(7):
        loop.step(index)

    assert [row.step for row in loop.kept.rows()] == [0, 3, 6]


def test_an_unmeasured_step_is_logged_once(caplog):
    loop = Loop(every=2)
    loop.step(0)
    loop.step(1, log=False)
    loop.run.unwatch()
    loop.watch(True, every=2)
    loop.step(2)

    inputs, classes = make_batch(16)
    nn.functional.cross_entropy(loop.model(inputs), classes).backward()
    loop.run.log_gradients(loss=1.0)
    loop.run.log_gradients(loss=1.0)

    assert "twice within one optimizer step" in caplog.text


@pytest.mark.usefixtures("either_way")
def test_an_unmeasured_step_stays_logged_whatever_the_loop_does_before_the_optimizer_steps(caplog):
    loop = Loop(every=3)
    for index in range(3):
        loop.step(index)
    loop.step(3)

    inputs, classes = make_batch(16)
    loop.run.log_gradients(loss=1.0)
    loop.optimizer.zero_grad()
    with loop.run.micro_batch():
        nn.functional.cross_entropy(loop.model(inputs), classes).backward()
    loop.run.log_gradients(loss=9.0)

    assert "twice within one optimizer step" in caplog.text
    loop.run.finish()
    assert sum(row.num_loss for row in loop.kept.rows()) == 5
    assert all(row.sum_loss is None or row.sum_loss < 9 for row in loop.kept.rows())


def test_the_stream_says_every_how_many_steps_are_measured():
    loop = Loop(every=3)

    assert loop.run._recorders.main._run_record("simple").stream["measure_every"] == 3


# ---- a budget


class Clock:
    """A clock that stands still until somebody lets time pass."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


def timed_duty(overhead, *, step, measured, unmeasured):
    """A duty cycle that has seen steps of these durations and our parts of them."""
    fixed = []
    clock = Clock()
    duty = DutyCycle(1, overhead, on_fixed=fixed.append, clock=clock)
    while not fixed:
        assert duty.is_timing
        cost = measured if duty.is_measured() else unmeasured
        duty.add_cost(cost)
        clock.seconds += step + cost
        duty.end_step()
    return duty, fixed


@pytest.mark.parametrize(
    ("overhead", "costs", "every"),
    [
        (0.01, {"step": 1.0, "measured": 0.02, "unmeasured": 0.0}, 2),
        (0.01, {"step": 1.0, "measured": 0.005, "unmeasured": 0.0}, 1),
        (0.01, {"step": 1.0, "measured": 0.094, "unmeasured": 0.005}, 18),
        (0.5, {"step": 0.001, "measured": 0.002, "unmeasured": 0.0}, 4),
        (0.01, {"step": 0.001, "measured": 0.1, "unmeasured": 0.001}, MAX_EVERY),
    ],
)
def test_k_is_the_smallest_that_keeps_the_budget(overhead, costs, every):
    duty, fixed = timed_duty(overhead, **costs)

    assert duty.every == every
    assert [duty.timing.step, duty.timing.measured, duty.timing.unmeasured] == pytest.approx(list(costs.values()))
    assert fixed == [duty]


def test_the_first_steps_are_timed_and_every_third_is_measured():
    clock = Clock()
    duty = DutyCycle(1, 0.01, on_fixed=lambda _: None, clock=clock)
    measured = []
    while duty.is_timing:
        measured.append(duty.is_measured())
        clock.seconds += 1.0
        duty.end_step()

    assert measured[:6] == [True, False, False, True, False, False]
    assert sum(measured[NUM_WARM_UP:]) == NUM_TIMED


def test_then_every_kth_step_is_measured_beginning_with_the_next():
    duty, _ = timed_duty(0.01, step=1.0, measured=0.04, unmeasured=0.0)
    assert duty.every == 4

    measured = []
    for _ in range(9):
        measured.append(duty.is_measured())
        duty.end_step()

    assert measured == [True, False, False, False, True, False, False, False, True]


def test_a_slow_step_now_and_then_does_not_spoil_the_choice():
    clock = Clock()
    duty = DutyCycle(1, 0.01, on_fixed=lambda _: None, clock=clock)
    number = 0
    while duty.is_timing:
        duty.add_cost(0.02 if duty.is_measured() else 0.0)
        clock.seconds += 30.0 if number % 7 == 5 else 1.02  # an evaluation, a checkpoint
        duty.end_step()
        number += 1

    assert duty.every == 2


@pytest.fixture
def loop_in_a_budget(monkeypatch, caplog):
    """A loop whose clock is ours: 1 s a step, 30 ms for a measured one, all by the real code."""
    caplog.set_level(logging.INFO)
    clock = Clock()
    monkeypatch.setattr("noisescale.capture.watch.time.perf_counter", clock)
    monkeypatch.setattr("noisescale.capture.hooks.hooks.time.perf_counter", clock)
    loop = Loop(overhead=0.01)
    duty = loop.run._recorders.main.watch.duty

    def step(index):
        if duty.is_timing and duty.is_measured():
            duty.add_cost(0.03)
        clock.seconds += 1.0
        return loop.step(index)

    loop.timed_step = step
    return loop


def test_what_a_budget_allows_is_said_and_sent(loop_in_a_budget, caplog):
    loop = loop_in_a_budget

    first = loop.run._recorders.main._run_record("simple").stream["measure_every"]
    for index in range(NUM_WARM_UP + ROUND * NUM_TIMED + 20):
        loop.timed_step(index)

    records = [record for record in loop.kept.records if isinstance(record, RunRecord)]
    assert first is None
    assert records[-1].stream["measure_every"] == loop.run._recorders.main.watch.duty.every
    assert loop.run._recorders.main.watch.duty.every in (4, 5)  # a quarter of the budget is for looks at the rate
    assert "keeps within 1 % of the training's time" in caplog.text


def test_after_the_timing_our_calls_are_not_timed_any_more(loop_in_a_budget):
    loop = loop_in_a_budget

    for index in range(NUM_WARM_UP + ROUND * NUM_TIMED + 1):
        loop.timed_step(index)

    duty = loop.run._recorders.main.watch.duty
    before = duty._cost
    loop.step(41)
    assert not duty.is_timing
    assert duty._cost == before


# ---- how long it takes


def test_how_long_it_takes_is_said_from_the_first_window_on(caplog):
    caplog.set_level(logging.INFO)
    loop = Loop(lr=0.0)

    for index in range(40):
        loop.step(index)
    loop.run.noise_scale()

    said = [record.message for record in caplog.records if record.message.startswith("noise scale after")]
    assert [message.split(":")[0] for message in said] == [
        "noise scale after 16 measured steps",
        "noise scale after 32 measured steps",
    ]


def test_the_wait_is_in_steps_and_in_time():
    """Every third step is measured, and a step takes 2 s."""
    loop = Loop(every=3, lr=0.0)
    main = loop.run._recorders.main
    clock = Clock()
    main._log._now = lambda: clock.seconds

    for index in range(90):
        clock.seconds += 2.0
        loop.step(index)
    now = loop.run.noise_scale()

    assert now.steps_per_update == 3
    assert now.seconds_per_step == pytest.approx(2.0)


def test_the_pace_is_that_of_the_last_hundred_steps():
    pace = StepPace()
    seconds = 0.0

    for step in range(400):
        seconds += 1.0 if step < 250 else 3.0
        pace.see(step, seconds)

    assert pace.seconds_per_step == pytest.approx(3.0)


def test_a_job_that_goes_back_to_a_checkpoint_has_a_pace_of_its_own_again():
    pace = StepPace()

    for step, seconds in ((100, 0.0), (101, 2.0), (50, 10.0), (51, 14.0)):
        pace.see(step, seconds)

    assert pace.seconds_per_step == pytest.approx(4.0)
