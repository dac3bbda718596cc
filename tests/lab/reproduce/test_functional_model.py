"""A model given by a function of one example, against autograd one example at a time."""

import torch
from torch import nn

from noisescale_lab.reproduce.stacked import functional
from noisescale_lab.reproduce.stacked.losses import sequence_cross_entropy
from noisescale_lab.reproduce.stacked.random_stream import RandomStream
from noisescale_lab.reproduce.tasks import transformer
from noisescale_lab.reproduce.trainer import Replicas, evaluate, train

MODEL = transformer.LARGE.model()


def tensors(row: torch.Tensor) -> dict[str, torch.Tensor]:
    """The weights of one replica by name."""
    parts = torch.split(row, [weight.size for weight in MODEL.weights.values()])
    return {
        name: part.view(1, *weight.shape) for (name, weight), part in zip(MODEL.weights.items(), parts, strict=True)
    }


def examples(replicas: int, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    text = torch.randint(0, 96, (replicas, batch, 33), generator=generator)
    return text[..., :-1], text[..., 1:]


def test_gradients_and_per_example_norms_are_those_of_autograd(monkeypatch):
    monkeypatch.setattr(functional, "LARGEST_GRADIENTS", 3 * MODEL.num_parameters)  # one replica at a time
    parameters = MODEL.initial([0, 1]).double()
    inputs, targets = examples(2, 3)

    values = MODEL.forward(parameters, inputs)
    losses, derivatives = sequence_cross_entropy(values[-1], targets)
    found = MODEL.backward(parameters, inputs, values, derivatives)

    for replica in range(2):
        rows = []
        for example in range(3):
            weights = parameters[replica].clone().requires_grad_()
            outputs = MODEL.function(tensors(weights), inputs[replica, example][None, None])
            loss = nn.functional.cross_entropy(outputs[0, 0], targets[replica, example])
            torch.testing.assert_close(losses[replica, example], loss.detach())
            rows.append(torch.autograd.grad(loss, weights)[0])
        exact = torch.stack(rows)
        torch.testing.assert_close(found.mean[replica], exact.mean(0))
        torch.testing.assert_close(found.example_sq_norm[replica], exact.square().sum(1))


def test_no_position_sees_what_follows_it():
    weights = tensors(MODEL.initial([0])[0])
    text = torch.randint(0, 96, (1, 1, 32), generator=torch.Generator().manual_seed(1))
    changed = text.clone()
    changed[..., 20:] = (changed[..., 20:] + 1) % 96

    before, after = MODEL.function(weights, text), MODEL.function(weights, changed)

    torch.testing.assert_close(after[0, 0, :20], before[0, 0, :20])
    assert not torch.allclose(after[0, 0, 20:], before[0, 0, 20:])


def test_training_lowers_the_loss_of_text_that_it_has_not_seen():
    task = transformer.charlm_transformer()
    replicas = Replicas.new(task, [1])
    before = evaluate(task, replicas.parameters)[0]

    train(task, RandomStream(), replicas, seeds=[1], learning_rate=[0.01], batch=16, steps=25)

    assert before > 4.5
    assert evaluate(task, replicas.parameters)[0] < 3.5
