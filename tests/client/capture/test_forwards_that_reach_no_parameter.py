"""Attacks on the inputs, saliency maps, penalties, a look at the answers: what reaches no parameter is no example."""

import copy

import pytest
import torch
from torch import nn

from client_runs import flat_gradient, gradient_of_each, make_batch, make_kept_run, make_model, terms_of, terms_of_means
from noisescale_core.estimators.flags import Flags

SIZES = (8, 8, 8, 8)


def cross_entropy(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


def gradient_of_inputs(model, x, y, **options):
    inputs = x.detach().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(cross_entropy(model, inputs, y), inputs, **options)
    return gradient


def attacked(model, x, y):
    """FGSM: the loss at the worst of the inputs nearby."""
    return cross_entropy(model, x + 0.1 * gradient_of_inputs(model, x, y).sign(), y)


def attacked_thrice(model, x, y):
    """PGD."""
    for _ in range(3):
        x = x + 0.1 * gradient_of_inputs(model, x, y).sign()
    return cross_entropy(model, x, y)


def explained(model, x, y):
    gradient_of_inputs(model, x, y)
    return cross_entropy(model, x, y)


def penalised(model, x, y):
    """A gradient penalty on the inputs, which does reach the parameters, of the same examples."""
    penalty = gradient_of_inputs(model, x, y, create_graph=True).square().sum(1).mean()
    return cross_entropy(model, x, y) + 0.1 * penalty


def looked_at(model, x, y):
    model(torch.ones(5, 4).to(x)).argmax(1)
    return cross_entropy(model, x, y)


def train(make_loss, *, looks_after=False, num_steps=2):
    model = make_model().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    inputs, classes = make_batch(32)
    parts = list(zip(inputs.double().split(8), classes.split(8), strict=True))
    twin = copy.deepcopy(model)
    means = [flat_gradient(make_loss(twin, x, y), list(twin.parameters())) for x, y in parts]
    run, kept = make_kept_run()
    run.watch(model, optimizer)
    for _ in range(num_steps):
        for x, y in parts:
            (make_loss(model, x, y) / 4).backward()
            if looks_after:
                model(x)
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()
    return kept.rows(), terms_of_means(means, SIZES)


LOOPS = [(attacked, False), (attacked_thrice, False), (explained, False), (penalised, False), (looked_at, False)]


@pytest.mark.parametrize(("make_loss", "looks_after"), [*LOOPS, (cross_entropy, True)])
def test_a_large_model_counts_what_its_backward_comes_through(make_loss, looks_after, at_once):
    rows, truth = train(make_loss, looks_after=looks_after)

    for row in rows:
        assert terms_of(row) == pytest.approx(truth, rel=1e-10)
        assert (row.global_batch, row.num_micro_batches, row.flags) == (32, 4, 0)


@pytest.mark.parametrize(("make_loss", "looks_after"), [*LOOPS, (cross_entropy, True)])
def test_a_small_model_does_so_from_its_second_step_on(make_loss, looks_after):
    """A hook on each output would cost it a tenth of the step, so it has none before it is needed."""
    (first, second), truth = train(make_loss, looks_after=looks_after)

    assert (first.sum_trace_cov, first.global_batch) == (None, None)
    assert first.flags & Flags.BATCH_SIZE_UNKNOWN
    assert terms_of(second) == pytest.approx(truth, rel=1e-10)
    assert (second.global_batch, second.num_micro_batches, second.flags) == (32, 4, 0)


def test_the_output_may_lie_in_mappings_and_objects(at_once):
    class Dressed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = make_model().double()

        def forward(self, x):
            return {"logits": (self.inner(x),)}

    model = Dressed()
    run, kept = make_kept_run()
    run.watch(model)
    for x in make_batch(32)[0].double().split(8):
        model(x)
        model(x)["logits"][0].square().mean().div(4).backward()
    run.log_gradients()

    assert (kept.rows()[0].global_batch, kept.rows()[0].flags) == (32, 0)


def test_losses_that_take_another_way_count_all_forwards_as_ever(at_once):
    """A loss of what lies inside the model: its output does not tell."""
    model = make_model().double()
    run, kept = make_kept_run()
    run.watch(model)
    inside = []
    model[0].register_forward_hook(lambda layer, args, output: inside.append(output))
    for x in make_batch(32)[0].double().split(8):
        model(x)
        inside.pop().square().mean().div(4).backward()
    run.log_gradients()

    assert (kept.rows()[0].global_batch, kept.rows()[0].num_micro_batches) == (32, 4)


def test_single_examples_are_those_of_the_backward():
    model = make_model().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    inputs, classes = make_batch(16)
    adversarial = (inputs.double() + 0.1 * gradient_of_inputs(model, inputs.double(), classes).sign()).detach()
    each = gradient_of_each(model, adversarial, classes)
    means = list(torch.cat([gradient.flatten(1) for gradient in each.values()], dim=1))
    run, kept = make_kept_run()
    run.watch(model, optimizer, small_batches="per_example")

    for _ in range(2):
        attacked(model, inputs.double(), classes).backward()
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()

    for row in kept.rows():
        assert terms_of(row) == pytest.approx(terms_of_means(means, [1] * 16), rel=1e-9)
        assert row.global_batch == 16
