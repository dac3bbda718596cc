"""Each term equals what one backward per example gives, in total and per layer."""

import pytest
import torch
from torch import nn

from client_runs import brute_force_terms, gradient_of_each, make_batch, make_kept_run, make_model
from noisescale.options import Loss
from noisescale_core.estimators.flags import Flags

pytestmark = pytest.mark.usefixtures("either_way")

EQUAL = (4, 4, 4, 4)
UNEQUAL = (7, 2, 4, 3)


def accumulate(run, model, inputs, classes, sizes, *, reduction, mark):
    """Backward passes whose sum is the gradient of the mean (or summed) loss over all examples."""
    start = 0
    for size in sizes:
        chunk = slice(start, start + size)
        start += size
        loss = nn.functional.cross_entropy(model(inputs[chunk]), classes[chunk], reduction="sum")
        if reduction != "sum":
            loss = loss / len(inputs)
        if mark:
            with run.micro_batch(size):
                loss.backward()
        else:
            loss.backward()


@pytest.mark.parametrize("mark", [False, True], ids=["read", "marked"])
@pytest.mark.parametrize("reduction", ["mean_over_examples", "mean_over_tokens", "sum"])
@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL], ids=["equal", "unequal"])
def test_both_terms_equal_brute_force(sizes, reduction, mark):
    model = make_model()
    inputs, classes = make_batch(sum(sizes))
    truth = gradient_of_each(model, inputs, classes)
    run, kept = make_kept_run()
    run.watch(model, torch.optim.SGD(model.parameters(), lr=0.1), loss=Loss(reduction=reduction))

    accumulate(run, model, inputs, classes, sizes, reduction=reduction, mark=mark)
    run.log_gradients(loss=1.0)
    run.finish()

    row, groups = kept.rows()[0], kept.groups()[0]
    assert (row.sum_trace_cov, row.sum_grad_sq_norm) == pytest.approx(
        brute_force_terms(list(truth.values()), sizes), rel=1e-4
    )
    assert (row.global_batch, row.num_micro_batches, row.micro_batch_size) == (16, 4, 4)
    assert bool(row.flags & Flags.UNEQUAL_MICRO_BATCHES) == (sizes == UNEQUAL)
    assert groups.names == ["0", "1", "3"]
    for i, name in enumerate(groups.names):
        layer = [gradient for parameter, gradient in truth.items() if parameter.startswith(f"{name}.")]
        found = (groups.sum_trace_cov[i], groups.sum_grad_sq_norm[i])
        assert found == pytest.approx(brute_force_terms(layer, sizes), rel=1e-4)


def test_the_layers_add_up_to_the_total():
    model = make_model()
    run, kept = make_kept_run()
    run.watch(model)

    accumulate(run, model, *make_batch(), EQUAL, reduction="mean_over_examples", mark=False)
    run.log_gradients()
    run.finish()

    row, groups = kept.rows()[0], kept.groups()[0]
    assert sum(groups.sum_trace_cov) == pytest.approx(row.sum_trace_cov, rel=1e-12)
    assert sum(groups.sum_grad_sq_norm) == pytest.approx(row.sum_grad_sq_norm, rel=1e-12)


def test_several_backward_passes_inside_micro_batch_are_one_small_batch():
    """Two heads with a loss each: |s_k|² is of the summed gradient, not a sum of squares."""
    model = make_model()
    inputs, classes = make_batch()
    truth = gradient_of_each(model, inputs, classes)
    run, kept = make_kept_run()
    run.watch(model)

    for chunk in range(0, 16, 4):
        with run.micro_batch():
            loss = nn.functional.cross_entropy(model(inputs[chunk : chunk + 4]), classes[chunk : chunk + 4]) / 4
            (0.25 * loss).backward(retain_graph=True)
            (0.75 * loss).backward()
    run.log_gradients()
    run.finish()

    row = kept.rows()[0]
    assert (row.num_micro_batches, row.global_batch) == (4, 16)
    assert (row.sum_trace_cov, row.sum_grad_sq_norm) == pytest.approx(
        brute_force_terms(list(truth.values()), EQUAL), rel=1e-4
    )


