"""To follow a forward takes 40 µs: where each backward comes through the one forward before it, nobody needs to."""

import copy

import pytest
import torch
from torch import nn

from client_runs import flat_gradient, make_batch, make_kept_run, make_model, terms_of, terms_of_means
from noisescale.capture.forwards import NUM_REGULAR_STEPS, FollowedForwards
from noisescale_core.estimators.flags import Flags

pytestmark = pytest.mark.usefixtures("at_once")


@pytest.fixture
def followed(monkeypatch):
    """The forwards that were followed."""
    seen = []
    follow = FollowedForwards.follow
    monkeypatch.setattr(FollowedForwards, "follow", lambda *args: (seen.append(args[1]), follow(*args)))
    return seen


def differentiate(model, x, y):
    nn.functional.cross_entropy(model(x), y).div(4).backward()


def looks_at_the_inputs_first(model, x, y):
    inputs = x.clone().requires_grad_()
    torch.autograd.grad(nn.functional.cross_entropy(model(inputs), y), inputs)
    differentiate(model, x, y)


def has_two_losses(model, x, y):
    output = model(x)
    nn.functional.cross_entropy(output, y).div(8).backward(retain_graph=True)
    nn.functional.cross_entropy(output, y).div(8).backward()


def train(*ways, **options):
    """One step a way, of four small batches with eight examples each; the rows and what they should be."""
    model = make_model().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    inputs, classes = make_batch(32)
    parts = list(zip(inputs.double().split(8), classes.split(8), strict=True))
    twin = copy.deepcopy(model)
    run, kept = make_kept_run()
    run.watch(model, optimizer, **options)
    for way in ways:
        for x, y in parts:
            way(model, x, y)
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()
    means = [flat_gradient(nn.functional.cross_entropy(twin(x), y), list(twin.parameters())) for x, y in parts]
    return kept.rows(), terms_of_means(means, (8, 8, 8, 8))


REGULAR = [differentiate] * NUM_REGULAR_STEPS


def test_forwards_are_followed_in_the_first_steps_alone(followed):
    rows, truth = train(*REGULAR, *REGULAR)

    assert len(followed) == 4 * NUM_REGULAR_STEPS
    for row in rows:
        assert terms_of(row) == pytest.approx(truth, rel=1e-10)
        assert (row.global_batch, row.num_micro_batches, row.flags) == (32, 4, 0)


def test_forwards_are_followed_for_good_where_one_of_the_first_served_another_end(followed):
    train(looks_at_the_inputs_first, *REGULAR, *REGULAR)

    assert len(followed) == 8 + 8 * NUM_REGULAR_STEPS


def test_forwards_are_followed_again_from_the_step_on_behind_one_that_served_another_end(followed):
    rows, truth = train(*REGULAR, looks_at_the_inputs_first, looks_at_the_inputs_first, *REGULAR)

    first, second = rows[NUM_REGULAR_STEPS : NUM_REGULAR_STEPS + 2]
    assert (first.sum_trace_cov, first.global_batch) == (None, None)
    assert first.flags & Flags.BATCH_SIZE_UNKNOWN
    assert terms_of(second) == pytest.approx(truth, rel=1e-10)
    assert (second.global_batch, second.num_micro_batches, second.flags) == (32, 4, 0)
    assert len(followed) == 4 * NUM_REGULAR_STEPS + 8 + 4 * NUM_REGULAR_STEPS


def test_a_second_backward_through_a_forward_that_was_not_followed_says_so():
    rows, _ = train(*REGULAR, has_two_losses, has_two_losses)

    for row in rows[NUM_REGULAR_STEPS:]:
        assert (row.sum_trace_cov, row.global_batch) == (None, 32)
        assert row.flags & Flags.UNMATCHED_GRADIENT


def test_a_marked_size_is_known_whatever_forwards_its_backward_came_through():
    model = make_model().double()
    run, kept = make_kept_run()
    run.watch(model)
    for way in [*REGULAR, looks_at_the_inputs_first]:
        for x, y in zip(make_batch(32)[0].double().split(8), make_batch(32)[1].split(8), strict=True):
            with run.micro_batch(8):
                way(model, x, y)
        run.log_gradients()
        model.zero_grad()

    assert [(row.global_batch, row.num_micro_batches, row.flags) for row in kept.rows()] == [(32, 4, 0)] * 5


def test_single_examples_need_no_forward_to_be_followed(followed):
    train(*REGULAR, small_batches="per_example")

    assert followed == []
