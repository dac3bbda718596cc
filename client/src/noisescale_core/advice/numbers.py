"""Numbers as people read them."""

import math

SECONDS_PER_HOUR, MINUTES_PER_HOUR, HOURS_PER_DAY = 3_600, 60, 24
LONGEST_IN_HOURS = 48
"""Hours; what takes longer is said in days."""


def number(value: float) -> str:
    """Three significant digits with thousands separators: 1,490, 44.2, 0.031."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{round(value, 2 - math.floor(math.log10(abs(value)))):,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def duration(hours: float) -> str:
    """A time in the unit that people would say it in: 2.4 s, 26 min, 11.3 h, 5.3 days."""
    if hours * MINUTES_PER_HOUR < 1:
        return f"{number(hours * SECONDS_PER_HOUR)} s"
    if hours < 1:
        return f"{number(hours * MINUTES_PER_HOUR)} min"
    if hours <= LONGEST_IN_HOURS:
        return f"{number(hours)} h"
    return f"{number(hours / HOURS_PER_DAY)} days"
