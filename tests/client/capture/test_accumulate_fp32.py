"""`watch(..., accumulate="fp32")`: the training's gradients are right at any time, and so are the terms."""

import contextlib
import copy

import pytest
import torch
import torch.distributed as dist
from torch import nn

from client_runs import make_batch, make_kept_run, make_model, terms_of
from noisescale.capture.sums import row_sums
from noisescale.capture.sums.row_sums import ColumnRows
from noisescale.kernels.choice import takes_triton
from noisescale.options import Arithmetic
from noisescale_core.errors import ConfigError


@pytest.fixture(autouse=True)
def _adds_in_one_pass(monkeypatch):
    """As on a CUDA device where Triton's kernels work; here the same in plain PyTorch."""
    monkeypatch.setattr(row_sums, "takes_triton", lambda *_: True)


def backward(model, seed, size=4, *, share=0.25, **options):
    x, y = make_batch(16, seed)
    dtype = next(model.parameters()).dtype
    (nn.functional.cross_entropy(model(x[:size].to(dtype)).float(), y[:size]) * share).backward(**options)


def gradients(model):
    return [None if p.grad is None else p.grad.detach().clone() for p in model.parameters()]


def flat(found):
    return torch.cat([g.flatten().double() for g in found])


class Exact:
    """Sums of what each backward adds, in fp64."""

    def __init__(self, model, device="cpu"):
        self.sums = [torch.zeros(p.shape, dtype=torch.float64, device=device) for p in model.parameters()]
        for index, parameter in enumerate(model.parameters()):
            parameter.register_hook(lambda gradient, index=index: self.see(index, gradient))

    def see(self, index, gradient):
        self.sums[index] += gradient.double()


def norms_of_step(run):
    watch = run._main.watch
    watch.log_step("tag", batch_size=16, loss=None)
    ((_, norms),) = watch.sent.drain()
    return norms


@pytest.mark.parametrize("sizes", [(4, 4, 4, 4), (7, 2, 4, 3)], ids=["equal", "unequal"])
def test_gradients_of_32_bit_are_the_sums_of_the_micro_batches_to_rounding(sizes):
    model = make_model()
    exact = Exact(model)
    run, kept = make_kept_run()
    run.watch(model, arithmetic=Arithmetic(accumulate="fp32"))

    for seed, size in enumerate(sizes):
        backward(model, seed, size, share=size / 16)
    run.log_gradients()

    for parameter, total in zip(model.parameters(), exact.sums, strict=True):
        assert torch.allclose(parameter.grad.double(), total, rtol=1e-6, atol=1e-7)
    assert kept.rows()[0].num_micro_batches == 4


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_of_16_bit_are_rounded_once_and_not_at_each_addition(dtype):
    model = make_model().to(dtype)
    twin = copy.deepcopy(model)
    exact = Exact(model)
    run, _ = make_kept_run()
    run.watch(model, arithmetic=Arithmetic(accumulate="fp32"))

    for seed in range(64):
        backward(model, seed, share=1 / 64)
        backward(twin, seed, share=1 / 64)

    truth = flat(exact.sums)
    ours, autograd = flat(gradients(model)), flat(gradients(twin))
    assert torch.equal(ours, truth.float().to(dtype).double())
    assert (ours - truth).norm() < (autograd - truth).norm() / 3


@pytest.mark.parametrize("groups", ["layer", "none"])
@pytest.mark.parametrize("num_flushes", [1, 3])
def test_the_terms_of_each_group_are_those_of_the_default(groups, num_flushes, monkeypatch):
    if num_flushes > 1:
        monkeypatch.setattr("noisescale.capture.sums.pending_gradients.most_pending", lambda _: 150)
    found = []
    for accumulate in ("autograd", "fp32"):
        model = make_model()
        run, _ = make_kept_run()
        run.watch(model, arithmetic=Arithmetic(accumulate=accumulate), groups=groups)
        for seed in range(4):
            backward(model, seed)
        found.append(norms_of_step(run))

    assert len(found[0].big_sq_norms) == (4 if groups == "layer" else 1)
    assert found[1].weighted_sq_norms == pytest.approx(found[0].weighted_sq_norms, rel=1e-6)
    assert found[1].big_sq_norms == pytest.approx(found[0].big_sq_norms, rel=1e-6)


