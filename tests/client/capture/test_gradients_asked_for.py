"""Backward passes that are none of the step: what `torch.autograd.grad` computes never reaches `p.grad`."""

import pytest
import torch
from torch import nn

from client_runs import flat_gradient, make_batch, make_kept_run, make_model, terms_of, terms_of_means
from noisescale_core.estimators.flags import Flags

SIZES = (4, 4, 4, 4)


def penalised_loss(model, x, y):
    """A gradient penalty: its own backward needs the gradient's graph."""
    loss = nn.functional.cross_entropy(model(x), y)
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    return loss + 0.1 * sum(g.square().sum() for g in gradients)


def separate_loss(model, x, y):
    """Something looked at on the way, from a forward of another size."""
    torch.autograd.grad(model(torch.ones(7, 4).to(x)).sum(), list(model.parameters()))
    return nn.functional.cross_entropy(model(x), y)


def steps(make_loss, num_steps=3):
    """The rows of a loop, and the truth of its small batches."""
    model = make_model().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    inputs, classes = make_batch(16)
    parts = list(zip(inputs.double().split(4), classes.split(4), strict=True))
    means = [flat_gradient(make_loss(model, x, y), list(model.parameters())) for x, y in parts]
    run, kept = make_kept_run()
    run.watch(model, optimizer)
    for _ in range(num_steps):
        for x, y in parts:
            (make_loss(model, x, y) / 4).backward()
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()
    return kept.rows(), terms_of_means(means, SIZES)


@pytest.mark.parametrize("make_loss", [penalised_loss, separate_loss])
def test_they_are_left_out_of_a_large_model(make_loss, at_once):
    rows, truth = steps(make_loss)

    for row in rows:
        assert terms_of(row) == pytest.approx(truth, rel=1e-10)
        assert (row.global_batch, row.num_micro_batches, row.flags) == (16, 4, 0)


@pytest.mark.parametrize("make_loss", [penalised_loss, separate_loss])
def test_they_cost_a_small_model_one_step_at_most(make_loss):
    """Its gradients are only kept; where they do not add up each is looked at as it comes from the next step on."""
    rows, truth = steps(make_loss)

    first, *others = rows
    assert first.flags & Flags.UNMATCHED_GRADIENT or terms_of(first) == pytest.approx(truth, rel=1e-10)
    for row in others:
        assert terms_of(row) == pytest.approx(truth, rel=1e-10)
        assert (row.global_batch, row.num_micro_batches, row.flags) == (16, 4, 0)


@pytest.mark.usefixtures("either_way")
def test_a_model_whose_forward_is_never_called_is_measured():
    """`model.encode(x)` runs no hook of ours: the batch size has to be given."""
    model = make_model().double()
    inputs, classes = make_batch(16)
    parts = list(zip(inputs.double().split(4), classes.split(4), strict=True))
    means = [
        flat_gradient(nn.functional.cross_entropy(model.forward(x), y), list(model.parameters())) for x, y in parts
    ]
    run, kept = make_kept_run()
    run.watch(model)

    for _ in range(2):
        for x, y in parts:
            (nn.functional.cross_entropy(model.forward(x), y) / 4).backward()
        run.log_gradients(batch_size=16)
        model.zero_grad()

    for row in kept.rows():
        assert terms_of(row) == pytest.approx(terms_of_means(means, SIZES), rel=1e-10)


@pytest.mark.usefixtures("either_way")
def test_a_step_thrown_away_without_a_forward_is_not_mixed_with_the_next():
    model = make_model().double()
    inputs, classes = make_batch(16)
    parts = list(zip(inputs.double().split(4), classes.split(4), strict=True))
    means = [
        flat_gradient(nn.functional.cross_entropy(model.forward(x), y), list(model.parameters())) for x, y in parts
    ]
    run, kept = make_kept_run()
    run.watch(model, torch.optim.SGD(model.parameters(), lr=0.0))

    for is_kept in (False, True):
        for x, y in parts:
            (nn.functional.cross_entropy(model.forward(x), y) / 4).backward()
        if not is_kept:
            model.zero_grad()
    run.log_gradients(batch_size=16)

    row = kept.rows()[0]
    assert row.flags == Flags.UNMATCHED_GRADIENT or terms_of(row) == pytest.approx(
        terms_of_means(means, SIZES), rel=1e-10
    )


@pytest.mark.usefixtures("either_way")
def test_a_gradient_asked_for_inside_ignore_is_not_taken_off():
    model = make_model().double()
    inputs, classes = make_batch(16)
    parts = list(zip(inputs.double().split(4), classes.split(4), strict=True))
    means = [flat_gradient(nn.functional.cross_entropy(model(x), y), list(model.parameters())) for x, y in parts]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    run, kept = make_kept_run()
    run.watch(model, optimizer)

    for _ in range(2):
        for x, y in parts:
            (nn.functional.cross_entropy(model(x), y) / 4).backward()
            with run.ignore():
                torch.autograd.grad(model(x).sum(), list(model.parameters()))
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()

    for row in kept.rows()[-1:]:
        assert terms_of(row) == pytest.approx(terms_of_means(means, SIZES), rel=1e-10)
