"""Numbers as people read them."""

import math

SECONDS_PER_HOUR, MINUTES_PER_HOUR, HOURS_PER_DAY = 3_600, 60, 24
TWO_DIGITS_FROM = 1.5
"""Upper over lower end of an interval."""

SURELY = 0.99
"""A probability beyond it is not told apart: no model is so sure."""

ROUNDING = 1e-9
"""0.29 × 100 is a little less than 29."""

RATIO_FROM, PER_CENT = 1.0, 0.01
"""An extra cost of as much again is said as a ratio, a share below a per cent with a digit."""

TEN_FROM = 9.95
"""With one decimal it would be 10.0."""

LONGEST_IN_HOURS = 48
"""Hours; what takes longer is said in days."""


def number(value: float) -> str:
    """Three significant digits with thousands separators: 1,490, 44.2, 0.031."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{round(value, 2 - math.floor(math.log10(abs(value)))):,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def rough(value: float, low: float, high: float) -> str:
    """A number with no more digits than its interval bears: two where its ends differ by half or more.

    Args:
        value: To say.
        low: Lower end of the interval.
        high: Upper end.
    """
    ratio = high / low if low > 0 else math.inf
    digits = 2 if ratio >= TWO_DIGITS_FROM else 3
    return number(float(f"{value:.{digits}g}"))


def ratio(value: float) -> str:
    """A ratio as people say it: 2.9 ×, 0.4 ×, 12 ×."""
    return f"{value:.0f} ×" if value >= TEN_FROM else f"{value:.1f} ×" if value >= 0.1 else f"{value:.2g} ×"


def percent(share: float) -> str:
    """A share as people say it: 41 %, 0.6 %."""
    return f"{100 * share:.0f} %" if share >= PER_CENT else f"{100 * share:.1g} %"


def more(share: float) -> str:
    """An extra cost as people say it: 17 % more, 3.2 × as much.

    Args:
        share: Of the cost that it is compared with, not negative.
    """
    return f"{ratio(1 + share)} as much" if share >= RATIO_FROM else f"{percent(share)} more"


def chance(probability: float) -> str:
    """A probability as people say it, never surer than it is: 83 %, 79 % of 0.797, more than 99 %."""
    return "more than 99 %" if probability > SURELY else f"{math.floor(100 * probability + ROUNDING)} %"


def duration(hours: float) -> str:
    """A time in the unit that people would say it in: 2.4 s, 26 min, 11.3 h, 5.3 days."""
    if hours * MINUTES_PER_HOUR < 1:
        return f"{number(hours * SECONDS_PER_HOUR)} s"
    if hours < 1:
        return f"{number(hours * MINUTES_PER_HOUR)} min"
    if hours <= LONGEST_IN_HOURS:
        return f"{number(hours)} h"
    return f"{number(hours / HOURS_PER_DAY)} days"