def test_further_kinds_see_the_same_small_batches():
    found = []
    for accumulate in ("autograd", "fp32"):
        model = make_model()
        run, _ = make_kept_run()
        run.watch(model, arithmetic=Arithmetic(accumulate=accumulate), kinds="sign")
        for seed in range(4):
            backward(model, seed)
        found.append(norms_of_step(run))

    assert found[1].weighted_sq_norms == pytest.approx(found[0].weighted_sq_norms, rel=1e-6)
    assert (found[1].kind_terms, found[1].kind_brackets) == (found[0].kind_terms, found[0].kind_brackets)


def test_the_norm_of_the_whole_batch_takes_no_pass_of_its_own(monkeypatch):
    model = make_model()
    run, kept = make_kept_run()
    run.watch(model, arithmetic=Arithmetic(accumulate="fp32"))
    passes = []
    part = ColumnRows.part
    monkeypatch.setattr(ColumnRows, "part", lambda self, *lists: passes.append(1) or part(self, *lists))

    for seed in range(4):
        backward(model, seed)
    num_before = len(passes)
    run.log_gradients()

    big = sum(float(p.grad.double().square().sum()) for p in model.parameters())
    trace_cov, grad_sq_norm = terms_of(kept.rows()[0])
    assert (num_before, len(passes)) == (1, 1)  # the first micro-batch is where the sum begins
    assert grad_sq_norm + trace_cov / 16 == pytest.approx(big, rel=1e-6)


