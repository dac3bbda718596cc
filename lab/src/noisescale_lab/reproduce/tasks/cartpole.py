"""Advantage actor-critic on CartPole, SGD: the metric is the mean length of an episode, and higher is better."""

import torch
from torch import Tensor

from noisescale_lab.reproduce.stacked.actor_critic import ActorCritic, Fragments, Judge, Net, advantage_loss
from noisescale_lab.reproduce.stacked.network import Dense, Network
from noisescale_lab.reproduce.stacked.optimizers import SGD
from noisescale_lab.reproduce.stacked.random_stream import uniforms
from noisescale_lab.reproduce.task import Carried, Task

GRAVITY = 9.8
POLE_MASS, TOTAL_MASS = 0.1, 1.1
HALF_LENGTH = 0.5
FORCE = 10.0
SECONDS = 0.02
FARTHEST = 2.4
STEEPEST = 12 * torch.pi / 180
START = 0.05
LONGEST = 200

STATE_SIZE = 4
CARRIED_SIZE = STATE_SIZE + 1
"""A cart's state, and how long its episode has lasted."""

LENGTH = 16
NUM_ACTIONS, HIDDEN = 2, 32
NUM_STARTS = 64


# CartPole for any number of carts at once, and fragments of its episodes.
#
# Every tensor of states is [..., 4]: position, velocity, angle, angular velocity.
#
# Source: Barto, Sutton & Anderson 1983, doi 10.1109/TSMC.1983.6313077, with the constants and the Euler steps of
# gymnasium's CartPole-v0, whose episodes are cut after 200 steps.


def moved(states: Tensor, is_right: Tensor) -> Tensor:
    """The states a fiftieth of a second later.

    Args:
        states: [..., 4].
        is_right: 1 where the cart is pushed to the right, 0 where to the left, [...].
    """
    position, velocity, angle, turning = states.unbind(-1)
    sine, cosine = angle.sin(), angle.cos()
    pole = POLE_MASS * HALF_LENGTH
    pushed = (FORCE * (2 * is_right - 1) + pole * turning.square() * sine) / TOTAL_MASS
    turned = (GRAVITY * sine - cosine * pushed) / (HALF_LENGTH * (4 / 3 - POLE_MASS * cosine.square() / TOTAL_MASS))
    driven = pushed - pole * turned * cosine / TOTAL_MASS
    later = [position + SECONDS * velocity, velocity + SECONDS * driven]
    return torch.stack([*later, angle + SECONDS * turning, turning + SECONDS * turned], -1)


def fallen(states: Tensor) -> Tensor:
    """Whether an episode is over, [...]."""
    return (states[..., 0].abs() > FARTHEST) | (states[..., 2].abs() > STEEPEST)


def chosen(logit: Tensor, lots: Tensor) -> Tensor:
    """1 for the right, 0 for the left, [...]: a lot below the probability of the right takes it.

    Args:
        logit: Of the right less that of the left: the softmax of two numbers is a sigmoid of their difference.
        lots: Uniform numbers.
    """
    return (lots < torch.sigmoid(logit)).float()


def start_states(drawn: Tensor) -> Tensor:
    """Where an episode begins, one a key, [..., 4]."""
    return (2 * uniforms(drawn, STATE_SIZE) - 1) * START


def begin(drawn: Tensor) -> Tensor:
    """Carts at the beginning of an episode, [..., 5]."""
    states = start_states(drawn)
    return torch.cat([states, torch.zeros_like(states[..., :1])], -1)


