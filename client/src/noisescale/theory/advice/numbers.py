"""Numbers as people read them."""

import math


def number(value: float) -> str:
    """Three significant digits with thousands separators: 1,490, 44.2, 0.031."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{round(value, 2 - math.floor(math.log10(abs(value)))):,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
