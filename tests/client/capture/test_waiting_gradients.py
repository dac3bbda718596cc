"""Gradients that wait to be summed up: how long, what memory they may take, and what else a backward may bring."""

import pytest
import torch
from torch import nn

from client_runs import make_batch, make_kept_run, make_model
from noisescale.capture.sums import pending_gradients
from noisescale_core.estimators.flags import Flags


class Memory:
    """Stands in for an accelerator's counts."""

    def __init__(self, *, now=900, most, limit=1 << 20):
        self.now = pending_gradients.DeviceMemory(now, most, limit)

    def __call__(self, device):
        return self.now


@pytest.fixture
def held_at_the_end(monkeypatch, at_once):
    """Trains with such counts of memory: how many gradients each sum of the last backward was of."""
    monkeypatch.setattr(pending_gradients, "most_pending", lambda _: 60)
    monkeypatch.setattr(pending_gradients, "SETTLED_AFTER", 0)

    def train(memory, num_backwards=4, then=None):
        monkeypatch.setattr(pending_gradients, "memory_of", memory)
        model = make_model()
        run, kept = make_kept_run()
        run.watch(model)
        pending = run._main.watch._hooks._accumulation.pending
        reduce, sums = pending._reduce_held, []

        def counted():
            sums.append(sum(gradient is not None for gradient in pending.held))
            reduce()

        monkeypatch.setattr(pending, "_reduce_held", counted)
        x, y = make_batch()
        for number in range(num_backwards):
            if then is not None and number == num_backwards - 2:
                memory.now = then
            sums.clear()
            (nn.functional.cross_entropy(model(x), y) / num_backwards).backward()
        found = [num for num in sums if num]
        run.log_gradients()
        run.finish()
        assert kept.rows()[0].num_micro_batches == num_backwards
        assert not run.faults.count
        return found

    return train


@pytest.mark.parametrize(
    ("memory", "sums_of"),
    [
        (Memory(most=10_000), [6]),
        (Memory(most=1_000), [3, 3]),  # the end of the backward is the most already
        (Memory(most=10_000, limit=10_100), [3, 3]),  # no room beside it
        (lambda _: None, [3, 3]),
    ],
    ids=["room", "as much as ever", "a full device", "not counted"],
)
def test_all_gradients_wait_for_the_end_of_a_backward_where_memory_has_room_for_them(held_at_the_end, memory, sums_of):
    assert held_at_the_end(memory) == sums_of


def test_they_no_longer_wait_once_more_memory_was_in_use_than_before(held_at_the_end):
    more = pending_gradients.DeviceMemory(900, 10_001, 1 << 20)

    assert held_at_the_end(Memory(most=10_000), num_backwards=6, then=more) == [3, 3]


def test_nothing_is_decided_before_the_optimizer_has_made_its_state(at_once, monkeypatch):
    """The most that is in use in the first step is less than what the training needs."""
    asked = []
    monkeypatch.setattr(pending_gradients, "most_pending", lambda _: 60)
    monkeypatch.setattr(pending_gradients, "memory_of", lambda _: asked.append(1))
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters())
    run, _ = make_kept_run()
    run.watch(model, optimizer)

    for step in range(4):
        before = len(asked)
        for x, y in zip(*(part.split(4) for part in make_batch(seed=step)), strict=True):
            (nn.functional.cross_entropy(model(x), y) / 4).backward()
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()
        assert (len(asked) > before) == (step >= 2)
    run.finish()


def test_an_allocator_that_counts_nothing_is_taken_for_one(monkeypatch):
    def refuse(*_):
        raise RuntimeError("CUDAPluggableAllocator does not yet support getDeviceStats")

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (1, 2))
    monkeypatch.setattr(torch.cuda, "memory_reserved", refuse)

    assert pending_gradients.memory_of(torch.device("cuda", 0)) is None


class WithoutBias(torch.autograd.Function):
    """A linear layer of the user's, which hands over no gradient for its bias."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x @ weight.t() + bias

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight, grad_output.t() @ x, None


def test_a_parameter_that_is_handed_no_gradient_breaks_nothing(either_way):
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    model.forward = lambda x: WithoutBias.apply(x, model.weight, model.bias)
    run, kept = make_kept_run()
    run.watch(model)

    for x, y in zip(*(part.split(4) for part in make_batch()), strict=True):
        (nn.functional.cross_entropy(model(x), y) / 4).backward()
    run.log_gradients()
    run.finish()

    assert model.bias.grad is None
    assert not run.faults.count
    assert kept.rows()[0].num_micro_batches == 4
    assert kept.rows()[0].sum_trace_cov is not None


@pytest.mark.parametrize("swap", [False, True], ids=["transposed", "moved"])
def test_a_smallest_gradient_that_is_no_plain_run_of_memory_is_compared_with_itself(at_once, swap):
    torch.manual_seed(0)
    model = nn.Linear(40, 30, bias=False)
    model.weight.data = model.weight.data.t().contiguous().t()
    run, kept = make_kept_run()
    run.watch(model)

    for x in torch.randn(16, 40).split(4):
        (model(x).square().mean() / 4).backward()
        if swap:
            model.weight.grad.data = model.weight.grad.data.clone()
    run.log_gradients()
    run.finish()

    assert not kept.rows()[0].flags & Flags.UNMATCHED_GRADIENT
    assert kept.rows()[0].sum_trace_cov is not None


def test_a_fault_at_the_end_of_a_backward_leaves_the_step_without_an_estimate(at_once, monkeypatch):
    """A micro-batch is missing then, and three would be taken for all."""
    model = make_model()
    run, kept = make_kept_run(strict=False)
    run.watch(model)
    accumulation = run._main.watch._hooks._accumulation
    take, calls = accumulation._take_pending, []

    def failing_once():
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("out of memory")
        return take()

    monkeypatch.setattr(accumulation, "_take_pending", failing_once)
    for x, y in zip(*(part.split(4) for part in make_batch()), strict=True):
        (nn.functional.cross_entropy(model(x), y) / 4).backward()
    run.log_gradients()
    run.finish()

    assert run.faults.count == 1
    assert kept.rows()[0].sum_trace_cov is None
    assert kept.rows()[0].flags & Flags.UNMATCHED_GRADIENT
