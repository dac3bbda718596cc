"""Kind `adam`: the terms of kind `simple`, on gradients divided by what Adam divided by so far."""

import math

import pytest
import torch

from kind_steps import feed, gaussian_gradients
from noisescale.capture.kinds import adam
from noisescale.capture.kinds.adam import AdamKind
from noisescale_core.errors import ConfigError

SIZES = (3.0, 5.0, 2.0, 6.0)

pytestmark = pytest.mark.usefixtures("either_way")


@pytest.fixture(params=["one by one", "in one pass"])
def either_way(request, monkeypatch):
    """As where a kernel of ours adds up, in plain PyTorch, and as elsewhere."""
    monkeypatch.setattr(adam, "takes_triton", lambda *_: request.param == "in one pass")


def make_parameters(dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    return [
        torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in [(4, 3), (5,), (2, 2, 2)]
    ]


def train(optimizer, parameters, num_steps=7, seed=5):
    """Optimizer steps on random gradients: the past that v̂ is made of."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(num_steps):
        for p in parameters:
            p.grad = torch.randn(p.shape, generator=generator, dtype=p.dtype)
        optimizer.step()


def make_gradients(parameters, dtype=None):
    generator = torch.Generator().manual_seed(9)
    mean = [torch.randn(p.shape, generator=generator, dtype=torch.float64) for p in parameters]
    drawn = gaussian_gradients(mean, [torch.ones_like(m) for m in mean], SIZES, generator)
    return [[g.to(dtype or p.dtype) for g, p in zip(of_batch, parameters, strict=True)] for of_batch in drawn]


def brute_force(gradients, sizes, divisors):
    """From all pairs of small batches, in fp64: differences within give tr Σ, what remains |G|²."""
    total = sum(sizes)
    g = [
        torch.cat([(x.double() / d).reshape(-1) for x, d in zip(of_batch, divisors, strict=True) if x is not None])
        for of_batch in gradients
    ]
    between = sum(
        sizes[j] * sizes[k] / total * float((g[j] - g[k]).square().sum()) for j in range(len(g)) for k in range(j)
    )
    trace_cov = between / (len(g) - 1)
    mean = sum(size / total * x for size, x in zip(sizes, g, strict=True))
    return trace_cov, float(mean.square().sum()) - trace_cov / total


def divisors_of(optimizer, parameters, second="exp_avg_sq", eps_inside=False):
    found = []
    for p in parameters:
        (group,) = [g for g in optimizer.param_groups if any(p is q for q in g["params"])]
        state, eps = optimizer.state[p], group["eps"]
        correction = math.sqrt(1 - group["betas"][1] ** float(state["step"]))
        root = state[second].double().sqrt()
        found.append((root + eps) / correction if eps_inside else root / correction + eps)
    return found


@pytest.mark.parametrize(
    ("make", "second", "eps_inside"),
    [
        (lambda p: torch.optim.Adam(p, eps=0.3), "exp_avg_sq", False),
        (lambda p: torch.optim.AdamW(p, foreach=True), "exp_avg_sq", False),
        (lambda p: torch.optim.AdamW(p, fused=True), "exp_avg_sq", False),
        (lambda p: torch.optim.Adam(p, amsgrad=True), "max_exp_avg_sq", False),
        (lambda p: torch.optim.NAdam(p, eps=0.3), "exp_avg_sq", False),
        (lambda p: torch.optim.RAdam(p, eps=0.3), "exp_avg_sq", True),
    ],
    ids=["adam", "foreach", "fused", "amsgrad", "nadam", "radam"],
)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_the_terms_are_those_of_the_divided_gradients(make, second, eps_inside, dtype, tolerance):
    parameters = make_parameters(dtype)
    optimizer = make(parameters)
    train(optimizer, parameters)
    gradients = make_gradients(parameters)
    divisors = divisors_of(optimizer, parameters, second, eps_inside)

    terms = feed(AdamKind(parameters, optimizer), parameters, gradients, SIZES)

    truth = brute_force(gradients, SIZES, divisors)
    assert (terms.trace_cov, terms.grad_sq_norm) == pytest.approx(truth, rel=tolerance)


def test_adamax_divides_by_its_largest_gradient():
    parameters = make_parameters()
    optimizer = torch.optim.Adamax(parameters)
    train(optimizer, parameters)
    gradients = make_gradients(parameters)

    terms = feed(AdamKind(parameters, optimizer), parameters, gradients, SIZES)

    divisors = [optimizer.state[p]["exp_inf"] for p in parameters]
    assert (terms.trace_cov, terms.grad_sq_norm) == pytest.approx(brute_force(gradients, SIZES, divisors), rel=1e-10)


def test_each_parameter_group_has_its_own_epsilon_and_betas():
    parameters = make_parameters()
    optimizer = torch.optim.Adam(
        [{"params": parameters[:1], "eps": 1.0, "betas": (0.9, 0.5)}, {"params": parameters[1:], "betas": (0.9, 0.99)}]
    )
    train(optimizer, parameters)
    gradients = make_gradients(parameters)

    terms = feed(AdamKind(parameters, optimizer), parameters, gradients, SIZES)

    truth = brute_force(gradients, SIZES, divisors_of(optimizer, parameters))
    assert (terms.trace_cov, terms.grad_sq_norm) == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_of_16_bit_are_divided_in_32(dtype):
    """Against the fp64 sums of the same gradients; p.grad itself is rounded once a small batch, hence the tolerance."""
    parameters = make_parameters(dtype)
    optimizer = torch.optim.Adam(parameters, eps=1e-3)
    train(optimizer, parameters)
    gradients = [[g.abs() for g in of_batch] for of_batch in make_gradients(parameters)]

    terms = feed(AdamKind(parameters, optimizer), parameters, gradients, SIZES)

    truth = brute_force(gradients, SIZES, divisors_of(optimizer, parameters))
    assert (terms.trace_cov, terms.grad_sq_norm) == pytest.approx(truth, rel=0.03)


def test_a_parameter_without_gradient_and_one_outside_the_optimizer_do_not_count():
    parameters = make_parameters()
    optimizer = torch.optim.Adam(parameters[:2])
    train(optimizer, parameters[:2])
    gradients = [[None, *rest] for _, *rest in make_gradients(parameters)]

    terms = feed(AdamKind(parameters, optimizer), parameters, gradients, SIZES)

    only = [[of_batch[1]] for of_batch in gradients]
    truth = brute_force(only, SIZES, divisors_of(optimizer, parameters[1:2]))
    assert (terms.trace_cov, terms.grad_sq_norm) == pytest.approx(truth, rel=1e-10)
    assert len(optimizer.state) == 2


def test_a_small_batch_may_leave_parameters_out():
    parameters = make_parameters()
    optimizer = torch.optim.Adam(parameters)
    train(optimizer, parameters)
    gradients = make_gradients(parameters)
    gradients[1][2] = None
    as_zero = [[torch.zeros_like(p) if g is None else g for g, p in zip(b, parameters, strict=True)] for b in gradients]

    terms = feed(AdamKind(parameters, optimizer), parameters, gradients, SIZES)

    truth = brute_force(as_zero, SIZES, divisors_of(optimizer, parameters))
    assert (terms.trace_cov, terms.grad_sq_norm) == pytest.approx(truth, rel=1e-10)


def test_before_5_steps_there_are_no_terms():
    parameters = make_parameters()
    optimizer = torch.optim.Adam(parameters)
    kind = AdamKind(parameters, optimizer)
    gradients = make_gradients(parameters)

    seen = []
    for _ in range(6):
        seen.append((kind.is_ready(), feed(kind, parameters, gradients, SIZES) is not None))
        train(optimizer, parameters, num_steps=1)

    assert seen == [(False, False)] * 5 + [(True, True)]


def test_a_parameter_that_joined_late_holds_the_terms_back():
    parameters = make_parameters()
    optimizer = torch.optim.Adam(parameters)
    train(optimizer, parameters[:2])
    kind = AdamKind(parameters, optimizer)
    gradients = make_gradients(parameters)

    with_newcomer = feed(kind, parameters, gradients, SIZES)
    without = feed(kind, parameters, [[*of_batch[:2], None] for of_batch in gradients], SIZES)

    assert kind.is_ready()
    assert with_newcomer is None
    assert without is not None


@pytest.mark.parametrize(("num_steps", "has_terms"), [(4, False), (5, True)])
def test_a_count_of_steps_that_the_device_keeps_is_not_read_before_the_values_arrive(num_steps, has_terms, monkeypatch):
    """`capturable` and `fused` on CUDA keep it there; here the host is made to believe so."""
    parameters = make_parameters()
    optimizer = torch.optim.Adam(parameters)
    train(optimizer, parameters, num_steps)
    monkeypatch.setattr("noisescale.capture.kinds.adam._is_on_host", lambda step: False)
    kind = AdamKind(parameters, optimizer)
    gradients = make_gradients(parameters)

    terms = feed(kind, parameters, gradients, SIZES)

    assert kind.is_ready()
    assert (terms is not None) == has_terms


def test_a_coordinate_that_never_had_a_gradient_does_not_count():
    """Otherwise its first one, divided by ε alone, would be all that counts."""
    parameters = make_parameters()
    optimizer = torch.optim.Adam(parameters)
    train(optimizer, parameters)
    optimizer.state[parameters[1]]["exp_avg_sq"][2:] = 0
    gradients = make_gradients(parameters)

    terms = feed(AdamKind(parameters, optimizer), parameters, gradients, SIZES)

    divisors = divisors_of(optimizer, parameters)
    divisors[1][2:] = math.inf
    assert (terms.trace_cov, terms.grad_sq_norm) == pytest.approx(brute_force(gradients, SIZES, divisors), rel=1e-10)


def test_a_loss_scale_is_undone():
    parameters = make_parameters()
    optimizer = torch.optim.Adam(parameters)
    train(optimizer, parameters)
    kind = AdamKind(parameters, optimizer)
    truth = feed(kind, parameters, make_gradients(parameters), SIZES)

    kind.clear()
    for gradients, size in zip(make_gradients(parameters), SIZES, strict=True):
        kind.add(range(3), [g * (512 * size / sum(SIZES)) for g in gradients])
        kind.end_small_batch(size)
    for p in parameters:
        p.grad = 512 * p.grad
    on_device = kind.terms(kind.values(scale=512.0).tolist(), num_small_batches=4, batch_size=16.0)
    on_host = kind.terms(kind.values(scale=1.0).tolist(), num_small_batches=4, batch_size=16.0, scale=512.0)

    for terms in (on_device, on_host):
        assert (terms.trace_cov, terms.grad_sq_norm) == pytest.approx((truth.trace_cov, truth.grad_sq_norm), rel=1e-10)


def test_a_wrapped_optimizer_is_found_inside():
    parameters = make_parameters()
    wrapper = torch.optim.SGD([torch.zeros(1)])
    wrapper.optimizer = torch.optim.AdamW(parameters)
    train(wrapper.optimizer, parameters)

    kind = AdamKind(parameters, wrapper)

    assert kind.is_ready()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (torch.optim.SGD, "SGD: it divides by no root"),
        (torch.optim.Adafactor, "Adafactor: it keeps rows and columns of v only: not yet"),
        (torch.optim.RMSprop, "RMSprop: how it divides is not known here"),
    ],
)
def test_an_optimizer_that_is_not_known_is_refused_in_a_sentence(make, sentence):
    parameters = make_parameters()

    with pytest.raises(ConfigError, match=sentence):
        AdamKind(parameters, make(parameters))


def test_an_optimizer_of_copies_is_refused_in_a_sentence():
    parameters = make_parameters()
    optimizer = torch.optim.Adam([p.detach().clone().requires_grad_() for p in parameters])

    with pytest.raises(ConfigError, match="updates none of the 3 watched parameters"):
        AdamKind(parameters, optimizer)


@pytest.mark.slow
@pytest.mark.thorough
def test_both_terms_are_unbiased():
    """400 steps against tr(D⁻¹ΣD⁻¹) and |D⁻¹G|², each by itself, within 5 standard errors."""
    parameters = make_parameters()
    optimizer = torch.optim.Adam(parameters)
    train(optimizer, parameters)
    kind = AdamKind(parameters, optimizer)
    generator = torch.Generator().manual_seed(1)
    mean = [0.3 * torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in parameters]
    noise = [torch.rand(p.shape, generator=generator, dtype=p.dtype) + 0.5 for p in parameters]

    found = [feed(kind, parameters, gaussian_gradients(mean, noise, SIZES, generator), SIZES) for _ in range(400)]

    divisors = divisors_of(optimizer, parameters)
    truth = [sum(float((x / d).square().sum()) for x, d in zip(xs, divisors, strict=True)) for xs in (noise, mean)]
    for expected, estimates in zip(truth, [[t.trace_cov for t in found], [t.grad_sq_norm for t in found]], strict=True):
        estimates = torch.tensor(estimates, dtype=torch.float64)
        assert abs(float(estimates.mean()) - expected) < 5 * float(estimates.std()) / len(found) ** 0.5
