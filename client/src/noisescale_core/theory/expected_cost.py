"""The batch of least expected cost where the critical batch is known with odds only, and what a change puts at stake.

A run to one target costs r S + E = S_min (1 + b / B) (r + B) examples at batch B, b its critical batch and r what a
step is worth (`trade_off.py`). With a belief about b the batch to take is the one whose mean log cost is least; whether
it is cheaper than another, and by how much, has a probability.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_core.estimators.belief import Belief
from noisescale_core.theory.domain import require_positive
from noisescale_core.theory.prices import ExchangeRate
from noisescale_core.theory.trade_off import best_batch

HALVINGS = 24
"""Of the range of the best batch: it is then known to a millionth of the range."""

NEWTON_ENDS = 1e-14
"""Of ln B: a step so small is rounding."""

ONE_IN_20 = 0.95


@dataclass(frozen=True, slots=True)
class Stake:
    """What a change of the batch puts at stake; costs are of reaching the same loss, at the price of a step.

    Attributes:
        probability: That the new batch is cheaper than the present one.
        saving: Expected saving, as a share of the present cost: 1 - exp of the mean log ratio.
        worst_case: What the new batch costs more, as a share, in the worst case of 20; below 0 it saves even then.
        present_regret: Expected extra cost of the present batch over the best one, were b known.
        regret: The same of the new batch: what is left to gain by knowing b.
    """

    probability: float
    saving: float
    worst_case: float
    present_regret: float
    regret: float


def least_expected_cost(critical: Belief, rate: ExchangeRate) -> float:
    """The batch in examples whose mean log cost is least; that mean is convex in log B, so there is one.

    Args:
        critical: What is known of B_crit, on the log scale, in examples.
        rate: What a step is worth; one that is relative to B_crit moves with it.
    """
    known = [(math.exp(log_b), weight) for log_b, weight in critical.points()]
    cases = [(b, rate.at(b), weight) for b, weight in known]
    logs = [(math.log(b) + math.log(r)) / 2 for b, r, _ in cases]
    low, high = min(logs), max(logs)
    least = _where_flat(cases, low, high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if middle > least else (middle, high)
    return math.exp((low + high) / 2)


def _where_flat(cases: Sequence[tuple[float, float, float]], low: float, high: float) -> float:
    """The logarithm of the batch at which the mean log cost has no slope, by Newton's method.

    Args:
        cases: (b, r, weight).
        low: There the cost falls.
        high: There it rises.
    """
    at = (low + high) / 2
    for _ in range(HALVINGS):
        batch = math.exp(at)
        shares = [(batch / (r + batch), b / (b + batch), weight) for b, r, weight in cases]
        slope = math.fsum([weight * (p - q) for p, q, weight in shares])
        low, high = (low, at) if slope > 0 else (at, high)
        # no less than 0, and 0 only where b and r are without bounds
        bend = math.fsum([weight * (p * (1 - p) + q * (1 - q)) for p, q, weight in shares])
        step = slope / bend if bend > 0 else math.inf
        after = at - step if low <= at - step <= high else (low + high) / 2
        if abs(after - at) <= NEWTON_ENDS * max(1.0, abs(at)):
            return after
        at = after
    return at


def stake(critical: Belief, rate: ExchangeRate, *, now: float, then: float) -> Stake:
    """What a change from one batch to another puts at stake.

    Args:
        critical: What is known of B_crit, on the log scale, in examples.
        rate: What a step is worth.
        now: The present batch, in examples.
        then: The new one.

    Raises:
        DomainError: If a batch is not positive.
    """
    require_positive("a batch holds at least one example", now=now, then=then)
    changes, present_regret, regret = [], 0.0, 0.0
    for log_b, weight in critical.points():
        costs = _log_costs(math.exp(log_b), rate, now, then)
        changes.append((costs[1] - costs[0], weight))
        present_regret += weight * costs[0]
        regret += weight * costs[1]
    return Stake(
        probability=math.fsum(weight for change, weight in changes if change < 0),
        saving=-math.expm1(math.fsum(weight * change for change, weight in changes)),
        worst_case=math.expm1(_quantile(changes, ONE_IN_20)),
        present_regret=math.expm1(present_regret),
        regret=math.expm1(regret),
    )


def _log_costs(critical: float, rate: ExchangeRate, *batches: float) -> list[float]:
    """The log cost of each batch over that of the best one."""
    price = rate.at(critical)
    best = best_batch(critical_batch=critical, examples_per_step=price)
    least = math.log1p(critical / best) + math.log(price + best)
    return [math.log1p(critical / batch) + math.log(price + batch) - least for batch in batches]


def _quantile(values: Sequence[tuple[float, float]], share: float) -> float:
    """The value that this share of the weight does not exceed."""
    below = 0.0
    for value, weight in sorted(values):
        below += weight
        if below >= share:
            return value
    return max(value for value, _ in values)
