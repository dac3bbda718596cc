"""Interruptible devices: how much longer a run takes on them, and whether the lower price pays for it.

To first order in the interruption rate. Each interruption loses the work since the last checkpoint, half an interval on
average, and the restart, so of each hour of the run f n (t_restart + t_checkpoint / 2) are lost, and the run stretches
to 1 / (1 - that). Derived in docs/theory.md.
"""

import math
from dataclasses import dataclass

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_not_negative, require_positive


@dataclass(frozen=True, slots=True)
class Spot:
    """Interruptible devices.

    Attributes:
        price_share: ρ, their price divided by that of devices on demand.
        interruptions_per_instance_hour: f.
        num_instances: n, each of which stops the run when it is taken.
        restart_hours: From an interruption until training goes on.
        checkpoint_hours: Between checkpoints.
    """

    price_share: float
    interruptions_per_instance_hour: float
    num_instances: int
    restart_hours: float
    checkpoint_hours: float

    def __post_init__(self) -> None:
        """Refuse what cannot be priced.

        Raises:
            DomainError: If a number is out of range, or interruptions leave no time to work.
        """
        require_positive("divide the two prices", price_share=self.price_share)
        require_positive("count what is taken as a whole", num_instances=self.num_instances)
        require_not_negative(
            "0 where it does not happen",
            interruptions_per_instance_hour=self.interruptions_per_instance_hour,
            restart_hours=self.restart_hours,
            checkpoint_hours=self.checkpoint_hours,
        )
        if not self.lost_share < 1:
            raise DomainError(
                f"interruptions_per_instance_hour must leave time to work, got {self.lost_share:.3g} hours lost in "
                "each: checkpoint more often or use fewer instances"
            )

    @property
    def lost_share(self) -> float:
        """Share of the run's hours that interruptions cost."""
        lost_hours = self.restart_hours + self.checkpoint_hours / 2
        return self.interruptions_per_instance_hour * self.num_instances * lost_hours

    @property
    def time_factor(self) -> float:
        """The run's hours divided by those on demand."""
        return 1 / (1 - self.lost_share)

    @property
    def cost_share(self) -> float:
        """Money divided by that on demand: ρ × the time factor."""
        return self.price_share * self.time_factor

    @property
    def pays(self) -> bool:
        """Whether it costs less than on demand."""
        return self.cost_share < 1


def break_even_interruptions(*, price_share: float, restart_hours: float, checkpoint_hours: float) -> float:
    """Interruptions per hour of the whole run, f n, at which interruptible devices cost as much as those on demand.

    (1 - ρ) / (t_restart + t_checkpoint / 2); 0 where they are not cheaper, infinite where interruptions cost no time.

    Args:
        price_share: ρ.
        restart_hours: From an interruption until training goes on.
        checkpoint_hours: Between checkpoints.

    Raises:
        DomainError: If a number is out of range.
    """
    require_positive("divide the two prices", price_share=price_share)
    require_not_negative("0 where it costs no time", restart_hours=restart_hours, checkpoint_hours=checkpoint_hours)
    lost_hours = restart_hours + checkpoint_hours / 2
    if price_share >= 1:
        return 0.0
    return (1 - price_share) / lost_hours if lost_hours > 0 else math.inf
