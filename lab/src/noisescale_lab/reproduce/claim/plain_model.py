"""The models of the stacked engine as plain PyTorch modules, with the same weights: what users write.

B examples, I inputs, O outputs, T symbols of a context, L numbers of a code.
"""

import torch
from torch import Tensor, nn

from noisescale_lab.reproduce.stacked.actor_critic import ActorCritic, pack
from noisescale_lab.reproduce.stacked.functional import FunctionalModel
from noisescale_lab.reproduce.stacked.network import Network, StackedModel
from noisescale_lab.reproduce.stacked.optimizers import Optimizer
from noisescale_lab.reproduce.stacked.variational import VariationalAutoencoder

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "linear": nn.Identity}


class PlainAutoencoder(nn.Module):
    """A variational autoencoder whose inputs carry the noise of the code, and whose outputs carry the code.

    Args:
        model: The stacked one.
        parameters: Its weights, [P].
    """

    def __init__(self, model: VariationalAutoencoder, parameters: Tensor) -> None:
        super().__init__()
        self._code_size = model.code_size
        middle = model.encoder.num_parameters
        self.encoder = plain_network(model.encoder, parameters[:middle])
        self.decoder = plain_network(model.decoder, parameters[middle:])

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits of the pixels, means and log variances, [B, I + 2 L]."""
        pixels, noise = inputs[:, : -self._code_size], inputs[:, -self._code_size :]
        code = self.encoder(pixels)
        mean, log_variance = code.chunk(2, -1)
        logits = self.decoder(mean + noise * (log_variance / 2).exp())
        return torch.cat([logits, code], -1)


class PlainActorCritic(nn.Module):
    """A policy and a critic, which play a fragment for each row of inputs.

    Args:
        model: The stacked one.
        parameters: Its weights, [P].
    """

    def __init__(self, model: ActorCritic, parameters: Tensor) -> None:
        super().__init__()
        self._play, self._judge = model.play, model.judge
        middle = model.policy.num_parameters
        self.policy = plain_network(model.policy, parameters[:middle])
        self.critic = plain_network(model.critic, parameters[middle:])

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits, values and what judges them, then what is carried on, [B, outputs]."""
        played = self._play(self.policy, inputs[None])
        rows = played.observations.flatten(1, 2)
        with torch.no_grad():
            next_values = self.critic(played.following.flatten(1, 2))
        return pack(played, self._judge, self.policy(rows), self.critic(rows), next_values)[0]


class PlainFunction(nn.Module):
    """A model given by what it computes.

    Args:
        model: The stacked one.
        parameters: Its weights, [P].
    """

    def __init__(self, model: FunctionalModel, parameters: Tensor) -> None:
        super().__init__()
        self._function = model.function
        parts = torch.split(parameters, [weight.size for weight in model.weights.values()])
        for (name, weight), part in zip(model.weights.items(), parts, strict=True):
            self.register_parameter(name, nn.Parameter(part.clone().view(weight.shape)))

    def forward(self, inputs: Tensor) -> Tensor:
        """The outputs of every example."""
        weights = {name: values[None] for name, values in self.named_parameters()}
        return self._function(weights, inputs[None])[0]


def plain_network(network: Network, parameters: Tensor) -> nn.Sequential:
    """Embedding, where there is one, then linear layers with their activations.

    Args:
        network: The stacked one.
        parameters: Its weights, [P].
    """
    layers: list[nn.Module] = []
    offset = 0
    if network.embedding is not None:
        table = network.embedding
        embedding = nn.Embedding(table.num_symbols, table.width)
        embedding.weight.data.copy_(parameters[: table.num_parameters].view(table.num_symbols, table.width))
        layers += [embedding, nn.Flatten()]
        offset = table.num_parameters
    for dense in network.layers:
        linear = nn.Linear(dense.num_inputs, dense.num_outputs)
        middle, end = offset + dense.num_inputs * dense.num_outputs, offset + dense.num_parameters
        linear.weight.data.copy_(parameters[offset:middle].view(dense.num_inputs, dense.num_outputs).T)
        linear.bias.data.copy_(parameters[middle:end])
        layers += [linear, ACTIVATIONS[dense.activation]()]
        offset = end
    return nn.Sequential(*layers)


def plain_model(model: StackedModel, seed: int) -> nn.Module:
    """The module that starts where the stacked model starts with this seed.

    Raises:
        TypeError: For a stacked model that has no plain form.
    """
    parameters = model.initial([seed])[0]
    match model:
        case Network():
            return plain_network(model, parameters)
        case VariationalAutoencoder():
            return PlainAutoencoder(model, parameters)
        case ActorCritic():
            return PlainActorCritic(model, parameters)
        case FunctionalModel():
            return PlainFunction(model, parameters)
    raise TypeError(f"{type(model).__name__} has no plain form: write one beside the others")


def plain_optimizer(optimizer: Optimizer, model: nn.Module, learning_rate: float) -> torch.optim.Optimizer:
    """PyTorch's own optimizer with the same constants."""
    if optimizer.class_name == "SGD":
        return torch.optim.SGD(model.parameters(), learning_rate, momentum=optimizer.momentum)
    betas, epsilon, decay = (optimizer.beta1, optimizer.beta2), optimizer.epsilon, optimizer.weight_decay
    if decay:
        return torch.optim.AdamW(model.parameters(), learning_rate, betas=betas, eps=epsilon, weight_decay=decay)
    return torch.optim.Adam(model.parameters(), learning_rate, betas=betas, eps=epsilon)


def flat_parameters(model: nn.Module) -> Tensor:
    """The weights in the order of the stacked engine, [P]."""
    # a linear layer keeps its weights as outputs × inputs, the engine as inputs × outputs
    turned = {id(part.weight) for part in model.modules() if isinstance(part, nn.Linear)}
    rows = ((id(one) in turned, one.detach()) for one in model.parameters())
    return torch.cat([values.T.flatten() if is_turned else values.flatten() for is_turned, values in rows])
