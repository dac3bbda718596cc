"""Loss and gradients are bit-identical with and without; afterwards nothing of ours is left."""

import copy
import io
import pickle
import subprocess
import sys

import pytest
import torch
from torch import nn

from client_runs import make_batch, make_kept_run, make_model
from noisescale.capture.sums import row_sums
from noisescale.kernels import PREFERENCE, MultiTensor
from noisescale.options import Loss
from noisescale_core.errors import ConfigError

pytestmark = pytest.mark.usefixtures("either_way")


def train(optimizer_class, *, is_watched, num_steps=30):
    """Losses, gradients before each step and final parameters, as bytes."""
    model = make_model()
    optimizer = optimizer_class(model.parameters(), lr=0.05)
    run, _ = make_kept_run()
    if is_watched:
        run.watch(model, optimizer)
    seen = []
    for step in range(num_steps):
        inputs, classes = make_batch(16, seed=step)
        for x, y in zip(inputs.split(4), classes.split(4), strict=True):
            loss = nn.functional.cross_entropy(model(x), y) / 4
            loss.backward()
        if is_watched:
            run.log_gradients(loss=loss)
        seen.append(loss.detach().numpy().tobytes() + b"".join(p.grad.numpy().tobytes() for p in model.parameters()))
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    seen.append(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
    return seen


@pytest.mark.parametrize("optimizer_class", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_loss_gradients_and_weights_are_bit_identical(optimizer_class):
    assert train(optimizer_class, is_watched=True) == train(optimizer_class, is_watched=False)


@pytest.mark.parametrize("kernels", ["auto", "torch"])
def test_whatever_kernels_are_asked_for_the_training_runs_its_own(kernels, monkeypatch):
    """A kernel of ours that measured would read, and none would write: nobody asked for `accumulate`."""
    monkeypatch.setattr(PREFERENCE, "kernels", kernels)
    monkeypatch.setattr(row_sums, "takes_triton", lambda asked, *_: asked == "auto")
    monkeypatch.setattr(MultiTensor, "accumulate", None)

    assert train(torch.optim.AdamW, is_watched=True) == train(torch.optim.AdamW, is_watched=False)


def test_autograd_still_hands_its_memory_on_to_grad(at_once):
    """Holding the gradient itself, not its detach(), would make autograd clone every gradient of a large model."""
    model = nn.Linear(3, 2, bias=False)
    run, _ = make_kept_run()
    run.watch(model)
    addresses = []
    model.weight.register_hook(lambda gradient: addresses.append(gradient.data_ptr()))

    model(torch.ones(1, 3)).sum().backward()

    assert addresses == [model.weight.grad.data_ptr()]


def state_of(model, optimizer):
    return (
        {name: dict(vars(module)) for name, module in model.named_modules()},
        [len(p._backward_hooks or {}) for p in model.parameters()],
        [dict(vars(p)) for p in model.parameters()],
        len(optimizer._optimizer_step_post_hooks),
        list(model.state_dict()),
        optimizer.state_dict(),
    )


def test_unwatch_leaves_no_hook_and_no_attribute():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = copy.deepcopy(state_of(model, optimizer))
    run, kept = make_kept_run()

    run.watch(model, optimizer)
    run.unwatch()
    model(make_batch()[0]).sum().backward()
    model.zero_grad()

    after = state_of(model, optimizer)
    assert str(after) == str(before)
    assert kept.records == []


def test_a_watched_model_keeps_its_state_dict():
    model = make_model()
    names = list(model.state_dict())
    run, _ = make_kept_run()

    run.watch(model)

    assert list(model.state_dict()) == names


def test_a_copy_of_a_watched_model_is_not_watched():
    model = make_model()
    run, kept = make_kept_run()
    run.watch(model)
    twin = copy.deepcopy(model)

    for _ in range(2):
        twin(make_batch()[0]).sum().backward()
    run.log_gradients()

    assert kept.rows()[0].num_micro_batches == 0


@pytest.mark.slow
@pytest.mark.processes
def test_a_saved_model_loads_where_this_package_is_missing():
    model = make_model()
    run, _ = make_kept_run()
    run.watch(model)

    pickled = pickle.dumps(model)
    torch.save(model, io.BytesIO())

    assert b"noisescale" not in pickled
    loading = "import pickle, sys, torch; m = pickle.load(sys.stdin.buffer); print(m(torch.ones(1, 4)).shape[1])"
    loaded = subprocess.run([sys.executable, "-c", loading], input=pickled, capture_output=True, check=True)
    assert loaded.stdout == b"3\n"


def compile_and_count(model):
    compilations = []

    def backend(graph, _):
        compilations.append(graph)
        return graph.forward

    return torch.compile(model, backend=backend, fullgraph=True), compilations


@pytest.mark.thorough
def test_a_model_that_is_compiled_after_watch_does_not_compile_again_at_each_forward():
    """Traced, our hook must be empty: its counter would be a guard that fails."""
    model = make_model()
    run, kept = make_kept_run()
    run.watch(model)
    compiled, compilations = compile_and_count(model)

    for step in range(3):
        batches = zip(*(part.split(4) for part in make_batch(16, seed=step)), strict=True)
        losses = [nn.functional.cross_entropy(compiled(x), y) / 4 for x, y in batches]
        for loss in losses:
            loss.backward()
        run.log_gradients(batch_size=16)
        model.zero_grad()

    assert len(compilations) == 1
    assert [row.num_micro_batches for row in kept.rows()] == [4, 4, 4]
    assert all(row.sum_trace_cov > 0 for row in kept.rows())


def test_a_compiled_model_can_be_watched_and_its_batch_size_is_read():
    model = make_model()
    run, kept = make_kept_run()
    compiled, compilations = compile_and_count(model)
    run.watch(compiled)

    for x, y in zip(*(part.split(4) for part in make_batch()), strict=True):
        (nn.functional.cross_entropy(compiled(x), y) / 4).backward()
    run.log_gradients()

    assert len(compilations) == 1
    assert kept.rows()[0].global_batch == 16


def test_a_replica_that_shares_our_hook_does_not_count_its_forwards():
    """DataParallel copies the dictionary of hooks along with the module."""
    model = make_model()
    run, kept = make_kept_run()
    run.watch(model)
    replica = model._replicate_for_data_parallel()

    for x, y in zip(*(part.split(4) for part in make_batch()), strict=True):
        for hook in replica._forward_pre_hooks.values():
            hook(replica, (torch.ones(100, 4),), {})
        (nn.functional.cross_entropy(model(x), y) / 4).backward()
    run.log_gradients()

    assert kept.rows()[0].global_batch == 16


def test_reentrant_checkpointing_gives_one_small_batch_a_backward():
    """Each checkpointed segment runs a backward of its own inside the outer one."""
    model = make_model()
    plain, checkpointed = [], []
    for rows, is_checkpointed in ((plain, False), (checkpointed, True)):
        run, kept = make_kept_run()
        run.watch(model)
        for x, y in zip(*(part.split(4) for part in make_batch()), strict=True):
            run._main.watch._hooks._forward(4, True)
            hidden = x.clone().requires_grad_()
            for layer in model:
                hidden = (
                    torch.utils.checkpoint.checkpoint(layer, hidden, use_reentrant=True)
                    if is_checkpointed
                    else layer(hidden)
                )
            (nn.functional.cross_entropy(hidden, y) / 4).backward()
        run.log_gradients()
        run.finish()
        model.zero_grad()
        rows.extend(kept.rows())

    assert checkpointed[0].num_micro_batches == 4
    assert checkpointed[0].sum_trace_cov == pytest.approx(plain[0].sum_trace_cov, rel=1e-6)


def test_reentrant_checkpointing_adds_the_parts_of_a_shared_parameter_before_squaring():
    model = nn.Linear(4, 4)
    rows = []
    for is_checkpointed in (False, True):
        run, kept = make_kept_run()
        run.watch(model)
        for x in make_batch()[0].split(4):
            hidden = x.clone().requires_grad_()
            for _ in range(2):
                hidden = (
                    torch.utils.checkpoint.checkpoint(lambda h: model(h).tanh(), hidden, use_reentrant=True)
                    if is_checkpointed
                    else model(hidden).tanh()
                )
            (model(hidden).square().mean() / 4).backward()
        run.log_gradients(batch_size=16)
        model.zero_grad()
        rows.append(kept.rows()[0])

    assert [row.num_micro_batches for row in rows] == [4, 4]
    assert rows[1].sum_trace_cov == pytest.approx(rows[0].sum_trace_cov, rel=1e-5)


def test_a_backward_that_fails_half_way_is_forgotten():
    model = make_model()
    inputs, classes = make_batch()
    run, kept = make_kept_run()
    run.watch(model)

    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            raise MemoryError("out of memory")

    with pytest.raises(MemoryError):
        model[3](Fails.apply(model[0](inputs))).sum().backward()
    model.zero_grad()
    for x, y in zip(inputs.split(4), classes.split(4), strict=True):
        (nn.functional.cross_entropy(model(x), y) / 4).backward()
    run.log_gradients()
    run.finish()

    fresh, fresh_kept = make_kept_run()
    fresh.watch(model)
    model.zero_grad()
    for x, y in zip(inputs.split(4), classes.split(4), strict=True):
        (nn.functional.cross_entropy(model(x), y) / 4).backward()
    fresh.log_gradients()
    fresh.finish()
    assert kept.rows()[0].sum_trace_cov == fresh_kept.rows()[0].sum_trace_cov
    assert kept.rows()[0].num_micro_batches == 4


def test_without_an_end_of_backward_callback_the_numbers_are_the_same(at_once, monkeypatch):
    """The callback is a private name of torch: a later version may lack it."""
    rows = []
    for has_callback in (True, False):
        if not has_callback:
            engine = torch.autograd.Variable._execution_engine
            monkeypatch.setattr(torch.autograd.Variable, "_execution_engine", WithoutCallback(engine))
        model = make_model()
        run, kept = make_kept_run()
        run.watch(model)
        for x, y in zip(*(part.split(4) for part in make_batch()), strict=True):
            (nn.functional.cross_entropy(model(x), y) / 4).backward()
        run.log_gradients()
        run.finish()
        rows.append(kept.rows()[0])

    assert rows[0].sum_trace_cov == rows[1].sum_trace_cov
    assert rows[0].num_micro_batches == rows[1].num_micro_batches == 4


class WithoutCallback:
    def __init__(self, engine):
        self.run_backward = engine.run_backward


@pytest.mark.parametrize(("broken", "num_faults"), [("begin_backward", 12), ("_take_pending", 2)])
def test_a_fault_inside_a_hook_never_reaches_the_backward(at_once, caplog, broken, num_faults):
    """One of each of six parameters, or of each backward."""
    caplog.set_level("WARNING", "noisescale")
    model = make_model()
    run, _ = make_kept_run(strict=False)
    run.watch(model)
    setattr(run._main.watch._hooks._accumulation, broken, None)

    model(make_batch()[0]).sum().backward()
    model(make_batch()[0]).sum().backward()

    assert model[0].weight.grad is not None
    assert run.faults.count == num_faults
    assert len(caplog.records) == 1


def test_much_pending_memory_is_reduced_before_the_backward_ends(at_once, monkeypatch):
    monkeypatch.setattr("noisescale.capture.sums.pending_gradients.most_pending", lambda _: 100)
    model = make_model()
    run, kept = make_kept_run()
    run.watch(model)

    for x, y in zip(*(part.split(4) for part in make_batch()), strict=True):
        (nn.functional.cross_entropy(model(x), y) / 4).backward()
    run.log_gradients()
    run.finish()

    monkeypatch.setattr("noisescale.capture.sums.pending_gradients.most_pending", lambda _: 1 << 20)
    whole, whole_kept = make_kept_run()
    whole.watch(model)
    model.zero_grad()
    for x, y in zip(*(part.split(4) for part in make_batch()), strict=True):
        (nn.functional.cross_entropy(model(x), y) / 4).backward()
    whole.log_gradients()
    whole.finish()
    assert kept.rows()[0].sum_trace_cov == pytest.approx(whole_kept.rows()[0].sum_trace_cov, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda m: ("model",), "torch.nn.Module"),
        (lambda m: (m, "sgd"), "torch.optim.Optimizer"),
        (lambda m: (m, torch.optim.LBFGS(m.parameters())), "LBFGS runs backward repeatedly"),
        (lambda m: (nn.ReLU(),), "no parameter that requires a gradient"),
    ],
    ids=["no module", "no optimizer", "LBFGS", "nothing to train"],
)
def test_watch_refuses_what_it_cannot_measure(arguments, message):
    run, _ = make_kept_run()

    with pytest.raises(ConfigError, match=message):
        run.watch(*arguments(make_model()))


def test_watch_refuses_an_unknown_loss_reduction():
    run, _ = make_kept_run()

    with pytest.raises(ConfigError, match="mean_over_examples, mean_over_tokens, sum, got 'mean'"):
        run.watch(make_model(), loss=Loss(reduction="mean"))


def test_a_second_watch_is_refused_until_unwatch():
    run, _ = make_kept_run()
    run.watch(make_model())

    with pytest.raises(ConfigError, match="watches an optimizer already: call unwatch"):
        run.watch(make_model())
    run.unwatch()
    run.watch(make_model())
