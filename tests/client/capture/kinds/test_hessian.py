"""Kind `hessian`: tr(H Σ) and Gᵀ H G from Hessian-vector products, and nothing of the training touched."""

import itertools
import random

import numpy as np
import pytest
import torch
from torch import nn

from noisescale.capture.kinds.hessian import hessian_terms
from noisescale_core.errors import EstimationError

SIZES = (5, 3, 6, 4)


def make_problem(dtype=torch.float64, num_examples=40, seed=0):
    """A small network and a population of examples."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(dtype)
    return model, torch.randn(num_examples, 3, dtype=dtype), torch.randint(0, 2, (num_examples,))


def mean_loss(model, inputs, classes, chosen):
    return lambda: nn.functional.cross_entropy(model(inputs[chosen]), classes[chosen])


def gradient_of(loss, parameters):
    return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss(), parameters)]).double()


def hessian_of(loss, parameters):
    """The whole matrix, one row after the other."""
    gradient = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss(), parameters, create_graph=True)])
    rows = [torch.autograd.grad(g, parameters, retain_graph=True) for g in gradient]
    return torch.stack([torch.cat([r.reshape(-1) for r in row]) for row in rows]).double()


def all_pairs(gradients, sizes, hessian):
    """tr(H Σ) from differences of pairs, Gᵀ H G from what they leave of the mean's quadratic form."""
    total, num = sum(sizes), len(sizes)
    trace = sum(
        sizes[j] * sizes[k] / total * float((gradients[j] - gradients[k]) @ hessian @ (gradients[j] - gradients[k]))
        for j in range(num)
        for k in range(j)
    ) / (num - 1)
    mean = sum(size / total * g for size, g in zip(sizes, gradients, strict=True))
    return trace, float(mean @ hessian @ mean) - trace / total


def cut(sizes):
    bounds = np.cumsum([0, *sizes])
    return [slice(int(start), int(end)) for start, end in itertools.pairwise(bounds)]


