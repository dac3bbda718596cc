"""Kind `sign`: two bounds of Σ |G_i| and the deviation Σ σ_i from the halves of a step."""

import math

import pytest
import torch

from kind_steps import feed, feed_many, gaussian_gradients
from noisescale.capture.kinds import sign
from noisescale.capture.kinds.sign import SignKind
from noisescale_core.estimators.dual_norm_noise_scale import MIN_STEPS

SHAPES = [(40, 30), (50,), (10, 5, 4)]
EQUAL = (4.0,) * 8
UNEQUAL = (3.0, 5.0, 2.0, 6.0, 4.0)

pytestmark = pytest.mark.usefixtures("either_way")


@pytest.fixture(params=["one by one", "in one pass"])
def either_way(request, monkeypatch):
    """As where a kernel of ours adds up, in plain PyTorch, and as elsewhere."""
    monkeypatch.setattr(sign, "takes_triton", lambda *_: request.param == "in one pass")


def make_parameters(dtype=torch.float64):
    return [torch.zeros(shape, dtype=dtype, requires_grad=True) for shape in SHAPES]


def make_truth(seed=0, *, snr=1.0, spread=0.0):
    """Mean and deviation of one example's gradient; Gaussian over the deviation, its width log-normal with `spread`."""
    generator = torch.Generator().manual_seed(seed)

    def normal(shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    noise = [normal(shape).exp() for shape in SHAPES]
    mean = [snr * normal(s.shape) * s * (spread * normal(s.shape)).exp() for s in noise]
    return mean, noise


def total(tensors):
    return float(sum(t.abs().sum() for t in tensors))


def brute_force(gradients, sizes):
    """[|a - b|₁, U, L] and both shares from all gradients kept in fp64."""
    g = [torch.cat([x.double().reshape(-1) for x in of_batch]) for of_batch in gradients]
    share = [sum(sizes[start::2]) / sum(sizes) for start in (0, 1)]
    a, b = (
        sum(size * x for size, x in zip(sizes[start::2], g[start::2], strict=True)) / sum(sizes[start::2])
        for start in (0, 1)
    )
    upper = (a.abs().sum() + b.abs().sum()) / 2
    lower = (a.sign() @ b + b.sign() @ a) / 2
    return [float((a - b).abs().sum()), float(upper), float(lower), *share]


@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL], ids=["equal", "unequal"])
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float32, 1e-5), (torch.float64, 1e-10), (torch.float16, 1e-3), (torch.bfloat16, 1e-2)],
)
def test_the_values_equal_brute_force(sizes, dtype, tolerance):
    """In 16 bit each small batch's share of the gradient is rounded by this test, not by the kind."""
    mean, noise = make_truth()
    gradients = gaussian_gradients(mean, noise, sizes, torch.Generator().manual_seed(1))
    gradients = [[x.to(dtype) for x in of_batch] for of_batch in gradients]
    kind = SignKind(make_parameters(dtype))

    feed(kind, make_parameters(dtype), gradients, sizes)

    assert kind.values(scale=1.0).tolist() == pytest.approx(brute_force(gradients, sizes), rel=tolerance)


def test_a_loss_scale_is_undone():
    mean, noise = make_truth()
    kind = SignKind(make_parameters())

    feed(kind, make_parameters(), gaussian_gradients(mean, noise, EQUAL, torch.Generator().manual_seed(1)), EQUAL)

    plain, scaled = kind.values(scale=1.0), kind.values(scale=512.0)
    assert scaled[:3].tolist() == pytest.approx((plain[:3] / 512).tolist(), rel=1e-12)
    assert scaled[3:].tolist() == plain[3:].tolist()


def test_a_loss_scale_that_changes_between_two_steps_is_undone():
    """A term is a product of two steps, so it cannot be undone there."""
    mean, noise = make_truth(snr=10.0)
    kind, scaled = SignKind(make_parameters()), SignKind(make_parameters())
    values = []
    for seed in range(18):
        generator = torch.Generator().manual_seed(seed)
        feed(kind, make_parameters(), gaussian_gradients(mean, noise, EQUAL, generator), EQUAL)
        values.append(kind.values(scale=1.0))

    for step, value in enumerate(values):
        size = 2.0**step
        times = torch.tensor([size] * 3 + [1.0] * 2, dtype=torch.float64)
        terms = scaled.terms((value * times).tolist(), num_small_batches=8, batch_size=32.0, scale=size)
    truth = SignKind(make_parameters())
    for value in values:
        expected = truth.terms(value.tolist(), num_small_batches=8, batch_size=32.0)

    assert (terms.trace_cov, terms.grad_sq_norm) == pytest.approx(
        (expected.trace_cov, expected.grad_sq_norm), rel=1e-12
    )


