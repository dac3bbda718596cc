"""Numbers as a reader sees them: three significant digits, true minus, unit beside."""

import math
import re
from bisect import bisect_right

THIN_RANGE = " – "
NOTHING = "–"
SURELY = 0.99
_INSIDE_A_NUMBER = re.compile(r"(?<=\d) (?=[–%×])|(?<=–) (?=\d)")
_SCALES = (1e3, 1e6, 1e9, 1e12)
_DIVISORS, _PREFIXES = (1.0, *_SCALES), ("", "k", "M", "G", "T")
_MOST_DIGITS = 15
_PADDED, _BARE, _SCIENTIFIC = (
    [pattern.format(digits, digits - 1) for digits in range(_MOST_DIGITS + 1)]
    for pattern in ("#,.{0}g", ",.{0}g", "%.{1}e")
)
"""Formats by their significant digits, with and without zeros at the end: a page writes thousands of numbers."""


def significant(value: float | None, digits: int = 3) -> str:
    """1490.4 → "1,490"; 0.0431 → "0.0431"; 4.31e-7 → "4.31e-7". For prose and cards."""
    if value is None:
        return NOTHING
    if value == 0:
        return "0"
    text = format(value, _PADDED[digits])
    if "e" in text:
        rounded = float(text)
        if not 1 <= abs(rounded) < 1e15:
            return _scientific(value, digits)
        text = f"{rounded:,.0f}"
    return _minus(text.removesuffix("."))


def si(value: float | None, digits: int = 3) -> str:
    """1490 → "1.49k"; 2.0e9 → "2G". For axes and dense tables."""
    if value is None:
        return NOTHING
    rounded = float(_SCIENTIFIC[digits] % value)
    place = bisect_right(_SCALES, abs(rounded))
    scaled = rounded / _DIVISORS[place] or 0.0
    text = format(scaled, _BARE[digits])
    return (_trimmed(significant(scaled, digits)) if "e" in text else _minus(text)) + _PREFIXES[place]


def count(value: float | None) -> str:
    """184200 → "184,200": steps and batch sizes, which are exact."""
    if value is None:
        return NOTHING
    return _minus(f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}")


def span(low: float | None, high: float | None, *, dense: bool = False) -> str:
    """An interval: "1,130 – 1,960", or "1.1k – 2k" where space is short."""
    if low is None or high is None:
        return NOTHING
    if dense:
        return si(low, 2) + THIN_RANGE + si(high, 2)
    return significant(low) + THIN_RANGE + significant(high)


def unbroken(text: str) -> str:
    """`text` whose intervals and units do not fall apart at the end of a line."""
    # a line may end after a dash even before a no-break space; a word joiner forbids that
    return _INSIDE_A_NUMBER.sub("\u00a0", text).replace("–\u00a0", "–\u2060\u00a0")


def share(fraction: float | None) -> str:
    """0.738 → "74 %"; below one percent one digit more."""
    if fraction is None:
        return NOTHING
    percent = 100 * fraction
    shown = f"{percent:.1f}" if 0 < percent < 1 else f"{percent:.0f}"
    return f"{shown} %"


def chance(probability: float) -> str:
    """0.797 → "79 %": never surer than it is, and above 99 % "more than 99 %"."""
    # what rounding takes from 0.8 is no percent
    return "more than 99 %" if probability > SURELY else f"{math.floor(100 * probability + 1e-9)} %"


def share_span(low: float | None, high: float | None) -> str:
    """0.52, 0.70 → "52 – 70 %"."""
    if low is None or high is None:
        return NOTHING
    return f"{100 * low:.0f}{THIN_RANGE}{100 * high:.0f} %"


def change(factor: float | None) -> str:
    """0.55 → "−45 %"; 1.38 → "+38 %"; from twice on a ratio, 5.44 → "5.4 ×"."""
    if factor is None:
        return NOTHING
    if factor >= 2:
        return ratio(factor)
    percent = round(100 * (factor - 1))
    return f"{'−' if percent < 0 else '+' if percent else '±'}{abs(percent)} %"


def change_span(low: float, high: float) -> str:
    """0.5, 0.6 → "−50 % to −40 %"."""
    return f"{change(low)} to {change(high)}"


def ratio(value: float | None) -> str:
    """2.91 → "2.9 ×"."""
    return NOTHING if value is None else f"{_trimmed(significant(value, 2))} ×"


def rate(value: float | None) -> str:
    """A learning rate: 0.1 → "0.1"; 0.00104 → "1.04e-3"."""
    if value is None:
        return NOTHING
    return _scientific(value, 3) if 0 < value < 0.01 else _trimmed(significant(value))


def exactly(value: float) -> str:
    """A value that someone has chosen, such as a target, without digits that they have not written: 0.3 → "0.3"."""
    return _minus(f"{value:.10g}")


def money(usd: float | None) -> str:
    """12.4 → "$12"; 3.5 → "$3.50"."""
    if usd is None:
        return NOTHING
    if 0 < usd < 0.01:
        return "under $0.01"
    return f"${usd:,.0f}" if usd >= 10 else f"${usd:.2f}"


def duration(seconds: float) -> str:
    """0.42 → "0.42 s"; 95 → "95 s"; 1560 → "26 min"; 40680 → "11.3 h"; 457920 → "5.3 days"."""
    if seconds < 10:
        return f"{_trimmed(significant(seconds, 2))} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{_trimmed(significant(seconds / 3600))} h"
    return f"{_trimmed(significant(seconds / 86400, 2))} days"


def _scientific(value: float, digits: int) -> str:
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0")
        mantissa = mantissa + "0" if mantissa.endswith(".") else mantissa
    return _minus(f"{mantissa}e{int(exponent)}")


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def _minus(text: str) -> str:
    # the exponent keeps its hyphen: 1.04e-3 can be pasted into a program
    return "−" + text[1:] if text.startswith("-") else text
