"""Stacked actor-critics: a policy and a critic, trained on fragments that the policy has just played.

R replicas, B fragments, T observations of a fragment, I numbers of an observation, A actions, P parameters of one
replica. A fragment is an example: its observations follow from each other, fragments do not.

Source: Mnih et al. 2016, arXiv:1602.01783, section 4; advantages of Schulman et al. 2016, arXiv:1506.02438, eq. 16.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from noisescale_lab.reproduce.stacked.losses import log_softmax_and_softmax
from noisescale_lab.reproduce.stacked.network import Gradient, Network

SEED_OF_CRITIC = 10_007
"""Added to a replica's seed, so that policy and critic do not start from the same numbers."""

CRITIC_WEIGHT = 0.5
"""Of the critic's squared error beside the policy's loss."""


@dataclass(frozen=True, slots=True)
class Fragments:
    """What was played; flags are 0 or 1.

    Attributes:
        observations: [R, B, T, I].
        actions: Chosen, [R, B, T].
        rewards: [R, B, T].
        following: Observation that an action led to, before an episode begins anew, [R, B, T, I].
        terminated: Whether nothing comes after it, [R, B, T].
        ended: Whether an episode ended, terminated or cut, [R, B, T].
        carried: What the next fragment goes on from, [R, B, C].
    """

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    following: Tensor
    terminated: Tensor
    ended: Tensor
    carried: Tensor


Net: TypeAlias = Callable[[Tensor], Tensor]
"""From observations [R, N, I] to [R, N, outputs]."""

Play: TypeAlias = Callable[[Net, Tensor], Fragments]
"""From a policy and inputs [R, B, ...] to what it plays."""


@dataclass(frozen=True, slots=True)
class Judge:
    """How actions are judged.

    Attributes:
        discount: γ, of a reward one step later.
        trace: λ, of an advantage one step later.
    """

    discount: float
    trace: float

    def advantages(self, fragments: Fragments, values: Tensor, next_values: Tensor) -> Tensor:
        """Of each action over what the critic expected, [R, B, T].

        Args:
            fragments: What was played.
            values: Of the observations, [R, B, T].
            next_values: Of those that followed.
        """
        surprise = fragments.rewards + self.discount * next_values * (1 - fragments.terminated) - values
        kept = self.discount * self.trace * (1 - fragments.ended)
        found = [surprise[..., -1]]
        for step in range(surprise.shape[-1] - 2, -1, -1):
            found.append(surprise[..., step] + kept[..., step] * found[-1])
        return torch.stack(found[::-1], -1)


@dataclass(frozen=True, slots=True)
class ActorCritic:
    """A policy and a critic of the same observations.

    Its outputs are, for each observation, logits, value, action, advantage and return, [R, B, T · (A + 4)], and behind
    them what is carried on.

    Attributes:
        policy: From an observation to the logits of A actions.
        critic: From an observation to its value.
        play: The environment.
        judge: How actions are judged.
        length: T.
    """

    policy: Network
    critic: Network
    play: Play
    judge: Judge
    length: int

    @property
    def num_parameters(self) -> int:
        """P."""
        return self.policy.num_parameters + self.critic.num_parameters

    @property
    def num_actions(self) -> int:
        """A."""
        return self.policy.layers[-1].num_outputs

    def initial(self, seeds: list[int]) -> Tensor:
        """Initial parameters, one row a seed, [R, P]."""
        critic = self.critic.initial([seed + SEED_OF_CRITIC for seed in seeds])
        return torch.cat([self.policy.initial(seeds), critic], 1)

    def forward(self, parameters: Tensor, inputs: Tensor) -> list[Tensor]:
        """Values of the policy, of the critic, and the outputs."""
        of_policy, of_critic = self._parts(parameters)
        played = self.play(lambda rows: self.policy.forward(of_policy, rows)[-1], inputs)
        rows = played.observations.flatten(1, 2)
        decided, valued = self.policy.forward(of_policy, rows), self.critic.forward(of_critic, rows)
        next_values = self.critic.forward(of_critic, played.following.flatten(1, 2))[-1]
        return [*decided, *valued, pack(played, self.judge, decided[-1], valued[-1], next_values)]

    def backward(
        self,
        parameters: Tensor,
        symbols: Tensor,
        values: list[Tensor],
        derivatives: Tensor,
        *,
        wants_norms: bool = True,
    ) -> Gradient:
        """Mean gradient and per-example squared norms.

        Args:
            parameters: [R, P].
            symbols: The inputs that `forward` was given.
            values: What `forward` returned.
            derivatives: Of each example's loss with respect to the outputs.
            wants_norms: Whether to go to the cost of squared norms.
        """
        of_policy, of_critic = self._parts(parameters)
        middle = len(self.policy.layers) + 1
        rows = unpack(derivatives, self.num_actions, self.length).flatten(1, 2)
        of_logits, of_value = rows[..., : self.num_actions], rows[..., self.num_actions : self.num_actions + 1]
        policy, critic = (
            net.backward(weights, symbols, kept, some, wants_norms=wants_norms, num_positions=self.length)
            for net, weights, kept, some in (
                (self.policy, of_policy, values[:middle], of_logits),
                (self.critic, of_critic, values[middle:-1], of_value),
            )
        )
        return Gradient(torch.cat([policy.mean, critic.mean], 1), policy.example_sq_norm + critic.example_sq_norm)

    def _parts(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        middle = self.policy.num_parameters
        return parameters[:, :middle], parameters[:, middle:]


def pack(played: Fragments, judge: Judge, logits: Tensor, values: Tensor, next_values: Tensor) -> Tensor:
    """The outputs of a model; logits and values are [R, B · T, ·]. Advantages and returns are constants to autograd."""
    shape = played.actions.shape
    known = values.detach().view(shape)
    advantages = judge.advantages(played, known, next_values.detach().view(shape))
    constants = torch.stack([played.actions, advantages, advantages + known], -1)
    rows = torch.cat([logits.view(*shape, -1), values.view(*shape, 1), constants], -1)
    return torch.cat([rows.flatten(2), played.carried], -1)


def unpack(outputs: Tensor, num_actions: int, length: int) -> Tensor:
    """The rows of outputs without what is carried on, [R, B, T, A + 4]."""
    width = num_actions + 4
    return outputs[..., : length * width].view(*outputs.shape[:2], length, width)


def advantage_loss(num_actions: int, length: int) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Loss of a fragment: mean of -advantage × log probability of the action, and half the critic's squared error.

    Args:
        num_actions: A.
        length: T.
    """

    def loss(outputs: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
        rows = unpack(outputs, num_actions, length)
        logits, (value, action, advantage, returned) = rows[..., :num_actions], rows[..., num_actions:].unbind(-1)
        log_probabilities, probabilities = log_softmax_and_softmax(logits)
        chosen = torch.nn.functional.one_hot(action.long(), num_actions)
        error = value - returned
        losses = -advantage * (log_probabilities * chosen).sum(-1) + CRITIC_WEIGHT / 2 * error.square()
        derivatives = torch.zeros_like(outputs)
        of_rows = unpack(derivatives, num_actions, length)
        of_rows[..., :num_actions] = advantage[..., None] * (probabilities - chosen) / length
        of_rows[..., num_actions] = CRITIC_WEIGHT * error / length
        return losses.mean(-1), derivatives

    return loss
