"""Each term against fp64 sums of the very gradients that autograd computed, in every dtype."""

import pytest
import torch
from torch import nn

from client_runs import make_batch, make_kept_run, make_model, terms_of, terms_of_means
from noisescale_core.estimators.flags import Flags

pytestmark = pytest.mark.usefixtures("either_way")


class Recorder:
    """Keeps what each backward adds to the gradients, in fp64."""

    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.rows = []
        for index, parameter in enumerate(self.parameters):
            parameter.register_hook(lambda gradient, index=index: self.see(index, gradient))

    def see(self, index, gradient):
        if not self.rows or self.rows[-1][index] is not None:
            self.rows.append([None] * len(self.parameters))
        self.rows[-1][index] = gradient.detach().double().flatten().clone()

    def means(self, sizes):
        """g_k = s_k N / n_k."""
        total = sum(sizes)
        return [torch.cat(row) * (total / size) for row, size in zip(self.rows, sizes, strict=True)]


# In 16 bit p.grad is not the sum of its small batches: each addition rounds it to 3 digits (bf16) or 4 (fp16), and
# |p.grad|² is what the training uses. So the truth of |ḡ|² is that of p.grad itself.
@pytest.mark.parametrize(
    ("dtype", "rel"),
    [(torch.float64, 1e-10), (torch.float32, 1e-5), (torch.bfloat16, 1e-5), (torch.float16, 1e-5)],
)
@pytest.mark.parametrize("sizes", [(4, 4, 4, 4), (7, 2, 4, 3)], ids=["equal", "unequal"])
def test_the_terms_are_those_of_the_gradients_as_autograd_made_them(dtype, rel, sizes):
    model = make_model().to(dtype)
    inputs, classes = make_batch(16)
    recorder = Recorder(model.parameters())
    run, kept = make_kept_run()
    run.watch(model)

    for x, y in zip(inputs.to(dtype).split(list(sizes)), classes.split(list(sizes)), strict=True):
        (nn.functional.cross_entropy(model(x), y, reduction="sum") / 16).backward()
    big = torch.cat([p.grad.double().flatten() for p in model.parameters()])
    run.log_gradients()

    means = recorder.means(sizes)
    weighted = sum(size / 16 * mean @ mean for size, mean in zip(sizes, means, strict=True))
    trace_cov = float(16 * (weighted - big @ big) / 3)
    own = sum((size / 16) ** 2 * mean @ mean for size, mean in zip(sizes, means, strict=True))
    grad_sq_norm = float((big @ big - own) / (1 - sum((size / 16) ** 2 for size in sizes)))
    row = kept.rows()[0]
    assert terms_of(row) == pytest.approx((trace_cov, grad_sq_norm), rel=rel)
    if dtype == torch.float64:
        assert terms_of(row) == pytest.approx(terms_of_means(means, sizes), rel=1e-10)


def test_parameters_of_different_dtypes_are_measured_together():
    model = make_model()
    model[3].to(torch.bfloat16)
    inputs, classes = make_batch(16)
    recorder = Recorder(model.parameters())
    run, kept = make_kept_run()
    run.watch(model)

    for x, y in zip(inputs.split(4), classes.split(4), strict=True):
        hidden = model[2](model[1](model[0](x)))
        (nn.functional.cross_entropy(model[3](hidden.bfloat16()).float(), y) / 4).backward()
    big = torch.cat([p.grad.double().flatten() for p in model.parameters()])
    run.log_gradients(batch_size=16)

    mean = torch.stack(recorder.means([4] * 4)).square().sum(1).mean()
    trace_cov = float(16 / 3 * (mean - big @ big))
    assert terms_of(kept.rows()[0]) == pytest.approx((trace_cov, float(big @ big) - trace_cov / 16), rel=1e-5)


def test_complex_parameters_count_real_and_imaginary_parts():
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(4, dtype=torch.complex128))
    model = nn.Module()
    model.weight = weight
    model.forward = lambda x: (x * weight).abs()
    inputs = make_batch(16)[0].double()
    means = [torch.autograd.grad(model(x).mean(), weight)[0] for x in inputs.split(4)]
    run, kept = make_kept_run()
    run.watch(model)

    for x in inputs.split(4):
        (model(x).mean() / 4).backward()
    run.log_gradients(batch_size=16)

    real = [torch.view_as_real(mean).flatten() for mean in means]
    assert terms_of(kept.rows()[0]) == pytest.approx(terms_of_means(real, [4] * 4), rel=1e-10)


def test_autocast_gradients_are_measured_as_they_are():
    model = make_model()
    inputs, classes = make_batch(16)
    recorder = Recorder(model.parameters())
    run, kept = make_kept_run()
    run.watch(model)

    for x, y in zip(inputs.split(4), classes.split(4), strict=True):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y) / 4
        loss.backward()
    run.log_gradients()

    assert terms_of(kept.rows()[0]) == pytest.approx(terms_of_means(recorder.means([4] * 4), [4] * 4), rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("num_small_batches", [2, 8, 64])
def test_equal_small_batches_are_called_a_bug_in_every_precision(dtype, num_small_batches):
    """The same micro-batch again and again; only the rounding of p.grad tells it from all being equal."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 10)).to(dtype)
    x, y = torch.randn(8, 64).to(dtype), torch.randint(0, 10, (8,))
    run, kept = make_kept_run()
    run.watch(model)

    for _ in range(num_small_batches):
        (nn.functional.cross_entropy(model(x), y) / num_small_batches).backward()
    run.log_gradients()

    assert (kept.rows()[0].sum_trace_cov, kept.rows()[0].flags) == (None, Flags.DUPLICATED_SMALL_BATCHES)