def test_clipping_uses_the_norm_of_that_pass(monkeypatch):
    norms = []
    for is_measured in (False, True):
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        run, _ = make_kept_run()
        run.watch(model, optimizer, arithmetic=Arithmetic(accumulate="fp32"))
        for step in range(5):
            for seed in range(4):
                backward(model, 10 * step + seed)
            run.log_gradients()
            if step == 4:  # the first three times both are compared
                monkeypatch.setattr(nn.utils, "clip_grad_norm_", None if is_measured else nn.utils.clip_grad_norm_)
            norm = run.clip_grad_norm_(0.01) if is_measured else nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            norms.append((float(norm), float(flat(gradients(model)).norm())))
            optimizer.step()
            optimizer.zero_grad()

    for own, ours in zip(norms[:5], norms[5:], strict=True):
        assert ours == pytest.approx(own, rel=1e-5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_on_a_gpu_gradients_and_terms_are_the_same(dtype, monkeypatch):
    monkeypatch.setattr(row_sums, "takes_triton", takes_triton)
    model = make_model().to("cuda", dtype)
    forward = model.forward
    model.forward = lambda x: forward(x.to("cuda", dtype)).float().cpu()
    twin = copy.deepcopy(make_model()).to("cuda", dtype)
    twin.forward, twin_forward = lambda x: twin_forward(x.to("cuda", dtype)).float().cpu(), twin.forward
    exact = Exact(twin, "cuda")
    run, _ = make_kept_run()
    run.watch(model, arithmetic=Arithmetic(accumulate="fp32"))
    plain, _ = make_kept_run()
    plain.watch(twin)

    for seed in range(8):
        backward(model, seed, share=1 / 8)
        backward(twin, seed, share=1 / 8)

    ours, truth = flat(gradients(model)).cpu(), flat(exact.sums).cpu()
    assert torch.allclose(ours, truth, rtol=1e-6 if dtype == torch.float32 else 2**-8, atol=1e-7)
    found, expected = norms_of_step(run), norms_of_step(plain)
    assert found.weighted_sq_norms == pytest.approx(expected.weighted_sq_norms, rel=1e-6)
    assert found.big_sq_norms[0] == pytest.approx(float(truth @ truth), rel=1e-5)


# ---- the training stays what it was


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("is_logged_first", [True, False])
def test_clipping_clearing_and_steps_that_are_not_measured(dtype, set_to_none, every, is_logged_first):
    finals = []
    for is_watched in (False, True):
        model = make_model().to(dtype)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        run, _ = make_kept_run()
        if is_watched:
            run.watch(model, optimizer, arithmetic=Arithmetic(accumulate="fp32"), every=every)
        for step in range(4):
            optimizer.zero_grad(set_to_none=set_to_none)
            for seed in range(3):
                backward(model, 10 * step + seed)
            if is_logged_first:
                run.log_gradients()
            nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            run.log_gradients()
            optimizer.step()
        finals.append(flat(p.detach() for p in model.parameters()))
        run.finish()

    assert torch.allclose(finals[1], finals[0], rtol=0, atol=1e-6 if dtype == torch.float32 else 5e-3)
    assert run.faults.count == 0


def test_a_loss_scaler_finds_the_whole_gradient_and_its_scale_is_undone():
    weights, terms = [], []
    for accumulate in (None, "autograd", "fp32"):
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        run, kept = make_kept_run()
        if accumulate is not None:
            run.watch(model, optimizer, arithmetic=Arithmetic(accumulate=accumulate), scaler=scaler)
        for step in range(3):
            for seed in range(4):
                x, y = make_batch(4, 10 * step + seed)
                scaler.scale(nn.functional.cross_entropy(model(x), y) / 4).backward()
            if step != 1:
                run.log_gradients(batch_size=16)
            scaler.unscale_(optimizer)
            if step == 1:
                run.log_gradients(batch_size=16)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        run.finish()
        weights.append(flat(p.detach() for p in model.parameters()))
        terms.append([terms_of(row) for row in kept.rows()])

    assert torch.allclose(weights[2], weights[0], atol=1e-6)
    assert [value for pair in terms[2] for value in pair] == pytest.approx(
        [value for pair in terms[1] for value in pair], rel=1e-5
    )


def asks_for_gradients(model, run):
    x = make_batch(4, 9)[0].to(model[0].weight.dtype)
    torch.autograd.grad(model(x).square().sum(), list(model.parameters()))


def keeps_a_graph(model, run):
    backward(model, 9, create_graph=True)


def is_left_out(model, run):
    with run.ignore():
        backward(model, 9)


def is_one_of_several(model, run):
    with run.micro_batch():
        backward(model, 9)
        backward(model, 8)


def reaches_one_layer(model, run):
    model[3](torch.ones(1, 8, dtype=model[3].weight.dtype)).square().sum().backward()


def is_given_its_inputs(model, run):
    backward(model, 9, inputs=[model[0].weight])


def is_unwatched_before(model, run):
    run.unwatch()


def changes_the_gradient(model, run):
    for parameter in model.parameters():
        parameter.grad.mul_(2)


def replaces_the_gradient(model, run):
    for parameter in model.parameters():
        parameter.grad = 2 * parameter.grad


def drops_one_gradient(model, run):
    model[0].weight.grad = None


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise MemoryError("out of memory")


def fails_and_is_cleared(set_to_none):
    def fail(model, run):
        with pytest.raises(MemoryError):
            model[3](Fails.apply(model[0](make_batch()[0].to(model[3].weight.dtype)))).sum().backward()
        model.zero_grad(set_to_none=set_to_none)
        backward(model, 7)

    return fail


def fails_and_goes_on(model, run):
    with pytest.raises(MemoryError):
        model[3](Fails.apply(model[0](make_batch()[0].to(model[3].weight.dtype)))).sum().backward()
    with contextlib.suppress(RuntimeError):
        torch.autograd.grad(model(make_batch()[0].to(model[3].weight.dtype)).sum(), model[0].weight)


def fails_at_a_hook(model, run):
    def refuse(gradient):
        raise MemoryError("a hook of the training")

    handle = model[3].bias.register_hook(refuse)
    with pytest.raises(MemoryError):
        model[3].bias.sum().backward()
    handle.remove()


@pytest.mark.filterwarnings("ignore:Using backward")  # PyTorch advises against create_graph
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "disturb",
    [
        asks_for_gradients,
        keeps_a_graph,
        is_left_out,
        is_one_of_several,
        reaches_one_layer,
        is_given_its_inputs,
        is_unwatched_before,
        changes_the_gradient,
        replaces_the_gradient,
        drops_one_gradient,
        pytest.param(fails_and_is_cleared(True), id="fails, cleared"),
        pytest.param(fails_and_is_cleared(False), id="fails, zeroed"),
        fails_and_goes_on,
        fails_at_a_hook,
    ],
)
def test_after_two_micro_batches_something_happens_and_two_more_follow(disturb, dtype):
    found = []
    for is_watched in (False, True):
        model = make_model().to(dtype)
        run, _ = make_kept_run()
        if is_watched:
            run.watch(model, arithmetic=Arithmetic(accumulate="fp32"))
        for seed in range(2):
            backward(model, seed)
        disturb(model, run)
        for seed in range(2, 4):
            backward(model, seed)
        found.append(gradients(model))
        model.zero_grad()
        run.log_gradients()
        run.finish()

    tolerance = 1e-6 if dtype == torch.float32 else 0.02
    for ours, plain in zip(found[1], found[0], strict=True):
        assert torch.allclose(ours, plain, rtol=tolerance, atol=tolerance)
    assert run.faults.count == 0


