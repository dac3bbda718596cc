"""Layers that are trained later are measured from then on, whoever the small batches are."""

import pytest
import torch
from torch import nn

from client_runs import (
    brute_force_terms,
    flat_gradient,
    gradient_of_each,
    make_batch,
    make_kept_run,
    make_model,
    terms_of,
    terms_of_means,
)


class Loop:
    """Four micro-batches of eight examples a step, or one backward, at weights that stay."""

    def __init__(self, *, num_parts, **options):
        self.model, self.num_parts, self.options = make_model().double(), num_parts, options
        self.inputs, self.classes = make_batch(32)
        self.inputs = self.inputs.double()
        self.run, self.kept = make_kept_run()

    def start(self, parameters):
        self.optimizer = torch.optim.SGD(parameters, lr=0.0)
        self.run.watch(self.model, self.optimizer, **self.options)

    def steps(self, num_steps):
        for _ in range(num_steps):
            parts = zip(self.inputs.chunk(self.num_parts), self.classes.chunk(self.num_parts), strict=True)
            for x, y in parts:
                (nn.functional.cross_entropy(self.model(x), y) / self.num_parts).backward()
            self.run.log_gradients()
            self.optimizer.step()
            self.optimizer.zero_grad()

    def finish(self):
        self.run.finish()
        return self.kept.rows()


def truth_of_parts(loop, parameters):
    losses = [
        nn.functional.cross_entropy(loop.model(x), y)
        for x, y in zip(loop.inputs.chunk(4), loop.classes.chunk(4), strict=True)
    ]
    return terms_of_means([flat_gradient(loss, parameters) for loss in losses], [8] * 4)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("is_given_late", [True, False], ids=["given to the optimizer later", "unfrozen"])
def test_layers_that_are_trained_later_are_measured_after_eight_steps(is_given_late):
    loop = Loop(num_parts=4)
    first, last = list(loop.model[:2].parameters()), list(loop.model[-1].parameters())
    if not is_given_late:
        loop.model[:2].requires_grad_(False)
    loop.start(last if is_given_late else loop.model.parameters())
    loop.steps(3)
    if is_given_late:
        loop.optimizer.add_param_group({"params": first})
    else:
        loop.model[:2].requires_grad_(True)
    loop.steps(8)

    rows = loop.finish()

    assert terms_of(rows[0]) == pytest.approx(truth_of_parts(loop, last), rel=1e-9)
    assert terms_of(rows[-1]) == pytest.approx(truth_of_parts(loop, [*first, *last]), rel=1e-9)
    assert any("other parameters are trained" in note for note in loop.run._recorders.main._stream.notes)


@pytest.mark.parametrize("options", [{}, {"small_batches": "per_example"}], ids=["unasked", "per_example"])
def test_so_are_they_by_examples(options):
    loop = Loop(num_parts=1, **options)
    loop.model[:2].requires_grad_(False)
    loop.start(loop.model.parameters())
    loop.steps(4)
    loop.model[:2].requires_grad_(True)
    loop.steps(20)

    measured = [row for row in loop.finish() if row.sum_trace_cov is not None]

    gradients = gradient_of_each(loop.model, loop.inputs, loop.classes)
    assert terms_of(measured[-1]) == pytest.approx(brute_force_terms(list(gradients.values()), [1] * 32), rel=1e-9)


def test_layers_that_are_frozen_later_leave_the_measurement():
    loop = Loop(num_parts=4)
    loop.start(loop.model.parameters())
    loop.steps(2)
    loop.model[:2].requires_grad_(False)
    loop.steps(10)

    rows = loop.finish()

    last = list(loop.model[-1].parameters())
    assert terms_of(rows[-1]) == pytest.approx(truth_of_parts(loop, last), rel=1e-9)
    assert rows[-1].flags == 0


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("options", [{}, {"accumulate": "fp32"}], ids=str)
def test_a_layer_frozen_between_two_measured_steps_ends_no_measurement_and_leaves_no_hook(options):
    loop = Loop(num_parts=4, every=3, **options)
    last = list(loop.model[-1].parameters())
    loop.start(loop.model.parameters())

    loop.steps(2)
    loop.model[-1].requires_grad_(False)
    loop.steps(5)
    rest = [p for p in loop.model.parameters() if p.requires_grad]
    trace_cov, grad_sq_norm = truth_of_parts(loop, rest)
    rows = [row for row in loop.finish() if row.sum_trace_cov is not None]

    assert [row.step for row in rows] == [0, 3, 6]
    for row in rows[1:]:
        assert row.sum_trace_cov == pytest.approx(trace_cov, rel=1e-6)
        assert row.sum_grad_sq_norm == pytest.approx(grad_sq_norm, rel=1e-6)
    assert not any(p._backward_hooks for p in [*rest, *last])
    assert loop.run.faults.count == 0