def test_an_ignored_backward_counts_neither_in_the_small_batches_nor_in_the_big_one():
    model = make_model()
    inputs, classes = make_batch()
    truth = gradient_of_each(model, inputs, classes)
    run, kept = make_kept_run()
    run.watch(model)

    for chunk in range(0, 16, 4):
        with run.ignore():
            sum(p.square().sum() for p in model.parameters()).backward()  # an L2 penalty
        (nn.functional.cross_entropy(model(inputs[chunk : chunk + 4]), classes[chunk : chunk + 4]) / 4).backward()
    run.log_gradients()
    run.finish()

    row = kept.rows()[0]
    assert (row.sum_trace_cov, row.sum_grad_sq_norm) == pytest.approx(
        brute_force_terms(list(truth.values()), EQUAL), rel=1e-3
    )


def test_an_ignored_backward_that_was_cleared_is_not_taken_off():
    model = make_model()
    inputs, classes = make_batch()
    truth = gradient_of_each(model, inputs, classes)
    run, kept = make_kept_run()
    run.watch(model)

    with run.ignore():
        model(inputs).sum().backward()
    model.zero_grad()
    accumulate(run, model, inputs, classes, EQUAL, reduction="mean_over_examples", mark=False)
    run.log_gradients()
    run.finish()

    row = kept.rows()[0]
    assert (row.sum_trace_cov, row.sum_grad_sq_norm) == pytest.approx(
        brute_force_terms(list(truth.values()), EQUAL), rel=1e-4
    )


class TiedAndSparse(nn.Module):
    """A tied embedding and head, an embedding with sparse gradients, a branch that some inputs do not take."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.rare = nn.Embedding(11, 6, sparse=True)
        self.branch = nn.Linear(6, 6)

    def forward(self, tokens):
        hidden = self.embed(tokens) + self.rare(tokens)
        if tokens[0] % 2:
            hidden = self.branch(hidden)
        return hidden @ self.embed.weight.t()


def test_tied_sparse_and_unused_parameters_equal_brute_force():
    torch.manual_seed(0)
    model = TiedAndSparse()
    tokens = torch.randint(0, 11, (12,))
    chunks = tokens.split(3)
    parameters = list(model.parameters())
    grads = [
        torch.autograd.grad(nn.functional.cross_entropy(model(c), c), parameters, allow_unused=True) for c in chunks
    ]
    means = torch.stack(
        [
            torch.cat(
                [
                    torch.zeros(p.numel()) if g is None else g.to_dense().flatten()
                    for p, g in zip(parameters, gs, strict=True)
                ]
            )
            for gs in grads
        ]
    ).double()
    run, kept = make_kept_run()
    run.watch(model)

    for c in chunks:
        (nn.functional.cross_entropy(model(c), c) / 4).backward()
    run.log_gradients()
    run.finish()

    row = kept.rows()[0]
    trace_cov = 12 / 3 * float(means.square().sum(1).mean() - means.mean(0).square().sum())
    assert row.sum_trace_cov == pytest.approx(trace_cov, rel=1e-4)
    assert row.sum_grad_sq_norm == pytest.approx(float(means.mean(0).square().sum()) - trace_cov / 12, rel=1e-3)


@pytest.mark.thorough
def test_terms_of_a_known_problem_are_within_five_standard_errors():
    """Linear regression, y = x·w* + noise, at fixed w: G and tr Σ are known in closed form."""
    torch.manual_seed(0)
    num_inputs, noise, num_steps = 10, 0.5, 400
    model = nn.Linear(num_inputs, 1, bias=False)
    offset = model.weight.detach()[0] - torch.ones(num_inputs)
    generator = torch.Generator().manual_seed(3)
    run, kept = make_kept_run()
    run.watch(model, groups="none")

    for _ in range(num_steps):
        for _ in range(8):
            x = torch.randn(4, num_inputs, generator=generator)
            y = x.sum(1) + noise * torch.randn(4, generator=generator)
            (0.5 * (model(x)[:, 0] - y).square().mean() / 8).backward()
        run.log_gradients()
        model.zero_grad()
    run.finish()

    # g = x (x·d - noise): E g = d, E|g|² = (n + 2)|d|² + n noise²
    grad_sq_norm = float(offset @ offset)
    trace_cov = (num_inputs + 1) * grad_sq_norm + num_inputs * noise**2
    for found, exact in (
        ([row.sum_trace_cov for row in kept.rows()], trace_cov),
        ([row.sum_grad_sq_norm for row in kept.rows()], grad_sq_norm),
    ):
        terms = torch.tensor(found, dtype=torch.float64)
        assert len(terms) == num_steps
        assert abs(float(terms.mean()) - exact) < 5 * float(terms.std()) / num_steps**0.5