def test_parameters_without_a_gradient_or_with_a_sparse_one():
    found = []
    for is_watched in (False, True):
        torch.manual_seed(0)
        model = nn.ModuleDict({"words": nn.Embedding(10, 4, sparse=True), "head": nn.Linear(4, 3)})
        model["idle"] = nn.Linear(2, 2)
        model["now_and_then"] = nn.Linear(4, 4)
        run, kept = make_kept_run()
        if is_watched:
            run.watch(model, arithmetic=Arithmetic(accumulate="fp32"))
        for k in range(4):
            hidden = model["words"](torch.tensor([k, 2 * k, 1]))
            hidden = model["now_and_then"](hidden) if k % 2 else hidden
            (model["head"](hidden).square().mean() / 4).backward()
        run.log_gradients(batch_size=12)
        run.finish()
        found.append([None if p.grad is None else p.grad.to_dense() for p in model.parameters()])

    for ours, plain in zip(found[1], found[0], strict=True):
        assert (ours is None) == (plain is None)
        assert ours is None or torch.allclose(ours, plain, rtol=1e-6, atol=1e-7)
    assert kept.rows()[0].num_micro_batches == 4


def test_a_hook_of_the_training_behind_the_accumulation_sees_the_whole_gradient():
    model = make_model()
    seen = []
    model[0].weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    run, _ = make_kept_run()
    run.watch(model, arithmetic=Arithmetic(accumulate="fp32"))

    for seed in range(3):
        backward(model, seed)

    assert torch.equal(seen[-1], model[0].weight.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_where_measuring_fails_the_training_gets_its_gradient(dtype, monkeypatch):
    def fail(*_):
        raise MemoryError("no room for the sums")

    model = make_model().to(dtype)
    exact = Exact(model)
    run, _ = make_kept_run(strict=False)
    run.watch(model, arithmetic=Arithmetic(accumulate="fp32"))
    monkeypatch.setattr(ColumnRows, "accumulate", fail)

    for seed in range(3):
        backward(model, seed)

    tolerance = 1e-6 if dtype == torch.float32 else 2**-8
    for parameter, total in zip(model.parameters(), exact.sums, strict=True):
        assert torch.allclose(parameter.grad.double(), total, rtol=tolerance, atol=1e-7)
    assert run.faults.count == 2


class WithoutCallback:
    def __init__(self, engine):
        self.run_backward = engine.run_backward


def test_without_an_end_of_backward_callback_autograd_adds(monkeypatch):
    engine = torch.autograd.Variable._execution_engine
    monkeypatch.setattr(torch.autograd.Variable, "_execution_engine", WithoutCallback(engine))
    model, twin = make_model(), make_model()
    run, _ = make_kept_run()
    run.watch(model, arithmetic=Arithmetic(accumulate="fp32"))

    for seed in range(3):
        backward(model, seed)
        backward(twin, seed)

    assert torch.equal(flat(gradients(model)), flat(gradients(twin)))


def test_unwatch_leaves_no_hook():
    model = make_model()
    before = str([dict(vars(p)) for p in model.parameters()])
    run, _ = make_kept_run()

    run.watch(model, arithmetic=Arithmetic(accumulate="fp32"))
    num_while = [len(p._post_accumulate_grad_hooks) for p in model.parameters()]
    run.unwatch()

    assert num_while == [1] * 6
    assert [p._post_accumulate_grad_hooks for p in model.parameters()] == [None] * 6
    assert str([dict(vars(p)) for p in model.parameters()]) == before


def test_the_stream_says_that_the_rounding_changes():
    run, _ = make_kept_run()

    run.watch(make_model(), arithmetic=Arithmetic(accumulate="fp32"))

    assert any("accumulate='fp32'" in note for note in run._main.watch.notes)


def test_where_no_kernel_adds_up_nothing_changes_in_32_bit(monkeypatch):
    monkeypatch.setattr(row_sums, "takes_triton", lambda *_: False)
    model, twin = make_model(), make_model()
    run, kept = make_kept_run()
    run.watch(model, arithmetic=Arithmetic(accumulate="fp32"))

    for seed in range(4):
        backward(model, seed)
        backward(twin, seed)
    run.log_gradients()

    assert torch.equal(flat(gradients(model)), flat(gradients(twin)))
    assert kept.rows()[0].num_micro_batches == 4
    assert not run._main.watch.notes


def test_gradients_of_16_bit_are_summed_in_32_bit_without_a_kernel_too(monkeypatch):
    monkeypatch.setattr(row_sums, "takes_triton", lambda *_: False)
    model = make_model().bfloat16()
    exact = Exact(model)
    run, kept = make_kept_run()
    run.watch(model, arithmetic=Arithmetic(accumulate="fp32"))

    for seed in range(16):
        backward(model, seed, share=1 / 16)
    run.log_gradients()

    assert torch.equal(flat(gradients(model)), flat(exact.sums).float().bfloat16().double())
    assert kept.rows()[0].num_micro_batches == 16


# ---- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accumulate": "fp16"}, "accumulate must be one of autograd, fp32, got 'fp16'"),
        ({"accumulate": "fp32", "split": 2}, "leave split and small_batches='auto' out"),
        ({"accumulate": "fp32", "small_batches": "per_example"}, "small_batches='per_example' out"),
    ],
    ids=["unknown", "split", "per example"],
)
def test_what_cannot_be_is_refused(options, message):
    run, _ = make_kept_run()

    with pytest.raises(ConfigError, match=message):
        run.watch(make_model(), **options)


def test_data_parallel_jobs_own_their_gradients():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    run, _ = make_kept_run()
    try:
        model = nn.parallel.DistributedDataParallel(make_model())

        with pytest.raises(ConfigError, match="DDP owns the gradients: leave it out"):
            run.watch(model, arithmetic=Arithmetic(accumulate="fp32"))
    finally:
        dist.destroy_process_group()
