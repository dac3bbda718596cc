"""Batches that can be run: whole multiples of devices × micro-batch, and what rounding to one costs."""

import math
from dataclasses import dataclass

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_positive
from noisescale_core.theory.trade_off import best_batch, regret_at_price


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
