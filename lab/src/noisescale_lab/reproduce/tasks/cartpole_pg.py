"""Advantage actor-critic on CartPole, SGD: the metric is the mean length of an episode, and higher is better."""

import torch
from torch import Tensor

from noisescale_lab.reproduce.stacked.actor_critic import ActorCritic, Judge, advantage_loss
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import SGD
from noisescale_lab.reproduce.stacked.random_stream import uniforms
from noisescale_lab.reproduce.task import Carried, Task
from noisescale_lab.reproduce.tasks import cartpole

LENGTH = 16
NUM_ACTIONS, HIDDEN = 2, 32
NUM_STARTS = 64


def task() -> Task:
    """Two 4-32 tanh networks, γ 0.98, λ 0.95, fragments of 16 observations; evaluated from 64 fixed starts."""
    policy, critic = (
        Network((Dense(cartpole.STATE_SIZE, HIDDEN, "tanh"), Dense(HIDDEN, outputs))) for outputs in (NUM_ACTIONS, 1)
    )

    to_the_right = Network((policy.layers[0], Dense(HIDDEN, 1)))

    def sample(drawn: Tensor) -> tuple[Tensor, Tensor]:
        inputs = torch.cat([uniforms(drawn, LENGTH), cartpole.starts(~drawn)], -1)
        return inputs, inputs[..., :0]

    generator = torch.Generator().manual_seed(0)
    starts = (2 * torch.rand(1, NUM_STARTS, cartpole.STATE_SIZE, generator=generator) - 1) * cartpole.START
    lots = torch.rand(NUM_STARTS, cartpole.LONGEST, generator=generator)

    def mean_length(parameters: Tensor) -> Tensor:
        carts = starts.expand(len(parameters), -1, -1)
        weights = _for_the_right(parameters[:, : policy.num_parameters])
        found = cartpole.episode_lengths(lambda rows: to_the_right.forward(weights, rows)[-1], carts, lots).mean(1)
        # weights that are not finite push all carts to one side, which has a length like any other
        return torch.where(parameters.isfinite().all(1), found, torch.nan)

    return Task(
        name="cartpole_pg",
        unit="observations",
        units_per_example=LENGTH,
        network=ActorCritic(policy, critic, cartpole.play, Judge(0.98, 0.95), LENGTH),
        loss=advantage_loss(NUM_ACTIONS, LENGTH),
        optimizer=SGD,
        sample=sample,
        evaluation=(starts, starts[..., :0]),
        targets=(120.0, 150.0, 170.0),
        goal="max",
        metric=mean_length,
        metric_name="episode_length",
        carried=Carried(cartpole.begin, lambda outputs: outputs[..., -cartpole.CARRIED_SIZE :]),
    )


def _for_the_right(parameters: Tensor) -> Tensor:
    """Weights of the policy whose only output is the logit of the right less that of the left, [R, ·]."""
    first = parameters.shape[1] - NUM_ACTIONS * (HIDDEN + 1)
    of_actions = parameters[:, first:].view(-1, HIDDEN + 1, NUM_ACTIONS)
    return torch.cat([parameters[:, :first], of_actions[..., 1] - of_actions[..., 0]], 1)
