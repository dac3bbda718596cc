"""Axis lines, ticks, tick labels and the grid."""

import math
from collections.abc import Iterator
from typing import Any

import plotly.graph_objects as go

from noisescale_dashboard.figures.svg.markup import element
from noisescale_dashboard.figures.svg.plane import Axis, Plane
from noisescale_dashboard.figures.svg.words import text
from noisescale_dashboard.words.number_format import si

LABEL_PIXELS = 4
"""Between the axis, or the end of a tick, and its label."""


def ticks_of(axis: Any, shown: Axis) -> list[tuple[float, str]]:
    """Pixel and words of each tick inside the range.

    Raises:
        ValueError: Where the figure leaves the ticks to a browser.
    """
    if axis.tickvals is not None:
        values, words = list(axis.tickvals), list(axis.ticktext)
    elif axis.dtick is not None and not shown.is_log:
        values = _every(float(axis.dtick), float(axis.tick0 or 0), shown)
        words = [si(value) if "s" in (axis.tickformat or "") else f"{value:g}" for value in values]
    else:
        raise ValueError("the axis has neither tickvals nor, where it is linear, dtick: give the figure one")
    placed = [(shown.pixel(value), word) for value, word in zip(values, words, strict=True)]
    return [(pixel, str(word)) for pixel, word in placed if pixel is not None and shown.holds(pixel)]


def _every(step: float, origin: float, shown: Axis) -> list[float]:
    low, high = min(shown.first, shown.last), max(shown.first, shown.last)
    first, last = math.ceil((low - origin) / step - 1e-9), math.floor((high - origin) / step + 1e-9)
    return [origin + step * number for number in range(first, last + 1)]


def grid(figure: go.Figure, plane: Plane) -> Iterator[str]:
    """Lines across the plot at the ticks of the y axis, where the figure has a grid."""
    axis = figure.layout.yaxis
    if axis.visible is False or not axis.showgrid:
        return
    for y, _ in ticks_of(axis, plane.y):
        yield _line((plane.x.start, y), (plane.x.end, y), axis.gridcolor)


def axes(figure: go.Figure, plane: Plane) -> Iterator[str]:
    """The two axes with ticks and labels."""
    yield from _x_axis(figure.layout.xaxis, plane)
    axis = figure.layout.yaxis
    if axis.visible is False:
        return
    for y, word in ticks_of(axis, plane.y):
        yield text(word, plane.x.start - LABEL_PIXELS, y, axis.tickfont, xanchor="right")


def _x_axis(axis: Any, plane: Plane) -> Iterator[str]:
    if axis.visible is False:
        return
    bottom = plane.y.start
    if axis.showline:
        yield _line((plane.x.start, bottom), (plane.x.end, bottom), axis.linecolor)
    length = (axis.ticklen or 5) if axis.ticks == "outside" else 0
    for x, word in ticks_of(axis, plane.x):
        if length:
            yield _line((x, bottom), (x, bottom + length), axis.tickcolor)
        yield text(word, x, bottom + length + LABEL_PIXELS, axis.tickfont, yanchor="top")


def _line(start: tuple[float, float], end: tuple[float, float], color: str) -> str:
    return element("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], stroke=color, stroke_width=1)