def play(policy: Net, inputs: Tensor) -> Fragments:
    """Fragments of as many observations as there are uniform numbers to choose actions by.

    A cart whose episode ends goes on from the start that its inputs bring along.

    Args:
        policy: From observations to the logits of left and right.
        inputs: Uniform numbers, a start and what was carried on, [R, B, T + 4 + 5].
    """
    lots, start, carried = torch.tensor_split(inputs, (-STATE_SIZE - CARRIED_SIZE, -CARRIED_SIZE), -1)
    carts, age = carried[..., :STATE_SIZE], carried[..., STATE_SIZE]
    rows = []
    with torch.no_grad():
        for lot in lots.unbind(-1):
            logits = policy(carts)
            is_right = chosen(logits[..., 1] - logits[..., 0], lot)
            after = moved(carts, is_right)
            is_over = fallen(after)
            has_ended = is_over | (age + 1 >= LONGEST)
            rows.append((carts, is_right, after, is_over.float(), has_ended.float()))
            carts = torch.where(has_ended[..., None], start, after)
            age = torch.where(has_ended, 0.0, age + 1)
    observations, actions, following, terminated, ended = (torch.stack(part, 2) for part in zip(*rows, strict=True))
    carried = torch.cat([carts, age[..., None]], -1)
    return Fragments(observations, actions, torch.ones_like(actions), following, terminated, ended, carried)


def episode_lengths(policy: Net, carts: Tensor, lots: Tensor) -> Tensor:
    """Steps until each cart's pole has fallen, at most 200, [R, B].

    Args:
        policy: From observations to the logit of the right less that of the left, [R, B, 1].
        carts: Where they start, [R, B, 4].
        lots: Uniform numbers to choose actions by, [B, 200].
    """
    is_up = torch.ones(carts.shape[:2], dtype=torch.bool)
    lengths = torch.zeros(carts.shape[:2])
    for lot in lots.unbind(-1):
        lengths += is_up
        carts = moved(carts, chosen(policy(carts)[..., 0], lot))
        is_up = is_up & ~fallen(carts)
        if not is_up.any():
            break
    return lengths


def task() -> Task:
    """Two 4-32 tanh networks, γ 0.98, λ 0.95, fragments of 16 observations; evaluated from 64 fixed starts."""
    policy, critic = (
        Network((Dense(STATE_SIZE, HIDDEN, "tanh"), Dense(HIDDEN, outputs))) for outputs in (NUM_ACTIONS, 1)
    )

    to_the_right = Network((policy.layers[0], Dense(HIDDEN, 1)))

    def sample(drawn: Tensor) -> tuple[Tensor, Tensor]:
        inputs = torch.cat([uniforms(drawn, LENGTH), start_states(~drawn)], -1)
        return inputs, inputs[..., :0]

    generator = torch.Generator().manual_seed(0)
    starts = (2 * torch.rand(1, NUM_STARTS, STATE_SIZE, generator=generator) - 1) * START
    lots = torch.rand(NUM_STARTS, LONGEST, generator=generator)

    def mean_length(parameters: Tensor) -> Tensor:
        carts = starts.expand(len(parameters), -1, -1)
        weights = _for_the_right(parameters[:, : policy.num_parameters])
        found = episode_lengths(lambda rows: to_the_right.forward(weights, rows)[-1], carts, lots).mean(1)
        # weights that are not finite push all carts to one side, which has a length like any other
        return torch.where(parameters.isfinite().all(1), found, torch.nan)

    return Task(
        name="cartpole_pg",
        unit="observations",
        units_per_example=LENGTH,
        network=ActorCritic(policy, critic, play, Judge(0.98, 0.95), LENGTH),
        loss=advantage_loss(NUM_ACTIONS, LENGTH),
        optimizer=SGD,
        sample=sample,
        evaluation=(starts, starts[..., :0]),
        targets=(120.0, 150.0, 170.0),
        goal="max",
        metric=mean_length,
        metric_name="episode_length",
        carried=Carried(begin, lambda outputs: outputs[..., -CARRIED_SIZE:]),
    )


def _for_the_right(parameters: Tensor) -> Tensor:
    """Weights of the policy whose only output is the logit of the right less that of the left, [R, ·]."""
    first = parameters.shape[1] - NUM_ACTIONS * (HIDDEN + 1)
    of_actions = parameters[:, first:].view(-1, HIDDEN + 1, NUM_ACTIONS)
    return torch.cat([parameters[:, :first], of_actions[..., 1] - of_actions[..., 0]], 1)
