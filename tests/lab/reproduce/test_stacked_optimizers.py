"""Optimizers of the stacked engine against PyTorch's, and what their updates promise against exact means."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from noisescale_lab.reproduce.claim.plain_model import plain_model, plain_optimizer
from noisescale_lab.reproduce.registry import ALL, EVERY, LONG, TARGETS
from noisescale_lab.reproduce.stacked.optimizers import ADAM, ADAMW, MOMENTUM, SGD
from noisescale_lab.reproduce.stacked.random_stream import RandomStream, keys
from noisescale_lab.reproduce.trainer import Replicas, equal_parts, evaluate, train

OPTIMIZERS = [SGD, MOMENTUM, ADAM, ADAMW]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda one: f"{one.name}-{one.weight_decay:g}")
def test_a_replica_trains_as_plain_pytorch_does_with_a_warm_up(optimizer):
    task = replace(ALL["digits_mlp"](), optimizer=optimizer, warm_up=5)
    replicas, stream = Replicas.new(task, [4, 5]), RandomStream()
    model = plain_model(task.network, 5)
    plain = plain_optimizer(optimizer, model, 0.02)
    tables, rows = stream.tables([5])

    record = train(task, stream, replicas, seeds=[4, 5], learning_rate=[0.01, 0.02], batch=8, steps=12)

    moved = []
    for step in range(12):
        plain.param_groups[0]["lr"] = 0.02 * min(1.0, (step + 1) / 5)
        pixels, labels = task.sample(keys(tables, rows, torch.tensor([[8 * step]]), 8))
        plain.zero_grad()
        nn.functional.cross_entropy(model(pixels[0]), labels[0]).backward()
        before = [p.detach() * (1 - plain.param_groups[0]["lr"] * optimizer.weight_decay) for p in model.parameters()]
        plain.step()
        updates = [p.detach() - was for p, was in zip(model.parameters(), before, strict=True)]
        moved.append(sum(float(update.square().sum()) for update in updates))
    assert record.update_sq_norm[:, 1].tolist() == pytest.approx(moved, rel=1e-3)
    pixels, labels = task.evaluation
    expected = nn.functional.cross_entropy(model(pixels[0]), labels[0]).item()
    assert evaluate(task, replicas.parameters)[1] == pytest.approx(expected, rel=1e-4)


class TestThePromiseOfAnUpdate:
    """Many batches of one gradient with noise, the optimizer's states as earlier steps left them."""

    G = torch.linspace(-0.5, 0.6, 30)
    NUM_BATCHES, PARTS, RATE = 20_000, 4, 0.01

    def drawn(self, optimizer):
        generator = torch.Generator().manual_seed(3)
        parts = self.G + torch.randn(self.NUM_BATCHES, self.PARTS, 30, generator=generator)
        states = torch.rand(optimizer.num_states, 1, 30, generator=generator).repeat(1, self.NUM_BATCHES, 1)
        rate, done = torch.full((self.NUM_BATCHES, 1), self.RATE), torch.full((self.NUM_BATCHES, 1), 300.0)
        return parts, states, rate, done

    @pytest.mark.parametrize("optimizer", [SGD, MOMENTUM, ADAM], ids=lambda one: one.name)
    def test_it_is_that_of_the_true_gradient_where_the_same_batch_promises_far_more(self, optimizer):
        parts, states, rate, done = self.drawn(optimizer)

        promised = optimizer.promise(parts, states, rate, done)
        update = optimizer.update(parts.mean(1), states, rate, done)

        exact = -(update * self.G).sum(1)
        error = (promised - exact).std().item() / self.NUM_BATCHES**0.5
        # Adam's divisor holds this gradient in the update and not in the promise: a hundredth of it
        assert promised.mean().item() == pytest.approx(exact.mean().item(), abs=4 * error, rel=0.02)
        if optimizer is not MOMENTUM:
            same_batch = -(update * parts.mean(1)).sum(1).mean().item()
            assert same_batch > 1.1 * exact.mean().item()

    def test_asking_changes_no_state(self):
        parts, states, rate, done = self.drawn(ADAM)
        before = states.clone()

        ADAM.promise(parts, states, rate, done)

        assert torch.equal(states, before)

    def test_a_coordinate_that_has_had_no_gradient_yet_promises_nothing(self):
        """Adam has not divided by anything but ε there, and a single one would be all of the promise."""
        parts, states, rate, done = self.drawn(ADAM)
        states[:, :, 0] = 0

        without = ADAM.promise(parts[..., 1:], states[..., 1:], rate, done)

        torch.testing.assert_close(ADAM.promise(parts, states, rate, done), without)

    def test_adams_first_updates_promise_nothing_that_is_known(self):
        parts, states, rate, _ = self.drawn(ADAM)

        assert ADAM.promise(parts, states, rate, torch.full((self.NUM_BATCHES, 1), 4.0)).isnan().all()

    def test_a_run_is_told_what_its_losses_then_keep(self):
        """At a small rate nearly all of the promised fall comes."""
        task = replace(ALL["digits_mlp"](), optimizer=MOMENTUM)
        replicas = Replicas.new(task, [1])
        begin = evaluate(task, replicas.parameters)[0]

        record = train(task, RandomStream(), replicas, seeds=[1], learning_rate=[2e-4], batch=64, steps=200)

        fall = begin - evaluate(task, replicas.parameters)[0]
        assert fall / record.promised.sum() == pytest.approx(1.0, abs=0.1)


def test_noise_is_told_from_small_batches_as_well_as_from_examples():
    task = ALL["digits_softmax"]()
    stream, how = RandomStream(), {"seeds": [1], "learning_rate": [0.0], "batch": 64, "steps": 400}

    examples = train(task, stream, Replicas.new(task, [1]), **how)
    parts = train(replace(task, small_batches=4), stream, Replicas.new(task, [1]), **how)

    assert parts.trace_cov.mean() == pytest.approx(examples.trace_cov.mean(), rel=0.05)
    assert parts.grad_sq_norm.mean() == pytest.approx(examples.grad_sq_norm.mean(), rel=0.05)
    assert parts.trace_cov.std() > 2 * examples.trace_cov.std()


@pytest.mark.parametrize(
    ("batch", "wanted", "parts"), [(2, 2, 2), (3, 2, 3), (64, 2, 2), (6, 4, 3), (12, 4, 4), (7, 4, 7), (5, 2, 5)]
)
def test_a_batch_falls_into_equal_parts(batch, wanted, parts):
    assert equal_parts(batch, wanted) == parts


@pytest.mark.parametrize(
    "name",
    ["charlm_long_adamw", "denoiser_momentum", pytest.param("charlm_finetuned_adamw", marks=pytest.mark.slow)],
)
def test_long_runs_learn_from_small_batches_after_a_warm_up(name):
    task = LONG[name]()  # what is fine-tuned is taught first
    replicas = Replicas.new(task, [1])
    before = evaluate(task, replicas.parameters)[0]

    train(task, RandomStream(), replicas, seeds=[1], learning_rate=[0.003], batch=8, steps=60)

    assert evaluate(task, replicas.parameters)[0] < before
    assert task.warm_up
    assert task.small_batches


def test_every_target_is_of_a_task_by_its_own_name():
    assert TARGETS.keys() <= EVERY.keys()
    assert all(EVERY[name]().name == name for name in TARGETS)
