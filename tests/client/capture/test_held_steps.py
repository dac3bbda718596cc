"""Steps of a small model are looked at together: late by a moment, and as they would be one by one."""

import pytest
import torch

from client_runs import make_batch, make_kept_run, make_model
from noisescale.capture.small_batches.gradient_rows import GradientRows
from noisescale.capture.sums import device_values


class Loop:
    def __init__(self, **options):
        self.model = make_model().double()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.run, self.kept = make_kept_run()
        self.run.watch(self.model, self.optimizer, **options)
        self.kept.let_come = lambda: None

    def step(self, index, num_small=4):
        inputs, classes = make_batch(16, seed=index)
        for x, y in zip(inputs.double().chunk(num_small), classes.chunk(num_small), strict=True):
            (torch.nn.functional.cross_entropy(self.model(x), y) / num_small).backward()
        self.run.log_gradients(loss=float(index), batch_size=16)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 0.01)  # in place: what is held must be a copy
        self.optimizer.step()
        self.optimizer.zero_grad()


@pytest.fixture
def _no_holding(monkeypatch):
    monkeypatch.setattr(device_values.HeldRows, "is_due", lambda self: True)


@pytest.fixture
def _long_holding(monkeypatch):
    monkeypatch.setattr("noisescale.capture.small_batches.gradient_rows.HELD_SECONDS", 1e9)


def numbers(rows):
    return [(row.step, row.examples, row.sum_trace_cov, row.sum_grad_sq_norm, row.sum_loss, row.flags) for row in rows]


@pytest.mark.parametrize("every", [1, 3])
def test_held_steps_are_the_same_as_those_looked_at_at_once(monkeypatch, every):
    def rows(is_due):
        with monkeypatch.context() as patch:
            patch.setattr("noisescale.capture.small_batches.gradient_rows.HELD_SECONDS", 0.0 if is_due else 1e9)
            loop = Loop(every=every)
            for index in range(12):
                loop.step(index, num_small=4 if index % 5 else 2)
            loop.run.finish()
            return numbers(loop.kept.rows())

    assert rows(is_due=True) == rows(is_due=False)


@pytest.mark.usefixtures("_long_holding")
def test_the_first_step_is_there_at_once_and_those_behind_it_are_held():
    loop = Loop()

    for index in range(3):
        loop.step(index)

    assert [row.step for row in loop.kept.rows()] == [0]


@pytest.mark.usefixtures("_long_holding")
def test_asking_for_the_noise_scale_looks_at_the_steps_that_are_held():
    loop = Loop()
    for index in range(3):
        loop.step(index)

    loop.run.noise_scale()

    assert [row.step for row in loop.kept.rows()] == [0, 1, 2]


def test_a_step_that_is_held_for_long_is_looked_at_while_one_is_logged_of_which_nothing_is_measured(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(device_values.time, "perf_counter", lambda: now[0])
    loop = Loop(every=4)
    for index in range(6):
        now[0] += 0.01
        loop.step(index)
    held = [row.step for row in loop.kept.rows()]
    now[0] += 0.2

    loop.step(6)

    assert held == [0]
    assert [row.step for row in loop.kept.rows()] == [0, 4]


def test_slow_steps_are_not_held(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(device_values.time, "perf_counter", lambda: now[0])
    loop = Loop()

    for index in range(3):
        now[0] += 1.0
        loop.step(index)

    assert [row.step for row in loop.kept.rows()] == [0, 1, 2]


@pytest.mark.usefixtures("_long_holding")
def test_rows_that_find_no_room_are_reduced(monkeypatch):
    twelve_rows_of_three_layers = 12 * 3 * 256 * 8
    monkeypatch.setattr("noisescale.capture.small_batches.gradient_rows.HELD_BYTES", twelve_rows_of_three_layers)
    loop = Loop()

    for index in range(6):  # of 5 rows each
        loop.step(index)

    assert [row.step for row in loop.kept.rows()] == [0, 1, 2, 3, 4]


@pytest.mark.usefixtures("_long_holding")
def test_steps_of_which_nothing_is_measured_keep_their_place():
    loop = Loop(every=3)
    for index in range(9):
        loop.step(index)

    loop.run.finish()

    assert [(row.step, row.sum_loss, row.num_loss) for row in loop.kept.rows()] == [
        (0, 0.0, 1),
        (3, 6.0, 3),
        (6, 15.0, 3),
        (8, 15.0, 2),
    ]


def test_more_rows_than_the_buffer_had_keep_what_it_held():
    parameters = [torch.zeros(3, dtype=torch.float64)]
    rows = GradientRows(parameters, torch.ones(1, 1, dtype=torch.float64))
    held = []

    for value in range(1, 6):
        rows.add([torch.full((3,), float(value), dtype=torch.float64)])
        held.append(rows.hold())

    assert [norms.tolist()[0] for norms in held] == pytest.approx([3.0, 12.0, 27.0, 48.0, 75.0])
