"""Text in drawings: annotations and tick labels."""

from collections.abc import Iterator
from typing import Any

import plotly.graph_objects as go

from noisescale_dashboard.figures.svg.markup import element, lines
from noisescale_dashboard.figures.svg.plane import Plane, place

LINE_HEIGHT = 1.3
MIDDLE, DESCENT, ASCENT = 0.36, 0.24, 0.95
"""Shares of the size of type: from the baseline to the middle of small letters, to the lowest and the highest ink."""
_ANCHORS = {"left": "start", "center": "middle", "right": "end", "auto": "middle", None: "middle"}


def text(
    words: str, x: float, y: float, font: Any, *, xanchor: str | None = "center", yanchor: str | None = "middle"
) -> str:
    """Words at a pixel; `font` has plotly's `size` and `color`."""
    rows, step = lines(words), LINE_HEIGHT * font.size
    first = {
        "bottom": y - DESCENT * font.size - step * (len(rows) - 1),
        "top": y + ASCENT * font.size,
    }.get(yanchor or "", y + MIDDLE * font.size - step * (len(rows) - 1) / 2)
    spans = [
        row if number == 0 else element("tspan", row, x=x, y=first + number * step) for number, row in enumerate(rows)
    ]
    return element(
        "text", *spans, x=x, y=first, fill=font.color, font_size=font.size, text_anchor=_ANCHORS[xanchor]
    )  # fmt: skip


def annotations(figure: go.Figure, plane: Plane) -> Iterator[str]:
    """Every annotation; plotly's shift upward is positive."""
    for one in figure.layout.annotations:
        x = place(plane.x, one.x, one.xref, is_annotation=True) + (one.xshift or 0)
        y = place(plane.y, one.y, one.yref, is_annotation=True) - (one.yshift or 0)
        yield text(one.text, x, y, one.font, xanchor=one.xanchor, yanchor=one.yanchor)
