"""The planner's table: what a target takes at any batch sizes, the best of them, and which the limits allow."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from noisescale_core.advice.limits.predictions import Banded, banded
from noisescale_core.theory import limits
from noisescale_core.theory.cost import SECONDS_PER_HOUR
from noisescale_core.theory.limits import Limit, LimitKind
from noisescale_server.services.planner import limits as tradeoff_limits
from noisescale_server.services.planner.asked import AskedPlan
from noisescale_server.services.planner.limits import Inside, limits_at
from noisescale_server.services.planner.rows import Row, TimeAndMoney, row_at, time_and_money, told_from, usd_per_step

# A few plans beside the recommended one: twice the devices, half the budget, the cheapest, the fastest.

PLATEAU = 10.0
"""The fastest batch that nothing limits, over B_crit: within 10 % of the least possible steps.

Source: Shallue et al. 2018, arXiv:1811.03600, the regime of maximal data parallelism."""

NUM_TRIED = 240
"""Batches among which the cheapest and the fastest are looked for, evenly on the log scale."""

WhatIfName = Literal["cheapest", "fastest", "twice_the_devices", "half_the_budget"]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Another plan.

    Attributes:
        name: Which one.
        row: What it takes; None where no batch does it.
        text: What was asked for, or why there is none.
    """

    name: WhatIfName
    row: Row | None
    text: str


def what_ifs(asked: AskedPlan, found: Inside) -> tuple[WhatIf, ...]:
    """The plans beside the recommended batch; none without a plan.

    Args:
        asked: B_crit, price, machines and limits.
        found: The recommended batch and the limits.
    """
    if asked.plan is None:
        return ()
    cheapest, fastest = _end(asked, found, "cheapest"), _end(asked, found, "fastest")
    if found.batch is None:
        return (cheapest, fastest)
    beside = (_twice_the_devices(asked, found, found.batch), _half_the_budget(asked, found, found.batch))
    return (*(one for one in beside if one is not None), cheapest, fastest)


def _end(asked: AskedPlan, found: Inside, name: Literal["cheapest", "fastest"]) -> WhatIf:
    """The cheapest batch that meets all but the budgets, or the fastest that meets all but the deadlines."""
    left_out, word = ("budget", "deadline") if name == "cheapest" else ("deadline", "budget")
    kept = [limit for limit in found.allowed if limit.kind.role != left_out]
    is_limited = any(limit.kind.role == word for limit in kept)
    within = f" within the {word}" if is_limited else ""
    low, high = _range(asked, kept, found.batch)
    if not all(limit.is_possible for limit in kept) or low > high * (1 + limits.ROUNDING):
        return WhatIf(name, None, f"No batch meets the {word} and what else limits it.")
    cost = _usd_or_examples(asked) if name == "cheapest" else _hours_or_steps(asked)
    tried = (low * (high / low) ** (place / NUM_TRIED) for place in range(NUM_TRIED + 1))
    batch = _runnable(asked, min(tried, key=cost), (low, high), cost)
    text = f"The {name}{within}"
    if name == "fastest" and high == PLATEAU * asked.critical_batch.value:
        pace = asked.machines.pace
        is_timed = pace is not None and pace.hardware != "one_batch"
        text += f", within 10 % of the least possible {'time' if is_timed else 'steps'}"
    return WhatIf(name, _row(asked, batch, found.allowed), f"{text}.")


def _runnable(asked: AskedPlan, wanted: float, ends: tuple[float, float], cost: Callable[[float], float]) -> float:
    """The best of the two neighbours that are whole, of whole devices where these come with the batch."""
    each = asked.machines.examples_of_a_device
    unit = each if each is not None and each.is_integer() and each >= 1 else 1.0
    low, high = ends[0] * (1 - limits.ROUNDING), ends[1] * (1 + limits.ROUNDING)
    near = [unit * math.floor(wanted / unit), unit * math.ceil(wanted / unit)]
    return min((batch for batch in near if batch > 0 and low <= batch <= high), key=cost, default=wanted)


def _range(asked: AskedPlan, kept: Sequence[Limit], recommended: int | None) -> tuple[float, float]:
    """The batches to look among: from one device's, or the recommended one, up to the plateau where nothing limits."""
    critical = asked.critical_batch.value
    least = max(1.0, min(asked.machines.examples_of_a_device or 1.0, recommended or math.inf, PLATEAU * critical))
    low = max([*(limit.low for limit in kept), least])
    return low, min([*(limit.high for limit in kept), max(PLATEAU * critical, low)])


