"""Devices: how a batch divides among them, what more of them, or less money, would buy, and interruptible ones.

Devices are added with the batch, m examples each, so a step takes the same time and B = n m: time goes as S(B), money
as E(B), and the curve of time against compute is the trade-off itself (McCandlish et al. 2018, arXiv:1812.06162,
eq. 2.11; OpenAI, "How AI training scales", 2018).
"""

import math
from dataclasses import dataclass

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_not_negative, require_positive
from noisescale_core.theory.trade_off import best_batch, examples_factor, regret_at_price, steps_factor

# Batches that can be run: whole multiples of devices × micro-batch, and what rounding to one costs.


@dataclass(frozen=True, slots=True)
class RoundedBatch:
    """A batch that can be run, and what it costs not to run the exact one.

    Attributes:
        batch: In examples.
        regret: Extra cost against the exact best batch, as a share.
    """

    batch: int
    regret: float


def round_to_feasible(
    *,
    critical_batch: float,
    examples_per_step: float,
    multiple_of: int = 1,
    powers_of_two: bool = False,
    smallest: float = 0.0,
    largest: float = math.inf,
) -> RoundedBatch:
    """The cheapest multiple next to √(r B_crit), by J(B) = r S(B) + E(B).

    J has a single minimum, so inside the range one of the two neighbours of the best batch is the cheapest of all.

    Args:
        critical_batch: B_crit in examples.
        examples_per_step: r.
        multiple_of: Devices × micro-batch: what a global batch is made of.
        powers_of_two: Whether only `multiple_of` × 1, 2, 4, … will do.
        smallest: Least batch that limits allow, in examples.
        largest: Greatest batch that limits allow, in examples.

    Raises:
        DomainError: If a number is not positive, or no multiple lies in the range.
    """
    require_positive("1 where any batch can be run", multiple_of=multiple_of)
    best = best_batch(critical_batch=critical_batch, examples_per_step=examples_per_step)
    wanted = min(max(best, smallest), largest)
    neighbours = _powers(wanted / multiple_of) if powers_of_two else _whole(wanted / multiple_of)
    feasible = [n * multiple_of for n in neighbours if smallest <= n * multiple_of <= largest]
    if not feasible:
        raise DomainError(
            f"multiple_of must have a multiple between {smallest:g} and {largest:g}, got {multiple_of}: "
            "use fewer devices or a smaller micro-batch"
        )
    costs = [
        RoundedBatch(
            batch, regret_at_price(batch=batch, critical_batch=critical_batch, examples_per_step=examples_per_step)
        )
        for batch in feasible
    ]
    return min(costs, key=lambda rounded: rounded.regret)


def _whole(count: float) -> list[int]:
    return [max(1, math.floor(count)), max(1, math.ceil(count))]


def _powers(count: float) -> list[int]:
    exponent = max(0, math.floor(math.log2(max(count, 1.0))))
    return [2**exponent, 2 ** (exponent + 1)]


@dataclass(frozen=True, slots=True)
class ChangedBatch:
    """What a change of the batch, and of the devices with it, does to a run.

    Attributes:
        batch: The new batch, in examples.
        time_factor: New time divided by the present one.
        compute_factor: New device-hours divided by the present ones.
    """

    batch: float
    time_factor: float
    compute_factor: float


def max_useful_devices(*, batch: float, min_examples_per_device: float) -> int:
    """Devices that a batch keeps busy: floor(B / m_min), 1 at least.

    At B = √(r B_crit) it is the number that the price allows, at B_crit the one that wastes half of its compute.

    Args:
        batch: The largest global batch one wants, in examples.
        min_examples_per_device: m_min, below which a device is not filled.

    Raises:
        DomainError: If either is not positive.
    """
    require_positive("price the noise scale first, see prices.py", batch=batch)
    require_positive("1 example is the least", min_examples_per_device=min_examples_per_device)
    # one part in 10^9 more: a batch that divides evenly must not lose a device to a rounding error
    return max(1, math.floor(batch / min_examples_per_device * (1 + 1e-9)))


def greatest_speedup(*, critical_batch: float, batch: float) -> float:
    """S(B) / S_min = 1 + B_crit / B: how many times faster the run could at most get by more devices.

    Args:
        critical_batch: B_crit in examples.
        batch: B now, in examples.

    Raises:
        DomainError: If either is not positive.
    """
    require_positive("an unresolved noise scale bounds no speed", critical_batch=critical_batch, batch=batch)
    return 1 + critical_batch / batch


def with_less_compute(*, critical_batch: float, batch: float, compute_factor: float) -> ChangedBatch | None:
    """What a run of so much less compute takes in time; None where no batch is that cheap.

    E(B') = f E(B) at B' = f (B_crit + B) - B_crit. The least possible f is B_crit / (B_crit + B), the present example
    efficiency: `least_compute_factor`.

    Args:
        critical_batch: B_crit in examples.
        batch: B now, in examples.
        compute_factor: f, device-hours then divided by those now.

    Raises:
        DomainError: If a number is not positive.
    """
    require_positive("0.5 halves the device-hours", compute_factor=compute_factor)
    least = least_compute_factor(critical_batch=critical_batch, batch=batch)
    if compute_factor <= least:
        return None
    return _exchange(critical_batch, batch, (compute_factor - least) * (critical_batch + batch))


def least_compute_factor(*, critical_batch: float, batch: float) -> float:
    """E_min / E(B) = B_crit / (B_crit + B): the cheapest that the run can get by fewer devices.

    Args:
        critical_batch: B_crit in examples.
        batch: B now, in examples.

    Raises:
        DomainError: If either is not positive.
    """
    require_positive("an unresolved noise scale bounds no cost", critical_batch=critical_batch, batch=batch)
    return critical_batch / (critical_batch + batch)


def _exchange(critical_batch: float, from_batch: float, to_batch: float) -> ChangedBatch:
    return ChangedBatch(
        batch=to_batch,
        time_factor=steps_factor(from_batch=from_batch, to_batch=to_batch, critical_batch=critical_batch),
        compute_factor=examples_factor(from_batch=from_batch, to_batch=to_batch, critical_batch=critical_batch),
    )


# Interruptible devices: how much longer a run takes on them, and whether the lower price pays for it.
#
# To first order in the interruption rate. Each interruption loses the work since the last checkpoint, half an interval
# on average, and the restart, so of each hour of the run f n (t_restart + t_checkpoint / 2) are lost, and the run
# stretches to 1 / (1 - that). Derived in docs/theory.md.


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
