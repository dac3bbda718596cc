"""Kind `spectral`: nuclear norms of the matrices' gradients and of one example's deviation."""

import math

import pytest
import torch

from kind_steps import feed, feed_many, gaussian_gradients
from noisescale.capture.kinds.spectral import SpectralKind, polar_by_iteration, polar_factor, trace_of_root
from noisescale_core.errors import ConfigError

SHAPES = [(20, 12), (8, 30), (7,), (3, 4, 5)]
EQUAL = (4.0,) * 8
UNEQUAL = (3.0, 5.0, 2.0, 6.0, 4.0)


def make_parameters(dtype=torch.float64):
    return [torch.zeros(shape, dtype=dtype, requires_grad=True) for shape in SHAPES]


def make_truth(seed=0, *, snr=1.0):
    """Mean and deviation of one example's gradient, independent elements."""
    generator = torch.Generator().manual_seed(seed)
    noise = [0.5 + torch.rand(shape, generator=generator, dtype=torch.float64) for shape in SHAPES]
    mean = [
        snr * torch.randn(shape, generator=generator, dtype=torch.float64) * s
        for shape, s in zip(SHAPES, noise, strict=True)
    ]
    return mean, noise


def nuclear(matrix):
    return torch.linalg.svdvals(matrix).sum()


def root(rows, shape):
    """tr V^½ for V = Σ MᵀM (or MMᵀ) over weighted deviations: the singular values of all of them side by side."""
    return nuclear(torch.cat(rows, dim=0 if shape[0] >= shape[1] else 1))


def brute_force(gradients, sizes):
    """The six values from all gradients kept in fp64, by singular values alone."""
    total, num = sum(sizes), len(sizes)
    values = torch.zeros(6, dtype=torch.float64)
    for index in (0, 1):
        g = [of_batch[index].double() for of_batch in gradients]

        def mean(of, g=g):
            return sum(sizes[k] * g[k] for k in of) / sum(sizes[k] for k in of)

        def deviations(of, freedom, g=g):
            return [(sizes[k] / total / freedom) ** 0.5 * (g[k] - mean(of)) for k in of]

        odd, even, every = range(0, num, 2), range(1, num, 2), range(num)
        a, b = mean(odd), mean(even)
        share = sum(sizes[k] for k in odd) / total
        left_a, _, right_a = torch.linalg.svd(a, full_matrices=False)
        left_b, _, right_b = torch.linalg.svd(b, full_matrices=False)
        values += torch.stack(
            [
                math.sqrt(share * (1 - share)) * nuclear(a - b),
                root(deviations(odd, len(odd) - 1), a.shape),
                root(deviations(even, len(even) - 1), a.shape),
                root(deviations(every, num - 1), a.shape),
                (nuclear(a) + nuclear(b)) / 2,
                ((left_a @ right_a * b).sum() + (left_b @ right_b * a).sum()) / 2,
            ]
        )
    return values.tolist()


@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL, (2.0,) * 4], ids=["equal", "unequal", "four"])
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float32, 1e-5), (torch.float64, 1e-10), (torch.float16, 1e-3), (torch.bfloat16, 1e-2)],
)
def test_the_values_equal_brute_force(sizes, dtype, tolerance):
    """In 16 bit each small batch's share of the gradient is rounded by this test, not by the kind."""
    mean, noise = make_truth()
    gradients = gaussian_gradients(mean, noise, sizes, torch.Generator().manual_seed(1))
    gradients = [[x.to(dtype) for x in of_batch] for of_batch in gradients]
    kind = SpectralKind(make_parameters(dtype))

    feed(kind, make_parameters(dtype), gradients, sizes)

    assert kind.values(scale=1.0).tolist() == pytest.approx(brute_force(gradients, sizes), rel=tolerance)


def test_noise_is_seen_in_fp32_where_the_gradient_is_a_thousand_times_larger():
    """Sums of squares would lose it: their difference is 1e-6 of them, and the small eigenvalues far less."""
    mean, noise = make_truth(snr=1000.0)
    gradients = gaussian_gradients(mean, noise, EQUAL, torch.Generator().manual_seed(1))
    gradients = [[x.float() for x in of_batch] for of_batch in gradients]
    kind = SpectralKind(make_parameters(torch.float32))

    feed(kind, make_parameters(torch.float32), gradients, EQUAL)

    assert kind.values(scale=1.0)[:4].tolist() == pytest.approx(brute_force(gradients, EQUAL)[:4], rel=1e-3)


def test_a_loss_scale_that_changes_between_two_steps_is_undone():
    """A term is a product of two steps, so it cannot be undone there."""
    mean, noise = make_truth(snr=10.0)
    kind, scaled = SpectralKind(make_parameters()), SpectralKind(make_parameters())
    values = []
    for seed in range(18):
        generator = torch.Generator().manual_seed(seed)
        feed(kind, make_parameters(), gaussian_gradients(mean, noise, EQUAL, generator), EQUAL)
        values.append(kind.values(scale=1.0))

    for step, value in enumerate(values):
        size = 2.0**step
        times = torch.tensor([size] * 6, dtype=torch.float64)
        terms = scaled.terms((value * times).tolist(), num_small_batches=8, batch_size=32.0, scale=size)
    truth = SpectralKind(make_parameters())
    for value in values:
        expected = truth.terms(value.tolist(), num_small_batches=8, batch_size=32.0)

    assert (terms.trace_cov, terms.grad_sq_norm) == pytest.approx(
        (expected.trace_cov, expected.grad_sq_norm), rel=1e-12
    )


