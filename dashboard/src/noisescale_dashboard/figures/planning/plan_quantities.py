"""What the axes of a plan measure: time or steps across, money, examples or device-hours upwards."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from noisescale_dashboard.answers.common import UNKNOWN, Interval
from noisescale_dashboard.answers.plans import Row, TradeOff
from noisescale_dashboard.figures.parts import axes
from noisescale_dashboard.words.number_format import THIN_RANGE, duration, money, ratio, si

SECONDS_PER_HOUR = 3600.0
CENT = 0.01
"""The least money that is said."""
TIME_UNITS = ((1 / 3600, "s", 1 / 30), (1 / 60, "min", 2.0), (1.0, "h", 72.0), (24.0, "days", math.inf))
"""Hours of a unit, its word, and the hours up to which it is used."""


@dataclass(frozen=True, slots=True)
class PlanQuantity:
    """One thing that a row of a plan takes.

    Attributes:
        name: As the address has it.
        title: Below an axis, and of a column.
        of: Where a row has it.
        shown: A value in words, with its unit.
        unit_of: Size and word of the unit in which an axis over a range is ticked.
    """

    name: str
    title: str
    of: Callable[[Row], Interval]
    shown: Callable[[float], str]
    unit_of: Callable[[float, float], tuple[float, str]]


def hours_words(hours: float) -> str:
    """11.3 → "11.3 h"; 0.2 → "12 min"."""
    return duration(SECONDS_PER_HOUR * hours)


def as_given(value: float, name: str) -> str:
    """A number that the reader has said, without rounding: "18 h", "$12.5", "40,000".

    Args:
        value: As it was said.
        name: Of the quantity.
    """
    said = f"{value:,.10g}"
    return {"hours": f"{said} h", "usd": f"${said}", "kilowatt_hours": f"{said} kWh"}.get(name, said)


def taken(row: Row, name: str | None) -> Interval:
    """What a row takes of a quantity, by the name of docs/rest.md; unknown where it is none of a row.

    Args:
        row: Of a plan.
        name: Of the quantity.
    """
    found = getattr(row, name or "", UNKNOWN)
    return found if isinstance(found, Interval) else UNKNOWN


def in_words(value: float, name: str | None) -> str:
    """A value of a quantity as people read it: "2.54 h", "$303", "12k".

    Args:
        value: Of a row.
        name: Of the quantity.
    """
    return {"hours": hours_words, "usd": money}.get(name or "", si)(value)


def between(low: float, high: float, shown: Callable[[float], str]) -> str:
    """An interval with its unit once: "9.1 – 12 h", "$520 – 690", "26 min – 3 h".

    Args:
        low: Lower end.
        high: Upper end.
        shown: One value in words.
    """
    first, last = shown(low), shown(high)
    if first == last:
        return first
    if first.startswith("$") and last.startswith("$"):
        return f"{first}{THIN_RANGE}{last[1:]}"
    number, _, unit = first.partition(" ")
    return f"{number if unit and last.endswith(f' {unit}') else first}{THIN_RANGE}{last}"


def across(plan: TradeOff) -> PlanQuantity:
    """Wall time; steps where their time is not known; steps over the least possible where no plan is known either."""
    if plan.has_hours:
        return PlanQuantity("hours", "wall-clock time to target", lambda row: row.hours, hours_words, _time_unit)
    if plan.has_plan:
        return PlanQuantity("steps", "optimizer steps to target", lambda row: row.steps, si, _plain_unit)
    return PlanQuantity("steps_factor", "steps ÷ fewest possible", lambda row: row.steps_factor, ratio, _ratio_unit)


def upwards(plan: TradeOff, wanted: str, noun: str) -> PlanQuantity:
    """The wanted one of `choices`, else the first of them.

    Args:
        plan: With rows.
        wanted: Name of a quantity.
        noun: Plural of what one example is.
    """
    found = choices(plan, noun)
    return next((one for one in found if one.name == wanted), found[0])


def choices(plan: TradeOff, noun: str) -> list[PlanQuantity]:
    """What can stand on the axis of costs: what the plan's rows know, money first.

    Args:
        plan: With rows.
        noun: Plural of what one example is.
    """
    if not plan.has_plan:
        title = f"{noun} ÷ fewest possible"
        return [PlanQuantity("examples_factor", title, lambda row: row.examples_factor, ratio, _ratio_unit)]
    known = [
        PlanQuantity("usd", "cost", lambda row: row.usd, money, lambda _low, _high: (1.0, "$")),
        PlanQuantity("examples", noun, lambda row: row.examples, si, _plain_unit),
        PlanQuantity("device_hours", "device-hours", lambda row: row.device_hours, si, _plain_unit),
    ]
    return [one for one in known if _is_worth_an_axis(one, plan)]


def _is_worth_an_axis(quantity: PlanQuantity, plan: TradeOff) -> bool:
    """Whether more than one row has it, and money is more than a cent somewhere."""
    values = [value for row in plan.rows if (value := quantity.of(row).value) is not None]
    return len(values) > 1 and (quantity.name != "usd" or max(values) >= CENT)


def ticks(quantity: PlanQuantity, low: float, high: float, *, at_most: int) -> tuple[list[float], list[str]]:
    """Where an axis of this quantity is ticked, and what stands there.

    Args:
        quantity: Of the axis.
        low: Its least value.
        high: Its greatest value.
        at_most: Ticks that have room.
    """
    size, word = quantity.unit_of(low, high)
    found = [tick for tick in axes.log_ticks(low / size, high / size) if word != "$" or tick >= CENT]
    found = found[:: math.ceil(len(found) / at_most)]
    return [tick * size for tick in found], [_tick_words(tick, word) for tick in found]


def _tick_words(tick: float, word: str) -> str:
    number = axes.power_of_ten(tick) if tick < 1e-3 else si(tick)
    return f"${number}" if word == "$" else f"{number} {word}".strip()


def _time_unit(low: float, high: float) -> tuple[float, str]:
    middle = math.sqrt(low * high)
    return next((hours, word) for hours, word, limit in TIME_UNITS if middle < limit)


def _plain_unit(_low: float, _high: float) -> tuple[float, str]:
    return 1.0, ""


def _ratio_unit(_low: float, _high: float) -> tuple[float, str]:
    return 1.0, "×"


def known_ends(values: Sequence[float | None]) -> tuple[float, float] | None:
    """Least and greatest of the positive ones that are known.

    Args:
        values: Any.
    """
    found = [value for value in values if value is not None and 0 < value < math.inf]
    return (min(found), max(found)) if found else None
