"""The best batch inside what the reader has, which limit moves it, how sure that is, and whole batches to run."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noisescale_core.advice.limits.bounds import limits_at, trade_off_of
from noisescale_core.advice.limits.pace import Pace
from noisescale_core.advice.parts.numbers import number
from noisescale_core.advice.parts.parts import Interval, RunSetting
from noisescale_core.advice.question import Limits
from noisescale_core.errors import DomainError
from noisescale_core.theory import trade_off
from noisescale_core.theory.cost import SECONDS_PER_HOUR
from noisescale_core.theory.limits import Choice, Limit, LimitKind, choose
from noisescale_core.theory.machines import round_to_feasible

if TYPE_CHECKING:
    from noisescale_core.advice.limits.pricing import Priced


WHOLE, LARGEST_WRITTEN = 10.0, 1e15
"""Between these a limit is written as the whole batch next to it that meets it."""

EVEN_STEP = 1.25
EVEN_REGRET = 0.01
"""The next power of two, or three times one, inside a limit is taken where it costs at most this much more."""

NO_WHOLE_BATCH = "No whole multiple of devices × micro-batch lies inside the limits."

NEXT_TO_NOTHING = 1e-9
"""Stands for an open lower end, as a share of the value."""


# The sentences of limits: what each allows, and why they move the batch or leave none.


def sentence(limit: Limit, example: str = "example") -> str:
    """What a limit allows.

    Args:
        limit: Of a plan, of the batch itself, or in words of its own.
        example: What is sampled independently, as a word.
    """
    if limit.words:
        return limit.words
    if limit.kind.role is not None:
        return _of_plan(limit, example)
    match limit.kind:
        case LimitKind.MEMORY if limit.high == math.inf:
            return "Accumulating micro-batches, any batch fits into memory."
        case LimitKind.MEMORY:
            return f"Memory allows a batch of {limit.high:,.0f}; accumulating micro-batches allows more."
        case LimitKind.DEVICES:
            return _of_devices(limit, example)
    return f"The data set holds {limit.high:,.0f} examples."


def _of_plan(limit: Limit, example: str) -> str:
    unit = limit.kind.unit.format(example=example)
    said = f"{limit.asked or 0.0:,.10g} {unit}"
    if not limit.is_possible:
        least = f"{number(limit.least or 0.0)} {unit}"
        return f"{said} are too few: {limit.target} takes more than {least} at any batch size."
    if limit.high == math.inf:
        return f"{said} need a batch of {_at_least(limit.low)} or more."
    if limit.low == 0:
        return f"{said} allow a batch of {_at_most(limit.high)} or less."
    return f"{said} need a batch between {_at_least(limit.low)} and {_at_most(limit.high)}."


def _of_devices(limit: Limit, example: str) -> str:
    devices = limit.asked or 1
    if limit.high == math.inf:
        return f"{devices:,.10g} devices need a batch of {limit.low:,.4g} or more to all work."
    named = f"{devices:,.10g} device{'' if devices == 1 else 's'} of {number(limit.high / devices)} {example}s each"
    return f"{named} run a batch of {limit.high:,.10g} or less; beyond it a step takes longer."


def _at_least(batch: float) -> str:
    return f"{math.ceil(batch):,}" if WHOLE <= batch < LARGEST_WRITTEN else number(batch)


def _at_most(batch: float) -> str:
    return f"{math.floor(batch):,}" if WHOLE <= batch < LARGEST_WRITTEN else number(batch)


def why(choice: Choice, example: str = "example") -> str:
    """What moved the batch, or why there is none.

    Args:
        choice: Of the limits.
        example: What is sampled independently, as a word.
    """
    if not choice.limits:
        return "Nothing limits the batch."
    if not choice.binding:
        return "No limit binds: the price decides."
    said = " ".join(sentence(limit, example) for limit in choice.binding)
    if choice.batch is None and all(limit.is_possible for limit in choice.binding):
        return f"These exclude each other: {said} Loosen one of them."
    return said


@dataclass(frozen=True, slots=True)
class LimitedBatch:
    """The best batch that all limits allow.

    Attributes:
        batch_size: In examples, before rounding; None where the limits exclude each other or one cannot be met.
        low: Lower end of its interval: 0 where, at an end of B_crit's, no batch is small enough for the budget.
        high: Upper end; None where, at an end of B_crit's, no batch is large enough for the deadline.
        binding: What moved it, or what is in conflict, by kind.
        binding_names: What each of these is called.
        text: Why, in a sentence.
        possible: Where no batch meets all limits: the cheapest within the deadline, the fastest within the budget.
    """

    batch_size: float | None
    low: float | None
    high: float | None
    binding: tuple[str, ...]
    text: str
    possible: str | None = None
    binding_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inside:
    """The batch to recommend.

    Attributes:
        choice: Of the limits.
        limited: The same as the reader gets it.
        interval: Where the best batch inside the limits lies; its upper end may be infinite.
        batch: A whole batch that can be run; None where none can.
        regret: What rounding costs against the unrounded batch, as a share.
        allowed: All limits, at the value of B_crit.
    """

    choice: Choice
    limited: LimitedBatch
    interval: Interval | None
    batch: int | None
    regret: float | None
    allowed: Sequence[Limit]


def inside(priced: "Priced", run: RunSetting, given: Limits, pace: Pace | None) -> Inside:
    """The best batch at the reader's price, moved into the limits and rounded to what can be run.

    Args:
        priced: The best batch without limits.
        run: As it stands.
        given: What limits it.
        pace: Time and price of a step.
    """
    here = limits_at(priced.critical.value, run, given, pace)
    choice = choose(priced.best.value, here)
    ends = _at_ends(choice, priced, run, given, pace)
    interval = _interval(ends, priced)
    batch = None if choice.batch is None else whole_batch(choice.batch, here, given, priced)
    return Inside(
        choice=choice,
        limited=LimitedBatch(
            batch_size=choice.batch,
            low=None if interval is None else interval.low,
            high=None if interval is None or interval.high == math.inf else interval.high,
            binding=tuple(limit.kind.value for limit in choice.binding),
            text=why(choice, run.example),
            possible=None if choice.batch is not None else what_is_possible(priced, run, here, pace),
            binding_names=tuple(limit.kind.called for limit in choice.binding),
        ),
        interval=interval,
        batch=batch,
        regret=None if batch is None or choice.batch is None else _regret(batch, choice.batch, priced),
        allowed=here,
    )


def rounding(found: Inside, given: Limits, priced: "Priced") -> Callable[[float], int]:
    """From a wanted batch to the whole one inside the limits that can be run, as the recommended batch was rounded.

    Args:
        found: With a batch that can be run.
        given: Devices and micro-batch.
        priced: B_crit and the price.
    """
    smallest, largest = _range(found.allowed)

    def rounded(wanted: float) -> int:
        whole = whole_batch(min(max(wanted, smallest), largest), found.allowed, given, priced)
        # where a batch can be run at all, one of them is the recommended one
        assert found.batch is not None
        return found.batch if whole is None else whole

    return rounded


def whole_batch(wanted: float, allowed: Sequence[Limit], given: Limits, priced: "Priced") -> int | None:
    """The cheapest batch next to the wanted one that can be run; None where no whole batch lies inside the limits.

    Multiples of devices × micro-batch where the reader said them, otherwise powers of two and three times those.

    Args:
        wanted: In examples.
        allowed: The limits.
        given: Devices and micro-batch.
        priced: B_crit and the price.
    """
    smallest, largest = _range(allowed)
    if given.multiple_of > 1:
        try:
            return round_to_feasible(
                critical_batch=wanted,
                examples_per_step=wanted,
                multiple_of=given.multiple_of,
                smallest=smallest * (1 - 1e-12),
                largest=largest * (1 + 1e-12),
            ).batch
        except DomainError:
            return None
    rounded = round_batch(wanted)
    if smallest <= rounded <= largest:
        return rounded
    neighbours = [whole for whole in (math.floor(wanted), math.ceil(wanted)) if max(1, smallest) <= whole <= largest]
    exact = min(neighbours, key=lambda whole: _regret(whole, wanted, priced), default=None)
    even = round_batch(wanted * EVEN_STEP if wanted < smallest * EVEN_STEP else wanted / EVEN_STEP)
    is_cheap = smallest <= even <= largest and _regret(even, wanted, priced) <= EVEN_REGRET
    return even if is_cheap else exact


def _range(allowed: Sequence[Limit]) -> tuple[float, float]:
    smallest = max((limit.low for limit in allowed), default=0.0)
    return smallest, min((limit.high for limit in allowed), default=math.inf)


def round_batch(batch: float) -> int:
    """The nearest of 1, 2, 3, 4, 6, 8, 12, … on the log scale: at most 1 % worse than the exact best."""
    exponent = math.floor(math.log2(max(batch, 1)))
    candidates = [2**exponent, 3 * 2 ** (exponent - 1), 2 ** (exponent + 1)]
    return min((int(c) for c in candidates if c == int(c)), key=lambda c: abs(math.log(c / max(batch, 1))))


def what_is_possible(priced: "Priced", run: RunSetting, allowed: Sequence[Limit], pace: Pace | None) -> str | None:
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
    deadline = max((limit.low for limit in allowed if limit.is_deadline and limit.is_possible), default=None)
    budget = min((limit.high for limit in allowed if limit.is_budget and limit.is_possible), default=None)
    found = []
    if deadline is not None and 0 < deadline < math.inf:
        usd = None if pace is None else pace.usd_per_step(deadline)
        examples = f"{number(to_plan.examples(deadline))} {run.example}s"
        cost = examples if usd is None else f"{number(usd * to_plan.steps(deadline))} USD"
        found.append(f"Cheapest within the deadline: {cost}.")
    if budget is not None and 0 < budget < math.inf:
        steps = to_plan.steps(budget)
        seconds = None if pace is None else pace.seconds(budget)
        said = f"{number(steps)} steps" if seconds is None else f"{number(steps * seconds / SECONDS_PER_HOUR)} h"
        found.append(f"Fastest within the budget: {said}.")
    return " ".join(found) or None


def _at_ends(
    choice: Choice, priced: "Priced", run: RunSetting, given: Limits, pace: Pace | None
) -> list[tuple[float, float]]:
    """B_crit and the best batch inside the limits, at its value and both ends: limits of the plan move with it."""
    if choice.batch is None:
        return []
    ends = (
        (priced.critical_batch.low, priced.best.low),
        (priced.critical_batch.high, priced.best.high),
    )
    found = [(priced.critical.value, choice.batch)]
    for low_critical, low_best in ends:
        # an open end: B_crit may be next to nothing, and so may the best batch
        critical = max(low_critical, priced.critical.value * NEXT_TO_NOTHING)
        best = max(low_best, priced.best.value * NEXT_TO_NOTHING)
        moved = choose(best, limits_at(critical, run, given, pace))
        nowhere = math.inf if any(limit.is_deadline for limit in moved.binding) else 0.0
        found.append((critical, nowhere if moved.batch is None else moved.batch))
    return found


def _interval(ends: Sequence[tuple[float, float]], priced: "Priced") -> Interval | None:
    batches = [batch for _, batch in ends]
    return Interval(batches[0], min(batches), max(batches), priced.best.level) if batches else None


def _regret(batch: float, wanted: float, priced: "Priced") -> float:
    price = priced.rate_of_best
    critical = priced.critical.value
    rounded, exact = (
        trade_off.regret_at_price(batch=one, critical_batch=critical, examples_per_step=price)
        for one in (batch, wanted)
    )
    return (1 + rounded) / (1 + exact) - 1
