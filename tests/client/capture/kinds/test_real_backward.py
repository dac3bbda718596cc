"""Each kind fed by hooks of a real model, with accumulation and frozen weights, against one backward per example."""

import pytest
import torch
from torch import nn

from noisescale.capture.kinds.adam import AdamKind
from noisescale.capture.kinds.sign import SignKind
from noisescale.capture.kinds.spectral import SpectralKind

SIZES = (4, 4, 4, 4)


class Adapted(nn.Module):
    """A frozen layer with a low-rank adapter, and a trained output layer."""

    def __init__(self, dtype):
        super().__init__()
        torch.manual_seed(0)
        self.base = nn.Linear(6, 5, dtype=dtype).requires_grad_(False)
        self.down = nn.Linear(6, 2, bias=False, dtype=dtype)
        self.up = nn.Linear(2, 5, bias=False, dtype=dtype)
        self.head = nn.Linear(5, 3, dtype=dtype)

    def forward(self, inputs):
        return self.head(torch.tanh(self.base(inputs) + self.up(self.down(inputs))))


def make_case(dtype=torch.float64):
    model = Adapted(dtype)
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(sum(SIZES), 6, generator=generator, dtype=dtype)
    classes = torch.randint(0, 3, (sum(SIZES),), generator=generator)
    return model, [p for p in model.parameters() if p.requires_grad], inputs, classes


def gradients_of_small_batches(model, parameters, inputs, classes):
    """From one backward per example, averaged in fp64: [K][parameter]."""
    each = [
        torch.autograd.grad(nn.functional.cross_entropy(model(x[None]), y[None]), parameters)
        for x, y in zip(inputs, classes, strict=True)
    ]
    return [
        [torch.stack([each[i][p].double() for i in range(4 * k, 4 * k + 4)]).mean(0) for p in range(len(parameters))]
        for k in range(len(SIZES))
    ]


def accumulate(kind, model, parameters, inputs, classes):
    """A step of four backward passes; the hooks see what autograd adds to `p.grad`, or what becomes it."""
    hooks = [p.register_hook(lambda g, i=i: kind.add([i], [g])) for i, p in enumerate(parameters)]
    kind.clear()
    for p in parameters:
        p.grad = None
    for k in range(len(SIZES)):
        chosen = slice(4 * k, 4 * k + 4)
        (nn.functional.cross_entropy(model(inputs[chosen]), classes[chosen]) / len(SIZES)).backward()
        kind.end_small_batch(4)
    for hook in hooks:
        hook.remove()
    return kind.values(scale=1.0).tolist()


@pytest.mark.parametrize(
    ("make", "dtype", "tolerance"),
    [
        (SignKind, torch.float32, 1e-5),
        (SignKind, torch.float64, 1e-10),
        (SpectralKind, torch.float32, 1e-5),
        (SpectralKind, torch.float64, 1e-7),
    ],
)
def test_a_real_backward_gives_the_values_of_its_examples(make, dtype, tolerance):
    """Four small batches of one step leave V singular: the root of a rounded zero is 1e-8, also in fp64."""
    model, parameters, inputs, classes = make_case(dtype)
    found = accumulate(make(parameters), model, parameters, inputs, classes)

    kind = make([p.double() for p in parameters])
    for of_batch in gradients_of_small_batches(model, parameters, inputs, classes):
        kind.add(range(len(parameters)), [g / len(SIZES) for g in of_batch])
        kind.end_small_batch(4)

    assert found == pytest.approx(kind.values(scale=1.0).tolist(), rel=tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_a_real_backward_gives_adams_terms_of_its_examples(dtype, tolerance):
    model, parameters, inputs, classes = make_case(dtype)
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    for _ in range(6):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), classes).backward()
        optimizer.step()

    weighted, big, _ = accumulate(AdamKind(parameters, optimizer), model, parameters, inputs, classes)

    divisors = [
        (optimizer.state[p]["exp_avg_sq"].double() / (1 - 0.999**6)).sqrt() + optimizer.param_groups[0]["eps"]
        for p in parameters
    ]
    g = [
        torch.cat([(x / d).reshape(-1) for x, d in zip(of_batch, divisors, strict=True)])
        for of_batch in gradients_of_small_batches(model, parameters, inputs, classes)
    ]
    truth = sum(float(x.square().sum()) for x in g) / len(SIZES), float((sum(g) / len(SIZES)).square().sum())
    assert (weighted, big) == pytest.approx(truth, rel=tolerance)