def _twice_the_devices(asked: AskedPlan, found: Inside, batch: int) -> WhatIf | None:
    if asked.machines.examples_of_a_device is None:
        return None
    return WhatIf("twice_the_devices", _row(asked, 2.0 * batch, found.allowed), "Twice the devices, twice the batch.")


def _half_the_budget(asked: AskedPlan, found: Inside, batch: int) -> WhatIf | None:
    """Half of the stated budget, or of what the recommended batch costs; None without a price, or if devices stay."""
    here = _row(asked, float(batch), found.allowed)
    if here.usd is None or asked.machines.examples_of_a_device is None:
        return None
    half = (asked.given.max_usd or here.usd.value) / 2
    halved = replace(asked, given=replace(asked.given, max_usd=half))
    allowed = limits_at(halved, asked.critical_batch.value)
    budget = next((limit for limit in allowed if limit.kind is LimitKind.USD), None)
    least = asked.machines.examples_of_a_device
    if budget is None or not budget.is_possible or budget.high < least:
        return WhatIf("half_the_budget", None, f"No batch of a whole device costs {half:,.4g} USD or less.")
    wanted = min(float(batch), budget.high)
    steps = _hours_or_steps(asked)
    inside = _runnable(asked, wanted, (least, budget.high), steps)
    return WhatIf("half_the_budget", _row(asked, inside, found.allowed), f"It stays within {half:,.4g} USD.")


def _row(asked: AskedPlan, batch: float, allowed: Sequence[Limit]) -> Row:
    return row_at(asked, float(batch), allowed)


def _steps_at(asked: AskedPlan) -> Callable[[float], float]:
    to_target = asked.trade_off_at(asked.critical_batch.value)
    assert to_target is not None
    return to_target.steps


def _hours_or_steps(asked: AskedPlan) -> Callable[[float], float]:
    steps, pace = _steps_at(asked), asked.machines.pace
    if pace is None or pace.hardware == "one_batch":
        return steps
    # a batch below a device's share is not timed, and no faster than the share itself
    return lambda batch: steps(batch) * (pace.seconds(batch) or pace.step_seconds) / SECONDS_PER_HOUR


def _usd_or_examples(asked: AskedPlan) -> Callable[[float], float]:
    steps, pace = _steps_at(asked), asked.machines.pace
    is_timed = pace is not None and pace.hardware != "one_batch"

    def cost(batch: float) -> float:
        price = usd_per_step(asked.machines, batch) if is_timed else None
        return steps(batch) * (batch if price is None else price)

    return cost


@dataclass(frozen=True, slots=True)
class TradeOffTable:
    """The table and the best batch in it.

    Attributes:
        rows: One for each batch, rising.
        recommended: The batch to run, whole and inside the limits; None where no batch meets them.
        present: The batch in use; None where none is.
        best_batch: At this price, by both errors.
        inside: The same inside the limits, and the limits.
        what_ifs: Other plans beside it.
        assumes: What is assumed of a step's time; None without one.
    """

    rows: tuple[Row, ...]
    recommended: Row | None
    present: Row | None
    best_batch: Banded
    inside: Inside
    what_ifs: tuple[WhatIf, ...]
    assumes: str | None


def table(asked: AskedPlan) -> TradeOffTable:
    """The table of what was asked.

    Args:
        asked: B_crit, batches, machines, price and limits.

    Raises:
        ValueError: If a number is out of range.
    """
    found = tradeoff_limits.inside(asked)
    rows = [row_at(asked, batch, found.allowed) for batch in sorted(set(asked.batches))]
    others = [time_and_money(row) for row in rows]
    pace = asked.machines.pace
    return TradeOffTable(
        rows=tuple(told_from(row, others) for row in rows),
        recommended=_beside(asked, found, others, found.batch),
        present=_beside(asked, found, others, asked.present_batch),
        best_batch=_best(asked),
        inside=found,
        what_ifs=what_ifs(asked, found),
        assumes=None if pace is None else pace.said,
    )


def _best(asked: AskedPlan) -> Banded:
    best, spread = asked.priced.best, asked.rate.recommended_batch(asked.critical_batch)
    return replace(banded(spread.through(lambda batch: batch)), value=best.value, low=best.low, high=best.high)


def _beside(asked: AskedPlan, found: Inside, others: Sequence[TimeAndMoney], batch: float | None) -> Row | None:
    return None if batch is None else told_from(row_at(asked, float(batch), found.allowed), others)
