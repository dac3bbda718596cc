"""A series in one line: as blocks in a terminal, as a small drawing in a page."""

import math
from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH, HEIGHT = 220, 44
MARGIN = 3
"""Pixels around the line, so that it is not cut where it is thickest."""


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
