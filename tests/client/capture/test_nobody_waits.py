"""Between the first forward and the log of a step nobody reads a number of the device or copies it to the host.

Tensors on "meta" have shapes and no numbers: whatever would wait for a GPU raises there.
"""

import copy

import pytest
import torch
from torch import nn

from client_runs import make_batch, make_kept_run, make_model
from noisescale.capture.kinds import adam, sign
from noisescale.capture.sums import row_sums
from noisescale.capture.sums.device_values import DeviceValues


@pytest.fixture
def sent(monkeypatch):
    """Vectors that set out for the host."""
    vectors = []
    monkeypatch.setattr(DeviceValues, "send", lambda self, tag, values: vectors.append(values))
    return vectors


@pytest.fixture(params=["PyTorch's operators", "kernels"])
def _either(request, monkeypatch):
    if request.param == "kernels":
        for module in (row_sums, adam, sign):
            monkeypatch.setattr(module, "takes_triton", lambda *_: True)


def train(model, run, watched, num_steps, device, *, num_micro_batches=3, **options):
    optimizer = watched(model)
    run.watch(model, optimizer, **options)
    for step in range(num_steps):
        for k in range(num_micro_batches):
            x, y = (part.to(device) for part in make_batch(4, 10 * step + k))
            (nn.functional.cross_entropy(model(x), y) / num_micro_batches).backward()
        run.log_gradients(batch_size=4 * num_micro_batches)
        optimizer.step()
        optimizer.zero_grad()


def adam_of(model):
    """One whose state is there already, with its count of steps on the device."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
    for p in model.parameters():
        optimizer.state[p] = {
            "step": torch.zeros((), device=p.device),
            "exp_avg": torch.zeros_like(p),
            "exp_avg_sq": torch.zeros_like(p),
        }
    optimizer.step = lambda: None
    return optimizer


def adam_with_hooks_of(model):
    """The same, whose step is looked at."""
    optimizer = adam_of(model)
    hooks = optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks
    optimizer.step = lambda: [hook(optimizer, (), {}) for some in hooks for hook in some.values()]
    return optimizer


def sgd_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


CASES = {
    "micro-batches": (sgd_of, torch.bfloat16, {}),
    "in 32 bit": (sgd_of, torch.float32, {"accumulate": "fp32"}),
    "every other step, in 32 bit": (sgd_of, torch.bfloat16, {"accumulate": "fp32", "every": 2}),
    "what Adam promises": (adam_with_hooks_of, torch.bfloat16, {}),
    "adam": (adam_of, torch.float32, {"kinds": "adam"}),
    "sign and adam, in 32 bit": (adam_of, torch.bfloat16, {"kinds": ("adam", "sign"), "accumulate": "fp32"}),
}


@pytest.mark.thorough
@pytest.mark.usefixtures("_either")
@pytest.mark.parametrize("case", CASES)
def test_a_device_is_never_asked_for_a_number(case, sent):
    watched, dtype, options = CASES[case]
    model = copy.deepcopy(make_model()).to("meta", dtype)
    forward = model.forward
    model.forward = lambda x: forward(x.to(dtype)).float()
    run, _ = make_kept_run()

    train(model, run, watched, 4, "meta", **options)

    num_looks = 0 if watched is adam_of else 4  # each of the first updates; that optimizer's step does nothing
    num_logged = 2 if "every" in options else 4
    # of what measured steps promise; that Adam has several small batches is known after the first
    num_promised = {adam_of: 0, sgd_of: num_logged, adam_with_hooks_of: 3}[watched]
    assert [vector.device.type for vector in sent if vector.numel()] == ["meta"] * (
        num_logged + num_looks + num_promised
    )
    assert run.faults.count == 0


@pytest.mark.parametrize("ask", [torch.Tensor.item, torch.Tensor.tolist, torch.Tensor.cpu, bool])
def test_such_a_device_tells_whoever_asks(ask):
    value = torch.zeros((), device="meta")

    with pytest.raises((RuntimeError, NotImplementedError)):
        ask(value)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("case", CASES)
def test_a_gpu_is_never_waited_for(case):
    watched, dtype, options = CASES[case]
    model = make_model().to("cuda", dtype)
    run, _ = make_kept_run()
    run.watch(model, watched(model), **options)  # kernels are compiled and tested here
    run.unwatch()
    forward = model.forward
    model.forward = lambda x: forward(x.to(dtype)).float()
    optimizer = watched(model)
    run.watch(model, optimizer, **options)
    batches = [[part.cuda() for part in make_batch(4, seed)] for seed in range(12)]
    _step(model, run, optimizer, batches[:3])  # layouts are made, and travel to the device

    torch.cuda.set_sync_debug_mode("error")
    try:
        for first in (3, 6, 9):
            _step(model, run, optimizer, batches[first : first + 3])
    finally:
        torch.cuda.set_sync_debug_mode("default")

    assert run.faults.count == 0


def _step(model, run, optimizer, batches):
    for x, y in batches:
        (nn.functional.cross_entropy(model(x), y) / len(batches)).backward()
    run.log_gradients(batch_size=12)
    optimizer.step()
    optimizer.zero_grad()
