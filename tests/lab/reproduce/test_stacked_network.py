import pytest
import torch

from noisescale_lab.reproduce.registry import ALL
from noisescale_lab.reproduce.stacked.losses import softmax_cross_entropy
from noisescale_lab.reproduce.stacked.network import Dense, Embedding, Network
from noisescale_lab.reproduce.stacked.random_stream import RandomStream, keys

NETWORKS = {
    "dense": Network((Dense(5, 4, "relu"), Dense(4, 3, "tanh"), Dense(3, 4))),
    "embedded": Network((Dense(6, 5, "relu"), Dense(5, 4)), Embedding(7, 2, context=3)),
    "table": Network((), Embedding(7, 4, context=1)),
}


def batch_for(network: Network, replicas: int, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    if network.embedding:
        # few symbols: contexts repeat them, which is the hard case
        inputs = torch.randint(0, 4, (replicas, batch, network.embedding.context), generator=generator)
    else:
        inputs = torch.randn(replicas, batch, network.layers[0].num_inputs, generator=generator)
    return inputs, torch.randint(0, 4, (replicas, batch), generator=generator)


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_and_per_example_norms_are_those_of_autograd(name):
    network = NETWORKS[name]
    parameters = network.initial([0, 1]).double()
    inputs, labels = batch_for(network, 2, 6)
    inputs = inputs if network.embedding else inputs.double()

    values = network.forward(parameters, inputs)
    _, derivatives = softmax_cross_entropy(values[-1], labels)
    found = network.backward(parameters, inputs, values, derivatives)

    for replica in range(2):
        rows = []
        for example in range(6):
            weights = parameters[replica : replica + 1].clone().requires_grad_()
            rows.append(gradient_of_one(network, weights, inputs[replica, example], labels[replica, example]))
        exact = torch.stack(rows)
        torch.testing.assert_close(found.mean[replica], exact.mean(0))
        torch.testing.assert_close(found.example_sq_norm[replica], exact.square().sum(1))


def gradient_of_one(network, weights, one_input, label):
    """By autograd, through out-of-place operations of our own."""
    offset = 0
    value = one_input
    if network.embedding:
        offset = network.embedding.num_parameters
        value = weights[0, :offset].view(network.embedding.num_symbols, -1)[one_input].flatten()
    for layer in network.layers:
        end = offset + layer.num_inputs * layer.num_outputs
        value = value @ weights[0, offset:end].view(layer.num_inputs, layer.num_outputs)
        value = value + weights[0, end : end + layer.num_outputs]
        offset = end + layer.num_outputs
        value = {"linear": lambda x: x, "relu": torch.relu, "tanh": torch.tanh}[layer.activation](value)
    loss = torch.nn.functional.cross_entropy(value, label)
    return torch.autograd.grad(loss, weights)[0][0]


# the outputs of cartpole_pg hold constants; its gradient is held against autograd's in test_cartpole.py
@pytest.mark.parametrize("name", sorted(ALL.keys() - {"cartpole_pg"}))
def test_the_loss_of_every_task_has_the_derivative_that_it_says(name):
    task = ALL[name]()
    tables, rows = RandomStream().tables([0])
    inputs, targets = task.sample(keys(tables, rows, torch.zeros(1, 1, dtype=torch.long), 8))
    parameters = task.network.initial([0])
    outputs = task.network.forward(parameters, inputs)[-1].double().requires_grad_()

    losses, derivatives = task.loss(outputs, targets)

    expected = torch.autograd.grad(losses.sum(), outputs)[0]
    torch.testing.assert_close(derivatives.detach(), expected)
    assert task.loss(task.network.forward(parameters, task.evaluation[0])[-1], task.evaluation[1])[0].mean() > 0
