"""The planner's table: what a target takes at any batch sizes, the best of them, and which the limits allow."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from noisescale_core.advice.limits.predictions import Banded, banded
from noisescale_server.services.planner import limits as tradeoff_limits
from noisescale_server.services.planner import what_ifs as tradeoff_what_ifs
from noisescale_server.services.planner.asked import AskedPlan
from noisescale_server.services.planner.limits import Inside
from noisescale_server.services.planner.rows import Row, TimeAndMoney, row_at, time_and_money, told_from
from noisescale_server.services.planner.what_ifs import WhatIf


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
        what_ifs=tradeoff_what_ifs.what_ifs(asked, found),
        assumes=None if pace is None else pace.said,
    )


def _best(asked: AskedPlan) -> Banded:
    best, spread = asked.priced.best, asked.rate.recommended_batch(asked.critical_batch)
    return replace(banded(spread.through(lambda batch: batch)), value=best.value, low=best.low, high=best.high)


def _beside(asked: AskedPlan, found: Inside, others: Sequence[TimeAndMoney], batch: float | None) -> Row | None:
    return None if batch is None else told_from(row_at(asked, float(batch), found.allowed), others)
