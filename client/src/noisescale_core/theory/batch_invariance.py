"""What to change with the optimization batch of PPO and PPG, so that learning stays the same.

Source: Hilton et al. 2021, arXiv:2110.00641, with B' = B / c. Only for one policy epoch and below the critical batch:
with several epochs the same data are reused, and beyond it fewer, larger steps lose examples.
"""

import math
from dataclasses import dataclass, replace

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_positive, require_share

_ONE_EPOCH = 1


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """What a PPO-EWMA or PPG run sets besides its batch.

    Attributes:
        batch: Observations in one optimization step.
        learning_rate: Adam's.
        proximal_decay: β_prox of the moving average of the policy's weights that the ratio is taken against; None for
            plain PPO, whose proximal policy is the one that collected the data.
        normalization_steps: Optimization steps over which the advantages' mean and variance are taken.
        steps_per_auxiliary_phase: N_π of PPG, in policy iterations; None for PPO.
        num_policy_epochs: How often each observation is used.
    """

    batch: float
    learning_rate: float
    proximal_decay: float | None = None
    normalization_steps: float = 1.0
    steps_per_auxiliary_phase: float | None = None
    num_policy_epochs: int = _ONE_EPOCH

    def __post_init__(self) -> None:
        """Refuse what cannot be rescaled.

        Raises:
            DomainError: If a number is not positive, the decay not between 0 and 1, or there are several epochs.
        """
        require_positive("count observations", batch=self.batch)
        require_positive("give Adam's", learning_rate=self.learning_rate)
        require_positive("1 where each step normalises for itself", normalization_steps=self.normalization_steps)
        if self.proximal_decay is not None:
            require_share("None for plain PPO", proximal_decay=self.proximal_decay)
        if self.steps_per_auxiliary_phase is not None:
            require_positive("None for PPO", steps_per_auxiliary_phase=self.steps_per_auxiliary_phase)
        if self.num_policy_epochs != _ONE_EPOCH:
            raise DomainError(
                f"num_policy_epochs must be 1, got {self.num_policy_epochs}: no rule covers reused observations"
            )


def rescale_policy(now: PolicySettings, *, to_batch: float) -> PolicySettings:
    """The settings at another batch, B' = B / c.

    The learning rate becomes ε / √c. The centre of mass of the proximal average, 1 / (1 - β) - 1 steps, the steps of
    the advantages' normalization and PPG's N_π grow by c, so that each spans as many observations as before.

    Args:
        now: What the run sets at its present batch.
        to_batch: B' in observations.

    Raises:
        DomainError: If the batch is not positive.
    """
    require_positive("count observations", to_batch=to_batch)
    divisor = now.batch / to_batch
    auxiliary = now.steps_per_auxiliary_phase
    return replace(
        now,
        batch=to_batch,
        learning_rate=now.learning_rate / math.sqrt(divisor),
        proximal_decay=None if now.proximal_decay is None else _with_center_of_mass_times(now.proximal_decay, divisor),
        normalization_steps=now.normalization_steps * divisor,
        steps_per_auxiliary_phase=None if auxiliary is None else auxiliary * divisor,
    )


def _with_center_of_mass_times(decay: float, factor: float) -> float:
    steps = factor * decay / (1 - decay)
    return steps / (1 + steps)
