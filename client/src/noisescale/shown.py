"""A run and a recommendation as a notebook shows them: a small card in the colours of the page around it.

Everything is drawn in the colour of the text, which notebooks make light or dark themselves: a style of our own would
ask the system, and a dark notebook on a light system would be unreadable.
"""

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from noisescale_core.advice.parts.numbers import chance, more, number, percent

if TYPE_CHECKING:
    from noisescale.ask.recommendation import Recommendation
    from noisescale_core.advice.parts.parts import Odds

BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH, HEIGHT = 220, 44
MARGIN = 3
"""Pixels around the line, so that it is not cut where it is thickest."""

FRAME = (
    "border:1px solid rgba(128,128,128,.45);border-radius:8px;padding:12px 16px;max-width:46em;color:inherit;"
    "font-family:system-ui,sans-serif;font-size:14px;line-height:1.45"
)
QUIET = "opacity:.72;font-size:12px"
HEADLINE = "font-size:17px;font-weight:600"
NUMBER = "font-size:15px;font-weight:600;white-space:nowrap"
WHOLE = "display:grid;grid-template-columns:max-content 1fr;gap:4px 12px;font-size:13px;margin:6px 0 0"

WHY = "why"
"""The part that stands below the headline already."""

Parts = Sequence[tuple[str, str]]
"""Names and sentences."""

Course = Sequence[float | None]
"""Noise scales along a run, in examples, oldest first; None where nothing was known."""


# A series in one line: as blocks in a terminal, as a small drawing in a page.


def blocks(values: Sequence[float | None], *, is_log: bool = False) -> str:
    """A block for each value, higher for larger ones; a space where there is none.

    Args:
        values: In their order.
        is_log: Heights follow the logarithm, which values that are not positive have none of.
    """
    heights = _heights(values, is_log=is_log)
    return "".join(" " if one is None else BLOCKS[min(len(BLOCKS) - 1, int(one * len(BLOCKS)))] for one in heights)


def drawing(values: Sequence[float | None], label: str) -> str:
    """An SVG of the values on a logarithmic scale, in the colour of the text around it; empty without two of them.

    Args:
        values: In their order; None leaves a gap.
        label: What it shows, for those who do not see it: text that is escaped already.
    """
    heights = _heights(values, is_log=True)
    if sum(one is not None for one in heights) < 2:
        return ""
    across = (WIDTH - 2 * MARGIN) / (len(heights) - 1)
    up = HEIGHT - 2 * MARGIN
    pieces: list[list[str]] = [[]]
    for i, height in enumerate(heights):
        if height is not None:
            pieces[-1].append(f"{MARGIN + i * across:.1f},{HEIGHT - MARGIN - height * up:.1f}")
        elif pieces[-1]:
            pieces.append([])
    lines = "".join(f'<polyline points="{" ".join(piece)}"/>' for piece in pieces if piece)
    return (
        f'<svg role="img" aria-label="{label}" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round">'
        f"{lines}</svg>"
    )


def _heights(values: Sequence[float | None], *, is_log: bool) -> list[float | None]:
    """From 0 of the least to 1 of the largest value; half way where all are equal."""
    scaled = [_scaled(value, is_log=is_log) for value in values]
    known = [one for one in scaled if one is not None]
    if not known:
        return [None] * len(scaled)
    low, high = min(known), max(known)
    return [None if one is None else 0.5 if high == low else (one - low) / (high - low) for one in scaled]


def _scaled(value: float | None, *, is_log: bool) -> float | None:
    if value is None or not math.isfinite(value) or (is_log and value <= 0):
        return None
    return math.log(value) if is_log else value


def recommendation_card(found: "Recommendation", parts: Parts) -> str:
    """The recommendation as HTML; every text in it is escaped.

    Args:
        found: To show.
        parts: All that it says.
    """
    return _card("", _advice(found, parts), found.course)


def run_card(title: str, noise_scale: str, found: "Recommendation", parts: Parts) -> str:
    """A run as HTML; every text in it is escaped.

    Args:
        title: What it is called, and how far it is.
        noise_scale: In a sentence.
        found: Its recommendation, with the course of the run.
        parts: All that this says.
    """
    head = f'<div style="{QUIET}">{escape(title)}</div><div>Noise scale: {escape(noise_scale)}</div>'
    return _card(head, _advice(found, parts), found.course)


def _card(head: str, advice: str, course: Course) -> str:
    return f'<div style="{FRAME}">{head}{_drawn(course)}{advice}</div>'


def _advice(found: "Recommendation", parts: Parts) -> str:
    rows = "".join(
        f'<span style="{QUIET}">{escape(label)}</span><span>{escape(content)}</span>'
        for label, content in parts
        if label != WHY
    )
    odds = "" if found.odds is None or found.recommended_batch_size is None else _odds(found.odds)
    return (
        f'<div style="{HEADLINE}">{escape(found.headline)}</div>{odds}<div>{escape(found.reason)}</div>'
        f'<details style="margin-top:6px"><summary style="{QUIET};cursor:pointer">All of it</summary>'
        f'<div style="{WHOLE}">{rows}</div></details>'
    )


def _odds(odds: "Odds") -> str:
    worst = f"saves {percent(-odds.worst_case)}" if odds.worst_case < 0 else f"costs {more(odds.worst_case)}"
    cells = (
        (chance(odds.probability), "likely to be cheaper"),
        (f"saves {percent(odds.saving)}" if odds.saving >= 0 else f"costs {more(-odds.saving)}", "on average"),
        (worst, "in the worst case of 20"),
    )
    shown = "".join(
        f'<div><div style="{NUMBER}">{escape(value)}</div><div style="{QUIET}">{escape(what)}</div></div>'
        for value, what in cells
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:4px 28px;margin:6px 0">{shown}</div>'


def _drawn(course: Course) -> str:
    known = [value for value in course if value is not None]
    if len(known) < 2:
        return ""
    ends = f"noise scale so far, from {number(known[0])} to {number(known[-1])}"
    return (
        '<div style="display:flex;flex-wrap:wrap;align-items:center;gap:0 12px;margin:4px 0">'
        f'{drawing(course, escape(ends))}<span style="{QUIET}">{escape(ends)}</span></div>'
    )
