"""Counts and times as people read them."""

import math


def readable(count: float) -> str:
    """A count to three digits: 7.25, 3180, 3.3 M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(count) >= size:
            return f"{count / size:.1f} {letter}"
    if abs(count) < 1:
        return f"{count:.2g}"
    digits = 2 - math.floor(math.log10(abs(count)))
    return f"{round(count, digits):.{max(0, digits)}f}" if abs(count) < 100 else f"{round(count, digits):.0f}"


def readable_seconds(seconds: float) -> str:
    """A time in its largest unit: 40 seconds, 12 minutes, 3.4 hours, 12 days."""
    for name, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 1.5 * size:
            count = seconds / size
            return f"{readable(count)} {name}" if count >= 10 else f"{count:.2g} {name}"
    count = max(1, math.ceil(seconds))
    return "1 second" if count == 1 else f"{count} seconds"


def several(example: str) -> str:
    """The word for several of what is sampled, from the word for one."""
    return example if example.endswith("s") else f"{example}s"
