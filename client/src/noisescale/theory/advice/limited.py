"""The best batch inside what the reader has, which limit moves it, how sure that is, and whole batches to run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale.theory import trade_off
from noisescale.theory.advice.bounds import limits_at, trade_off_of
from noisescale.theory.advice.pace import Pace
from noisescale.theory.advice.parts import Constraints, Interval, RunSoFar
from noisescale.theory.advice.pricing import Priced
from noisescale.theory.cost import SECONDS_PER_HOUR
from noisescale.theory.limits import Choice, Limit, LimitKind, choose
from noisescale.theory.rounding import round_to_feasible

DEADLINES = frozenset({LimitKind.STEPS, LimitKind.SECONDS})
BUDGETS = frozenset({LimitKind.EXAMPLES, LimitKind.USD})


@dataclass(frozen=True, slots=True)
class LimitedBatch:
    """The best batch that all limits allow.

    Attributes:
        batch_size: In examples, before rounding; None where the limits exclude each other or one cannot be met.
        low: Lower end of its interval: 0 where, at an end of B_crit's, no batch is small enough for the budget.
        high: Upper end; None where, at an end of B_crit's, no batch is large enough for the deadline.
        binding: What moved it, or what is in conflict.
        text: Why, in a sentence.
        possible: Where no batch meets all limits: the cheapest within the deadline, the fastest within the budget.
    """

    batch_size: float | None
    low: float | None
    high: float | None
    binding: tuple[str, ...]
    text: str
    possible: str | None = None


@dataclass(frozen=True, slots=True)
class Inside:
    """The batch to recommend.

    Attributes:
        choice: Of the limits.
        limited: The same as the reader gets it.
        interval: Where the best batch inside the limits lies; its upper end may be infinite.
        batch: A whole batch that can be run; None where none can.
        regret: What rounding costs against the unrounded batch, as a share.
    """

    choice: Choice
    limited: LimitedBatch
    interval: Interval | None
    batch: int | None
    regret: float | None


def inside(priced: Priced, run: RunSoFar, given: Constraints, pace: Pace | None) -> Inside:
    """The best batch at the reader's price, moved into the limits and rounded to what can be run.

    Args:
        priced: The best batch without limits.
        run: As it stands.
        given: What limits it.
        pace: Time and price of a step.
    """
    here = limits_at(priced.critical.value, run, given, pace)
    choice = choose(priced.best.value, here)
    interval = _interval(choice, priced, run, given, pace)
    batch = None if choice.batch is None else whole_batch(choice.batch, here, given, priced)
    return Inside(
        choice=choice,
        limited=LimitedBatch(
            batch_size=choice.batch,
            low=None if interval is None else interval.low,
            high=None if interval is None or interval.high == math.inf else interval.high,
            binding=tuple(limit.kind.value for limit in choice.binding),
            text=choice.text,
            possible=None if choice.batch is not None else what_is_possible(priced, run, here, pace),
        ),
        interval=interval,
        batch=batch,
        regret=None if batch is None or choice.batch is None else _regret(batch, choice.batch, priced),
    )


def whole_batch(wanted: float, allowed: Sequence[Limit], given: Constraints, priced: Priced) -> int | None:
    """The cheapest batch next to the wanted one that can be run; None where no whole batch lies inside the limits.

    Multiples of devices × micro-batch where the reader said them, otherwise powers of two and three times those.

    Args:
        wanted: In examples.
        allowed: The limits.
        given: Devices and micro-batch.
        priced: B_crit and the price.
    """
    smallest = max((limit.low for limit in allowed), default=0.0)
    largest = min((limit.high for limit in allowed), default=math.inf)
    if given.multiple_of > 1:
        try:
            return round_to_feasible(
                critical_batch=wanted,
                examples_per_step=wanted,
                multiple_of=given.multiple_of,
                smallest=smallest * (1 - 1e-12),
                largest=largest * (1 + 1e-12),
            ).batch
        except ValueError:
            return None
    rounded = round_batch(wanted)
    if smallest <= rounded <= largest:
        return rounded
    neighbours = [whole for whole in (math.floor(wanted), math.ceil(wanted)) if max(1, smallest) <= whole <= largest]
    return min(neighbours, key=lambda whole: _regret(whole, wanted, priced), default=None)


def round_batch(batch: float) -> int:
    """The nearest of 1, 2, 3, 4, 6, 8, 12, … on the log scale: at most 1 % worse than the exact best."""
    exponent = math.floor(math.log2(max(batch, 1)))
    candidates = [2**exponent, 3 * 2 ** (exponent - 1), 2 ** (exponent + 1)]
    return min((int(c) for c in candidates if c == int(c)), key=lambda c: abs(math.log(c / max(batch, 1))))


def what_is_possible(priced: Priced, run: RunSoFar, allowed: Sequence[Limit], pace: Pace | None) -> str | None:
    """The cheapest way within the deadlines, the fastest within the budgets; None where neither can be met alone.

    Args:
        priced: B_crit.
        run: With its plan.
        allowed: The limits, which no batch meets together.
        pace: Time and price of a step.
    """
    to_plan = trade_off_of(run, priced.critical.value)
    if to_plan is None:
        return None
    deadline = max((limit.low for limit in allowed if limit.kind in DEADLINES and limit.is_possible), default=None)
    budget = min((limit.high for limit in allowed if limit.kind in BUDGETS and limit.is_possible), default=None)
    found = []
    if deadline is not None and 0 < deadline < math.inf:
        usd = None if pace is None else pace.usd_per_step(deadline)
        examples = f"{to_plan.examples(deadline):,.4g} {run.example}s"
        cost = examples if usd is None else f"{usd * to_plan.steps(deadline):,.4g} USD"
        found.append(f"Cheapest within the deadline: {cost}.")
    if budget is not None and 0 < budget < math.inf:
        steps = to_plan.steps(budget)
        hours = f"{steps:,.4g} steps" if pace is None else f"{steps * pace.seconds(budget) / SECONDS_PER_HOUR:,.3g} h"
        found.append(f"Fastest within the budget: {hours}.")
    return " ".join(found) or None


def _interval(choice: Choice, priced: Priced, run: RunSoFar, given: Constraints, pace: Pace | None) -> Interval | None:
    """The best batch inside the limits at both ends of B_crit: limits that rest on the plan move with it."""
    if choice.batch is None:
        return None
    ends = [
        _at_end(priced, end, best, run, given, pace)
        for end, best in (
            (priced.critical_batch.low, priced.best.low),
            (priced.critical_batch.high, priced.best.high),
        )
    ]
    found = [choice.batch, *ends]
    return Interval(choice.batch, min(found), max(found), priced.best.level)


def _at_end(
    priced: Priced, critical_batch: float, best: float, run: RunSoFar, given: Constraints, pace: Pace | None
) -> float:
    # an open end: B_crit may be next to nothing, and so may the best batch
    critical_batch, best = max(critical_batch, priced.critical.value * 1e-9), max(best, priced.best.value * 1e-9)
    choice = choose(best, limits_at(critical_batch, run, given, pace))
    if choice.batch is not None:
        return choice.batch
    return math.inf if any(limit.kind in DEADLINES for limit in choice.binding) else 0.0


def _regret(batch: float, wanted: float, priced: Priced) -> float:
    price = priced.exchange_rate
    critical = priced.critical.value
    rounded, exact = (
        trade_off.regret_at_price(batch=one, critical_batch=critical, examples_per_step=price)
        for one in (batch, wanted)
    )
    return (1 + rounded) / (1 + exact) - 1