def test_missing_gradients_are_zero_and_empty_small_batches_are_none():
    mean, noise = make_truth()
    gradients = gaussian_gradients(mean, noise, UNEQUAL, torch.Generator().manual_seed(1))
    gradients[0][1] = gradients[2][1] = gradients[4][1] = None
    gradients[3][2] = None
    as_zero = [[torch.zeros_like(m) if g is None else g for g, m in zip(b, mean, strict=True)] for b in gradients]
    nothing = [torch.zeros_like(m) for m in mean]
    kind = SignKind(make_parameters())

    feed(kind, make_parameters(), [*gradients[:2], nothing, *gradients[2:]], [*UNEQUAL[:2], 0.0, *UNEQUAL[2:]])

    assert kind.values(scale=1.0).tolist() == pytest.approx(brute_force(as_zero, UNEQUAL), rel=1e-10)


def test_nothing_of_a_gradient_is_kept():
    mean, noise = make_truth()
    gradients = gaussian_gradients(mean, noise, EQUAL, torch.Generator().manual_seed(1))
    kind = SignKind(make_parameters())
    truth = brute_force(gradients, EQUAL)

    for of_batch in gradients:
        shares = [g / len(EQUAL) for g in of_batch]
        kind.add(range(3), shares)
        for share in shares:
            share.zero_()
        kind.end_small_batch(4.0)

    assert kind.values(scale=1.0).tolist() == pytest.approx(truth, rel=1e-10)


def test_one_small_batch_gives_no_terms():
    mean, noise = make_truth()
    kind = SignKind(make_parameters())

    terms = feed(kind, make_parameters(), gaussian_gradients(mean, noise, [8.0], torch.Generator()), [8.0])

    assert terms is None


def mean_and_error(values):
    values = torch.tensor(values, dtype=torch.float64)
    return float(values.mean()), float(values.std()) / len(values) ** 0.5


@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL], ids=["equal", "unequal"])
def test_the_numerator_is_unbiased_for_gaussian_small_batches(sizes):
    mean, noise = make_truth()

    found = feed_many(SignKind(make_parameters()), make_parameters(), mean, noise, sizes, num_steps=150)

    value, error = mean_and_error([terms.trace_cov for terms in found])
    assert abs(value - total(noise) ** 2) < 5 * error
    assert error < 0.01 * value


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [1.0, 3.0, 10.0, 100.0])
def test_the_denominator_is_right_where_signal_and_noise_are_alike_in_all_coordinates(ratio):
    """From one to 100 times the noise scale; the plug-in |ḡ|₁² would be 1.64 to 1.006 times too large."""
    mean, noise = make_truth(snr=math.sqrt(math.pi / 2 * ratio / sum(EQUAL)))

    found = feed_many(SignKind(make_parameters()), make_parameters(), mean, noise, EQUAL, num_steps=150)

    value, error = mean_and_error([terms.grad_sq_norm for terms in found])
    assert abs(value - total(mean) ** 2) < 5 * error + 0.03 * total(mean) ** 2


@pytest.mark.parametrize(("spread", "most"), [(0.5, 1.10), (1.0, 1.28)])
def test_the_denominator_is_too_large_by_what_is_documented_where_they_are_not(spread, most):
    """Log-normal widths, at the batch of B_sign: `docs/kinds.md` says 1.07 and 1.23."""
    mean, noise = make_truth(spread=spread)
    batch = (total(noise) / total(mean)) ** 2
    sizes = (batch / 8,) * 8

    found = feed_many(SignKind(make_parameters()), make_parameters(), mean, noise, sizes, num_steps=100)

    value, error = mean_and_error([terms.grad_sq_norm / total(mean) ** 2 for terms in found])
    assert 1 - 5 * error - 0.03 < value < most + 5 * error


@pytest.mark.parametrize("ratio", [0.1, 0.3])
def test_a_batch_far_below_the_noise_scale_gives_a_bracket_and_no_number(ratio):
    mean, noise = make_truth()
    truth = (total(noise) / total(mean)) ** 2
    kind = SignKind(make_parameters())

    found = feed_many(kind, make_parameters(), mean, noise, (truth * ratio / 8,) * 8, num_steps=60)

    bracket = kind.bracket()
    assert found == []
    assert bracket.low < truth
    assert bracket.high is None or bracket.high > truth


@pytest.mark.thorough
def test_pure_noise_never_yields_a_number():
    _, noise = make_truth()
    zero = [torch.zeros_like(s) for s in noise]
    kind = SignKind(make_parameters())

    found = feed_many(kind, make_parameters(), zero, noise, EQUAL, num_steps=300)

    assert found == []
    assert kind.bracket().high is None


def test_terms_begin_after_the_steps_that_decide():
    mean, noise = make_truth(snr=10.0)

    found = feed_many(SignKind(make_parameters()), make_parameters(), mean, noise, EQUAL, num_steps=MIN_STEPS + 2)

    assert len(found) == 2