@pytest.mark.parametrize("has_curvature_loss", [True, False], ids=["independent", "leave one out"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_the_terms_equal_brute_force(has_curvature_loss, dtype, tolerance):
    model, inputs, classes = make_problem(dtype)
    parameters = list(model.parameters())
    losses = [mean_loss(model, inputs, classes, chosen) for chosen in cut(SIZES)]
    curvature = mean_loss(model, inputs, classes, slice(18, 40)) if has_curvature_loss else None

    terms = hessian_terms(parameters, losses, curvature, sizes=SIZES)

    gradients = [gradient_of(loss, parameters) for loss in losses]
    if curvature is not None:
        truth = all_pairs(gradients, SIZES, hessian_of(curvature, parameters))
    else:
        truth = np.zeros(2)
        for left_out in range(4):
            others = [k for k in range(4) if k != left_out]
            hessian = hessian_of(losses[left_out], parameters)
            found = all_pairs([gradients[k] for k in others], [SIZES[k] for k in others], hessian)
            truth += SIZES[left_out] / sum(SIZES) * np.array(found)
    scale = max(abs(value) for value in truth)
    assert (terms.trace_cov, terms.grad_sq_norm) == pytest.approx(tuple(truth), rel=tolerance, abs=tolerance * scale)


def exact_terms(model, inputs, classes):
    """tr(H Σ) and Gᵀ H G of the population that examples are drawn from."""
    parameters = list(model.parameters())
    each = torch.stack([gradient_of(mean_loss(model, inputs, classes, [i]), parameters) for i in range(len(inputs))])
    mean = each.mean(0)
    hessian = hessian_of(mean_loss(model, inputs, classes, slice(None)), parameters)
    deviation = each - mean
    return float((deviation @ hessian * deviation).sum() / len(each)), float(mean @ hessian @ mean)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("has_curvature_loss", [True, False], ids=["independent", "leave one out"])
def test_both_terms_are_unbiased(has_curvature_loss):
    """Draws with replacement from a known population, sizes unequal; each term within 5 standard errors."""
    model, inputs, classes = make_problem()
    truth = exact_terms(model, inputs, classes)
    generator = torch.Generator().manual_seed(4)
    sizes = (3, 1, 2)

    found = []
    for _ in range(150):
        drawn = torch.randint(0, len(inputs), (10,), generator=generator)
        losses = [mean_loss(model, inputs, classes, drawn[chosen]) for chosen in cut(sizes)]
        curvature = mean_loss(model, inputs, classes, drawn[6:]) if has_curvature_loss else None
        terms = hessian_terms(list(model.parameters()), losses, curvature, sizes=sizes)
        found.append((terms.trace_cov, terms.grad_sq_norm))

    found = np.array(found)
    error = found.std(0, ddof=1) / len(found) ** 0.5
    assert (np.abs(found.mean(0) - truth) < 5 * error).all()
    assert error[0] < 0.15 * truth[0]


def test_training_goes_on_bit_for_bit_as_if_nothing_had_happened():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
    inputs, classes = torch.randn(20, 3), torch.randint(0, 2, (20,))
    nn.functional.cross_entropy(model(inputs), classes).backward()
    grads = [p.grad.clone() for p in model.parameters()]
    state = {name: value.clone() for name, value in model.state_dict().items()}
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()

    def loss_of(chosen):
        def loss():
            random.random()
            np.random.rand()
            return nn.functional.cross_entropy(model(inputs[chosen]), classes[chosen])

        return loss

    losses = [loss_of(chosen) for chosen in cut((5, 5, 5, 5))]
    hessian_terms(list(model.parameters()), losses, sizes=(5, 5, 5, 5), buffers=list(model.buffers()))

    assert all(torch.equal(p.grad, grad) for p, grad in zip(model.parameters(), grads, strict=True))
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert np.random.get_state()[1].tolist() == before[2]


def test_a_loss_that_fails_leaves_everything_as_it_was():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    running_mean = model[1].running_mean.clone()
    state = torch.get_rng_state()

    def loss():
        model(torch.randn(5, 3)).sum()
        raise KeyError("no more data")

    with pytest.raises(KeyError, match="no more data"):
        hessian_terms(list(model.parameters()), [loss] * 3, sizes=(5, 5, 5), buffers=list(model.buffers()))

    assert torch.equal(model[1].running_mean, running_mean)
    assert torch.equal(torch.get_rng_state(), state)


def test_frozen_and_unused_parameters_do_not_count():
    model, inputs, classes = make_problem()
    losses = [mean_loss(model, inputs, classes, chosen) for chosen in cut(SIZES)]
    model[0].weight.requires_grad_(False)
    unused = torch.ones(3, dtype=torch.float64, requires_grad=True)
    curvature = mean_loss(model, inputs, classes, slice(18, 40))

    terms = hessian_terms([*model.parameters(), unused], losses, curvature, sizes=SIZES)

    trained = [p for p in model.parameters() if p.requires_grad]
    gradients = [gradient_of(loss, trained) for loss in losses]
    truth = all_pairs(gradients, SIZES, hessian_of(curvature, trained))
    assert (terms.trace_cov, terms.grad_sq_norm) == pytest.approx(truth, rel=1e-10)


def test_a_linear_loss_has_no_curvature():
    weight = torch.ones(3, requires_grad=True)
    losses = [lambda k=k: (weight * k).sum() for k in range(1, 4)]

    terms = hessian_terms([weight], losses, sizes=(1, 1, 1))

    assert (terms.trace_cov, terms.grad_sq_norm) == (0.0, 0.0)


def test_a_curvature_may_be_negative():
    """On a saddle the terms keep their signs; who reads them says unresolved."""
    weight = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    shifts = [0.5, -0.5, 0.25, -0.25]
    losses = [lambda s=s: -((weight[1] + s) ** 2) + (weight[0] + s) ** 2 / 8 for s in shifts]

    terms = hessian_terms([weight], losses, losses[0], sizes=(1,) * 4)

    assert terms.trace_cov < 0
    assert terms.grad_sq_norm < 0


class OnceOnly(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


def attention(weight):
    heads = weight.expand(1, 1, 4, 3)
    return nn.functional.scaled_dot_product_attention(heads, heads, heads)


@pytest.mark.parametrize("operation", [OnceOnly.apply, attention], ids=["once only", "fused attention"])
def test_an_operation_without_second_derivative_is_named(operation):
    """Torch goes round the first in silence, as if it had no curvature."""
    weight = torch.ones(3, requires_grad=True)

    with pytest.raises(EstimationError, match="differentiates twice, which some operation of this model refuses"):
        hessian_terms([weight], [lambda: operation(weight).square().sum()] * 3, sizes=(1, 1, 1))


@pytest.mark.parametrize(
    ("num_losses", "has_curvature_loss", "sizes", "sentence"),
    [
        (2, False, (1, 1), "at least 3 small batches, got 2: use smaller ones, or a curvature_loss"),
        (1, True, (1,), "at least 2 small batches, got 1: use smaller ones"),
        (3, True, (1, 1), "sizes must be the examples of each of the 3 small batches"),
        (3, True, (1, 0, 1), "sizes must be the examples of each of the 3 small batches"),
    ],
)
def test_what_cannot_be_estimated_is_refused(num_losses, has_curvature_loss, sizes, sentence):
    weight = torch.ones(1, requires_grad=True)
    loss = weight.square().sum

    with pytest.raises(EstimationError, match=sentence):
        hessian_terms([weight], [loss] * num_losses, loss if has_curvature_loss else None, sizes=sizes)


def test_without_a_trained_parameter_there_is_nothing_to_measure():
    weight = torch.ones(1)

    with pytest.raises(EstimationError, match="must hold one that requires a gradient"):
        hessian_terms([weight], [weight.sum] * 3, sizes=(1, 1, 1))
