"""Several losses with a backward each: of one forward, of several networks, of real and generated examples."""

import contextlib
import copy

import pytest
import torch
from torch import nn

from client_runs import flat_gradient, make_batch, make_kept_run, make_model, terms_of, terms_of_means
from noisescale_core.estimators.flags import Flags


def losses_of(model, x, y):
    output = model(x)
    return nn.functional.cross_entropy(output, y), 0.5 * output.square().mean()


def real_and_fake(model, x, y):
    """Two forwards of one size, as of a discriminator: examples of two kinds, whose gradients differ."""
    real, fake = model(x), model(x.flip(0) + 3.0)
    return nn.functional.softplus(-real[:, 0]).mean(), nn.functional.softplus(fake[:, 0]).mean()


def parts_of(num_parts):
    inputs, classes = make_batch(32)
    return list(zip(inputs.double().split(32 // num_parts), classes.split(32 // num_parts), strict=True))


def truth_of(model, make_losses, num_parts):
    twin = copy.deepcopy(model)
    means = [flat_gradient(sum(make_losses(twin, x, y)), list(twin.parameters())) for x, y in parts_of(num_parts)]
    return terms_of_means(means, [32 // num_parts] * num_parts)


def train(model, make_losses, *, num_parts, marks, num_steps=2, **options):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    run, kept = make_kept_run()
    run.watch(model, optimizer, **options)

    def differentiate(x, y):
        first, second = make_losses(model, x, y)
        (first / num_parts).backward(retain_graph=True)
        (second / num_parts).backward()

    for _ in range(num_steps):
        for x, y in parts_of(num_parts):
            if marks:
                with run.micro_batch():
                    differentiate(x, y)
            else:
                differentiate(x, y)
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()
    return kept.rows()


@pytest.mark.usefixtures("either_way")
def test_two_backward_passes_through_one_forward_are_one_small_batch_where_they_are_marked():
    model = make_model().double()

    for row in train(model, losses_of, num_parts=4, marks=True):
        assert terms_of(row) == pytest.approx(truth_of(model, losses_of, 4), rel=1e-10)
        assert (row.global_batch, row.num_micro_batches, row.flags) == (32, 4, 0)


def test_a_small_model_needs_no_mark():
    model = make_model().double()

    for row in train(model, losses_of, num_parts=4, marks=False):
        assert terms_of(row) == pytest.approx(truth_of(model, losses_of, 4), rel=1e-10)


@pytest.mark.parametrize("num_parts", [1, 4])
def test_a_large_model_that_lacks_the_mark_says_so(num_parts, at_once, caplog):
    for row in train(
        make_model(), lambda model, x, y: losses_of(model, x.float(), y), num_parts=num_parts, marks=False
    ):
        assert (row.sum_trace_cov, row.global_batch) == (None, 32)
        assert row.flags & Flags.UNMATCHED_GRADIENT
    assert "`with run.micro_batch():`" in caplog.text


@pytest.mark.parametrize("make_losses", [losses_of, real_and_fake])
def test_single_examples_add_up_what_each_pass_brings(make_losses):
    """|s_i|² of the sum over both losses; of two forwards pair by pair, so that their difference is no noise."""
    model = make_model().double()
    twin = copy.deepcopy(model)
    single = [(x[None], y[None]) for x, y in zip(*parts_of(1)[0], strict=True)]
    if make_losses is real_and_fake:
        other = parts_of(1)[0][0].flip(0)
        losses = [
            nn.functional.softplus(-twin(x)[:, 0]).mean() + nn.functional.softplus(twin(z[None] + 3.0)[:, 0]).mean()
            for (x, _), z in zip(single, other, strict=True)
        ]
    else:
        losses = [sum(losses_of(twin, x, y)) for x, y in single]
    means = [flat_gradient(loss, list(twin.parameters())) for loss in losses]
    num_forwards = 2 if make_losses is real_and_fake else 1

    for row in train(model, make_losses, num_parts=1, marks=True, small_batches="per_example"):
        assert terms_of(row) == pytest.approx(terms_of_means(means, [num_forwards] * 32), rel=1e-9)
        assert (row.global_batch, row.num_micro_batches, row.flags) == (32 * num_forwards, 32, 0)


def test_one_backward_of_two_forwards_takes_their_examples_in_pairs():
    model = make_model().double()
    twin = copy.deepcopy(model)
    x = parts_of(1)[0][0]
    means = [
        flat_gradient(
            nn.functional.softplus(-twin(a[None])[:, 0]).mean() + nn.functional.softplus(twin(b[None])[:, 0]).mean(),
            list(twin.parameters()),
        )
        for a, b in zip(x, x.flip(0) + 3.0, strict=True)
    ]
    run, kept = make_kept_run()
    run.watch(model, small_batches="per_example")
    sum(real_and_fake(model, x, None)).backward()
    run.log_gradients()

    assert terms_of(kept.rows()[0]) == pytest.approx(terms_of_means(means, [2] * 32), rel=1e-9)


def test_single_examples_of_a_forward_that_was_taken_say_so():
    rows = train(make_model().double(), losses_of, num_parts=1, marks=False, small_batches="per_example")

    for row in rows:
        assert (row.sum_trace_cov, row.global_batch) == (None, 32)
        assert row.flags & Flags.UNMATCHED_GRADIENT


def test_forwards_of_two_sizes_in_one_marked_batch_have_no_pairs():
    model = make_model().double()
    run, kept = make_kept_run()
    run.watch(model, small_batches="per_example")
    x = parts_of(1)[0][0]
    with run.micro_batch():
        model(x[:8]).square().mean().backward()
        model(x[8:]).square().mean().backward()
    run.log_gradients()

    assert kept.rows()[0].sum_trace_cov is None
    assert kept.rows()[0].flags & Flags.UNMATCHED_GRADIENT


def test_parts_of_a_split_add_up_both_passes():
    model = make_model().double()

    for row in train(model, losses_of, num_parts=1, marks=True, split=4):
        assert terms_of(row) == pytest.approx(truth_of(model, losses_of, 4), rel=1e-9)


@pytest.mark.usefixtures("either_way")
def test_the_losses_of_two_networks_after_one_forward_are_one_small_batch():
    """An actor and a critic in one module, with a backward each."""

    class ActorCritic(nn.Module):
        def __init__(self):
            super().__init__()
            self.actor, self.critic = make_model(0), make_model(1)

        def forward(self, x):
            return self.actor(x), self.critic(x)

    def losses(model, x, y):
        logits, values = model(x)
        return nn.functional.cross_entropy(logits, y), values.square().mean()

    model = ActorCritic().double()
    for row in train(model, losses, num_parts=4, marks=False):
        assert terms_of(row) == pytest.approx(truth_of(model, losses, 4), rel=1e-10)
        assert (row.global_batch, row.num_micro_batches, row.flags) == (32, 4, 0)


def discriminate(*, marks, num_steps=40):
    """Steps of four real and four generated passes in turn, with new examples at each."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    run, kept = make_kept_run()
    run.watch(model, optimizer, small_batches="micro_batches")
    for _ in range(num_steps):
        for _ in range(4):
            with run.micro_batch(8) if marks else contextlib.nullcontext():
                (nn.functional.softplus(-model(torch.randn(8, 4))).mean() / 4).backward()
                (nn.functional.softplus(model(torch.randn(8, 4) + 1.0)).mean() / 4).backward()
        run.log_gradients(batch_size=32)
        optimizer.step()
        optimizer.zero_grad()
    return kept.rows()


def test_a_discriminators_halves_taken_for_samples_of_one_distribution_are_flagged(caplog):
    rows = discriminate(marks=False)

    assert rows[-1].flags & Flags.DIFFERENT_SMALL_BATCHES
    assert "terms of one loss" in caplog.text


def test_marked_as_one_small_batch_they_are_not():
    rows = discriminate(marks=True)

    assert {row.flags for row in rows} == {0}
    assert rows[-1].num_micro_batches == 4
