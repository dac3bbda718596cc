"""The newest noise scale goes to the user's own tracker, once a second, and its faults stay ours to report."""

import pytest
import torch
from torch import nn

from client_runs import make_batch, make_kept_run, make_model
from noisescale.mirrors.mirroring import Mirroring
from noisescale.transport.wire import FinishRecord


class Shown:
    def __init__(self, fault=None):
        self.calls = []
        self.fault = fault

    def log(self, step, values):
        if self.fault is not None:
            raise self.fault
        self.calls.append((step, dict(values)))


class Clock:
    def __init__(self):
        self.seconds = 100.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    own = Mirroring.__init__
    monkeypatch.setattr(Mirroring, "__init__", lambda self, mirror, now, faults: own(self, mirror, clock, faults))
    return clock


def train(run, clock, seconds, num_steps):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    run.watch(model, optimizer)
    for step in range(num_steps):
        clock.seconds += seconds
        inputs, classes = make_batch(16, seed=step)
        for x, y in zip(inputs.split(4), classes.split(4), strict=True):
            (nn.functional.cross_entropy(model(x), y) / 4).backward()
        run.log_gradients(batch_size=16)
        run.noise_scale()  # steps of a small model are looked at together, the clock of the mirror is not the real one
        optimizer.step()
        optimizer.zero_grad()


def test_it_is_shown_once_a_second_and_at_the_end(clock):
    shown = Shown()
    run, _ = make_kept_run(mirror=shown)

    train(run, clock, 0.3, 10)
    run.finish()

    assert [step for step, _ in shown.calls] == [0, 4, 8, 9]
    assert shown.calls[-1][1]["noisescale/state"] in (0.0, 1.0, 2.0)


def test_the_last_step_is_not_shown_twice(clock):
    shown = Shown()
    run, _ = make_kept_run(mirror=shown)

    train(run, clock, 2.0, 3)
    run.finish()

    assert [step for step, _ in shown.calls] == [0, 1, 2]


def test_norms_of_the_script_are_shown_too(clock):
    shown = Shown()
    run, _ = make_kept_run(mirror=shown)

    for _ in range(3):
        clock.seconds += 2.0
        run.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=3.0, big_sq_norm=1.0)

    assert [step for step, _ in shown.calls] == [0, 1, 2]


def test_a_fault_of_the_tracker_costs_nothing_but_its_own_line(clock, caplog):
    run, kept = make_kept_run(mirror=Shown(OSError("the tracker is away")), strict=False)

    train(run, clock, 2.0, 4)
    run.finish()

    assert [row.step for row in kept.rows()] == [0, 1, 2, 3]
    assert isinstance(kept.records[-1], FinishRecord)
    assert kept.is_closed
    assert run.faults.count >= 4
    assert caplog.text.count("left something out") == 1


def test_a_fault_of_the_tracker_does_not_cost_the_steps_that_arrive_together(clock):
    """As from a device that is a few steps behind."""
    run, kept = make_kept_run(mirror=Shown(OSError("the tracker is away")), strict=False)
    steps = run._recorders.main._log
    arrived = []
    own, steps.record = steps.record, arrived.extend

    train(run, clock, 2.0, 4)
    steps.record = own
    steps.record(arrived)

    assert [row.step for row in kept.rows()] == [0, 1, 2, 3]


def test_an_interrupt_inside_the_tracker_passes(clock):
    run, _ = make_kept_run(mirror=Shown(KeyboardInterrupt()))

    with pytest.raises(KeyboardInterrupt):
        train(run, clock, 2.0, 1)
    run._recorders.main._mirroring = None


def test_only_the_main_optimizer_is_shown(clock):
    shown = Shown()
    run, _ = make_kept_run(mirror=shown)
    models = [make_model(seed) for seed in range(2)]
    for name, model in zip("ab", models, strict=True):
        run.watch(model, name=name)

    for step in range(2):
        clock.seconds += 2.0
        for name, model in zip("ab", models, strict=True):
            for x, y in zip(*(part.split(4) for part in make_batch(16, seed=step)), strict=True):
                (nn.functional.cross_entropy(model(x), y) / 4).backward()
            run.log_gradients(name=name)
            model.zero_grad()
        run.noise_scale()

    assert [step for step, _ in shown.calls] == [0, 1]
