"""An optimizer whose `step` calls that of the class above it makes one update, though torch calls hooks at both."""

import functools

import pytest
import torch
from torch import nn

from client_runs import make_kept_run
from noisescale.capture.data_parallel.job import OneProcess
from noisescale.capture.hooks import nested_steps
from noisescale.capture.hooks.hooks import guard
from noisescale.capture.path.update_path import UpdatePath
from noisescale.transport.wire import Measurement

NUM_WITHOUT_PATH = Measurement._fields.index("num_path_updates")


class Announced(torch.optim.AdamW):
    """As people write them: something of their own around the step that there is."""

    def step(self, closure=None):
        return super().step(closure)


class Refusing(Announced):
    """Three steps deep; the third call ends in an error, when the hooks of the outermost were called."""

    num_calls = 0

    def step(self, closure=None):
        self.num_calls += 1
        if self.num_calls == 3:
            raise MemoryError
        return super().step(closure)


class Wrapper(torch.optim.Optimizer):
    """Its step calls that of another optimizer, which is the one that is watched."""

    def __init__(self, inner):
        super().__init__(inner.param_groups, {})
        self.inner = inner

    def step(self, closure=None):
        return self.inner.step(closure)


def make_model(*optimizers):
    """A model of which an optimizer of each class was made: torch puts hooks on a class with the first one of it."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 10))
    for make in optimizers:
        make(model.parameters())
    return model


def backward(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(2):
        (model(torch.randn(8, 6, generator=generator)).square().mean() / 2).backward()


def rows_of(make, *, every, with_closure):
    """The rows of twelve steps, without the time and the looks at the path, whose plan follows a clock."""
    model = make_model(torch.optim.AdamW, Announced)
    optimizer = make(model.parameters(), lr=1e-3)
    run, kept = make_kept_run()
    run.watch(model, optimizer, every=every)

    def closure():
        backward(model, seed=1)
        run.log_gradients(batch_size=16)

    for _ in range(12):
        optimizer.zero_grad()
        if with_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    run.finish()
    return [row._replace(wall_time=0.0)[:NUM_WITHOUT_PATH] for row in kept.rows()]


@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("with_closure", [False, True])
def test_its_steps_are_numbered_and_measured_as_those_of_the_class_itself(every, with_closure):
    plain = rows_of(torch.optim.AdamW, every=every, with_closure=with_closure)

    assert rows_of(Announced, every=every, with_closure=with_closure) == plain
    assert [row[0] for row in plain][:2] == [0, every]


def look_at_updates(make, wrap=lambda optimizer: optimizer):
    """A path whose looks are held against what each of four updates changed."""
    model = make_model(torch.optim.AdamW, Announced)
    optimizer = make(model.parameters(), lr=1e-3, weight_decay=0.0)
    parameters = list(model.parameters())
    guarded = functools.partial(functools.partial, guard, pytest.fail)
    path = UpdatePath(parameters, optimizer, job=OneProcess(parameters), guard=guarded)
    stepping = wrap(optimizer)
    for seed in range(4):
        optimizer.zero_grad()
        backward(model, seed)
        before = torch.cat([p.detach().double().flatten() for p in parameters])
        try:
            stepping.step()
        except MemoryError:
            stepping.step()
        change = torch.cat([p.detach().double().flatten() for p in parameters]) - before
        looks = path.arrived()
        assert [look.sq_norm for look in looks] == [pytest.approx(float(change.square().sum()), rel=1e-3)], seed
    return path


def test_its_updates_are_those_that_it_made():
    assert look_at_updates(Announced).num_updates == 4


@pytest.mark.parametrize("make", [torch.optim.AdamW, Announced])
def test_a_wrapper_around_it_changes_nothing(make):
    assert look_at_updates(make, Wrapper).num_updates == 4


def test_a_step_that_ended_in_an_error_hides_no_later_one():
    """What is tried again is counted again, as with any optimizer."""
    assert look_at_updates(Refusing).num_updates == 5


def test_a_torch_that_calls_hooks_in_another_way_does_not_break_a_step(monkeypatch):
    def wrapper(self):
        return nested_steps._call_outermost(lambda _: "called", self)

    monkeypatch.setattr(nested_steps, "_CALLS_HOOKS", wrapper.__code__)

    assert wrapper(object()) == "called"