def test_missing_gradients_are_zero_and_empty_small_batches_are_none():
    mean, noise = make_truth()
    gradients = gaussian_gradients(mean, noise, UNEQUAL, torch.Generator().manual_seed(1))
    gradients[0][0] = gradients[1][1] = gradients[2][1] = gradients[4][1] = None
    as_zero = [[torch.zeros_like(m) if g is None else g for g, m in zip(b, mean, strict=True)] for b in gradients]
    nothing = [torch.zeros_like(m) for m in mean]
    kind = SpectralKind(make_parameters())

    feed(kind, make_parameters(), [*gradients[:2], nothing, *gradients[2:]], [*UNEQUAL[:2], 0.0, *UNEQUAL[2:]])

    assert kind.values(scale=1.0).tolist() == pytest.approx(brute_force(as_zero, UNEQUAL), rel=1e-10)


def test_a_loss_scale_is_undone():
    mean, noise = make_truth()
    kind = SpectralKind(make_parameters())

    feed(kind, make_parameters(), gaussian_gradients(mean, noise, EQUAL, torch.Generator().manual_seed(1)), EQUAL)

    assert kind.values(scale=512.0).tolist() == pytest.approx((kind.values(scale=1.0) / 512).tolist(), rel=1e-12)


def test_a_step_that_is_not_finite_gives_no_terms_and_no_error():
    mean, noise = make_truth(snr=10.0)
    kind = SpectralKind(make_parameters())
    feed_many(kind, make_parameters(), mean, noise, EQUAL, num_steps=17)
    gradients = gaussian_gradients(mean, noise, EQUAL, torch.Generator())
    gradients[3][0][0, 0] = math.inf

    terms = feed(kind, make_parameters(), gradients, EQUAL)

    assert terms is None
    assert len(feed_many(kind, make_parameters(), mean, noise, EQUAL, num_steps=1)) == 1


def test_every_twentieth_step_is_measured_and_the_first():
    mean, noise = make_truth(snr=10.0)
    kind = SpectralKind(make_parameters())
    generator = torch.Generator()

    measured = []
    for step in range(45):
        if kind.is_ready():
            measured.append(step)
            feed(kind, make_parameters(), gaussian_gradients(mean, noise, EQUAL, generator), EQUAL)

    assert measured == [0, 20, 40]


def test_without_a_matrix_the_kind_is_refused_in_a_sentence():
    with pytest.raises(ConfigError, match="got 1 parameters of which none has two dimensions"):
        SpectralKind([torch.zeros(3)])


def test_fewer_than_four_small_batches_give_no_terms():
    mean, noise = make_truth(snr=10.0)

    found = feed_many(SpectralKind(make_parameters()), make_parameters(), mean, noise, (4.0,) * 3, num_steps=20)

    assert found == []


@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (16, 16)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_the_iteration_for_accelerators_equals_the_singular_values(shape, dtype, tolerance):
    generator = torch.Generator().manual_seed(2)
    decay = torch.arange(1, shape[1] + 1, dtype=dtype) ** -1.5
    matrix = torch.randn(shape, generator=generator, dtype=dtype) * decay

    found = polar_by_iteration(matrix)

    assert float((found * matrix).sum()) == pytest.approx(float(nuclear(matrix)), rel=tolerance)
    assert torch.allclose(found, polar_factor(matrix), atol=100 * tolerance)


def test_the_iteration_leaves_a_matrix_of_zeros_alone():
    assert polar_by_iteration(torch.zeros(3, 4)).tolist() == torch.zeros(3, 4).tolist()


def test_the_trace_of_a_root_is_the_nuclear_norm_of_a_factor():
    matrix = torch.randn(9, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    assert float(trace_of_root(matrix.mT @ matrix)) == pytest.approx(float(nuclear(matrix)), rel=1e-12)


def true_terms(mean, noise):
    """(Σ tr V^½)² and (Σ |G|_nuc)²: V is diagonal, since the elements are independent."""
    numerator = sum(float(noise[i].square().sum(0 if i == 0 else 1).sqrt().sum()) for i in (0, 1))
    return numerator**2, float(sum(nuclear(mean[i]) for i in (0, 1))) ** 2


@pytest.mark.parametrize("ratio", [1.0, 10.0])
def test_each_term_is_as_near_to_the_truth_as_is_documented(ratio):
    """At one and at ten times the noise scale; the plug-in |ḡ| would be 1.9 and 1.09 times too large there."""
    mean, noise = make_truth()
    numerator, denominator = true_terms(mean, noise)
    sizes = (ratio * numerator / denominator / 8,) * 8

    found = feed_many(SpectralKind(make_parameters()), make_parameters(), mean, noise, sizes, num_steps=80)

    assert len(found) == 64
    assert sum(t.trace_cov for t in found) / len(found) == pytest.approx(numerator, rel=0.02)
    assert sum(t.grad_sq_norm for t in found) / len(found) == pytest.approx(denominator, rel=0.05)


def test_the_numerator_makes_up_for_few_small_batches():
    """Noise in 6 rows only, so V rests on 6 K vectors: the root of the uncorrected V gives 0.926 of the truth."""
    mean, noise = make_truth()
    noise[0][6:] *= 1e-3
    noise[1][:, 6:] *= 1e-3
    numerator, denominator = true_terms(mean, noise)
    sizes = (10 * numerator / denominator / 8,) * 8

    found = feed_many(SpectralKind(make_parameters()), make_parameters(), mean, noise, sizes, num_steps=120)

    assert sum(t.trace_cov for t in found) / len(found) == pytest.approx(numerator, rel=0.03)


def test_a_batch_far_below_the_noise_scale_gives_no_number():
    mean, noise = make_truth()
    numerator, denominator = true_terms(mean, noise)
    kind = SpectralKind(make_parameters())

    found = feed_many(kind, make_parameters(), mean, noise, (0.1 * numerator / denominator / 8,) * 8, num_steps=40)

    assert found == []
    assert kind.bracket().low < numerator / denominator
