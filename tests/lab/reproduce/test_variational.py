"""Stacked variational autoencoders against autograd, and the noise that keys become."""

import math

import torch
from torch import nn

from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.random_stream import RandomStream, keys, normals, pick
from noisescale_lab.reproduce.stacked.variational import VariationalAutoencoder, negative_evidence_bound
from noisescale_lab.reproduce.tasks import digits
from noisescale_lab.reproduce.trainer import Replicas, evaluate, train

SMALL = VariationalAutoencoder(
    encoder=Network((Dense(6, 5, "tanh"), Dense(5, 4))), decoder=Network((Dense(2, 3, "tanh"), Dense(3, 6)))
)


def plain_loss(weights: torch.Tensor, pixels: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    """The bound of one example as the paper has it, by autograd."""
    shapes, parts, offset = [(6, 5), (5, 4), (2, 3), (3, 6)], [], 0
    for inputs, outputs in shapes:
        end = offset + inputs * outputs
        parts.append((weights[offset:end].view(inputs, outputs), weights[end : end + outputs]))
        offset = end + outputs
    hidden = torch.tanh(pixels @ parts[0][0] + parts[0][1])
    mean, log_variance = (hidden @ parts[1][0] + parts[1][1]).chunk(2)
    code = mean + noise * torch.exp(log_variance / 2)
    logits = torch.tanh(code @ parts[2][0] + parts[2][1]) @ parts[3][0] + parts[3][1]
    likelihood = nn.functional.binary_cross_entropy_with_logits(logits, pixels, reduction="sum")
    posterior = torch.distributions.Normal(mean, torch.exp(log_variance / 2))
    prior = torch.distributions.Normal(torch.zeros(2).double(), torch.ones(2).double())
    return likelihood + torch.distributions.kl_divergence(posterior, prior).sum()


def test_gradients_and_per_example_norms_are_those_of_autograd():
    generator = torch.Generator().manual_seed(3)
    parameters = SMALL.initial([0, 1]).double()
    pixels = torch.rand(2, 7, 6, generator=generator).double()
    inputs = torch.cat([pixels, torch.randn(2, 7, 2, generator=generator).double()], -1)

    values = SMALL.forward(parameters, inputs)
    losses, derivatives = negative_evidence_bound(2)(values[-1], pixels)
    found = SMALL.backward(parameters, inputs, values, derivatives)

    for replica in range(2):
        rows = []
        for example in range(7):
            weights = parameters[replica].clone().requires_grad_()
            loss = plain_loss(weights, pixels[replica, example], inputs[replica, example, 6:])
            torch.testing.assert_close(losses[replica, example], loss.detach())
            rows.append(torch.autograd.grad(loss, weights)[0])
        exact = torch.stack(rows)
        torch.testing.assert_close(found.mean[replica], exact.mean(0))
        torch.testing.assert_close(found.example_sq_norm[replica], exact.square().sum(1))


def test_training_lowers_the_bound_on_fixed_noise():
    task = digits.variational_autoencoder()
    replicas = Replicas.new(task, [1])
    before = evaluate(task, replicas.parameters)[0]

    train(task, RandomStream(), replicas, seeds=[1], learning_rate=[0.01], batch=64, steps=60)

    assert evaluate(task, replicas.parameters)[0] < min(before - 5, 36)


def test_keys_become_independent_standard_normal_numbers():
    tables, rows = RandomStream().tables([0])
    drawn = keys(tables, rows, torch.zeros(1, 1, dtype=torch.long), 100_000)

    found = normals(drawn, 3)[0].double()
    index = pick(drawn, 7)[0].double()

    error = 1 / math.sqrt(100_000)
    assert found.shape == (100_000, 3)
    assert found.mean(0).abs().max() < 5 * error
    assert (found.square().mean(0) - 1).abs().max() < 5 * math.sqrt(2) * error
    assert (found.pow(4).mean(0) - 3).abs().max() < 5 * math.sqrt(96) * error
    together = torch.corrcoef(torch.cat([found.T, index[None]]))
    assert (together - torch.eye(4).double()).abs().max() < 5 * error
    assert torch.equal(normals(drawn, 3), normals(drawn, 3))
