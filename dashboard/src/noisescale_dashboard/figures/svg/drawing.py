"""A figure as one SVG element, for the part of plotly that the house's line figures use."""

import math
from collections.abc import Iterator
from typing import Any

import plotly.graph_objects as go

from noisescale_dashboard.figures.svg import traces
from noisescale_dashboard.figures.svg.markup import element, lines
from noisescale_dashboard.figures.svg.plane import Axis, Plane, place, plane_of
from noisescale_dashboard.words.number_format import si

# Text in drawings: annotations and tick labels.

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


# Axis lines, ticks, tick labels and the grid.

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


CLIP_ROOM = 2.0
"""Pixels that lines may reach beyond the plot, so that one along its edge keeps its width."""


def as_svg(figure: go.Figure, *, width: float, name: str, description: str) -> str:
    """`figure` as an SVG element, `width` pixels wide and as high as its layout says.

    Args:
        figure: Scatter traces, line and rectangle shapes, annotations, axes with their ranges and ticks.
        width: Pixels; the drawing scales with whatever holds it.
        name: Begins the ids inside, so unique in the document.
        description: What the figure shows, for those who do not see it.

    Raises:
        ValueError: For what is not drawn here.
    """
    plane, height, clip = plane_of(figure, width=width), figure.layout.height, f"{name}-plot"
    return element(
        "svg",
        element("clipPath", _outline(plane), id=clip),
        *grid(figure, plane),
        *shapes(figure, plane, is_below=True),
        *(
            part
            for number, one in enumerate(figure.data)
            for part in traces.trace(one, plane, name=f"{name}-{number}", clip=clip)
        ),
        *shapes(figure, plane, is_below=False),
        *axes(figure, plane),
        *annotations(figure, plane),
        viewBox=f"0 0 {width:g} {height:g}",
        width=float(width),
        height=float(height),
        role="img",
        aria_label=description,
        font_family=figure.layout.font.family,
    )


def _outline(plane: Plane) -> str:
    (left, right), (top, bottom) = (plane.x.start, plane.x.end), (plane.y.end, plane.y.start)
    return element(
        "rect", x=left - CLIP_ROOM, y=top - CLIP_ROOM, width=right - left + 2 * CLIP_ROOM,
        height=bottom - top + 2 * CLIP_ROOM,
    )  # fmt: skip


def shapes(figure: go.Figure, plane: Plane, *, is_below: bool) -> Iterator[str]:
    """The shapes behind the data, or those in front.

    Raises:
        ValueError: For a shape that is neither a line nor a rectangle.
    """
    for shape in figure.layout.shapes:
        if (shape.layer == "below") != is_below:
            continue
        (x0, x1), (y0, y1) = _ends(plane.x, shape, "x"), _ends(plane.y, shape, "y")
        stroke = {
            "stroke": shape.line.color if shape.line.width != 0 else None,
            "stroke_width": shape.line.width or None,
            "stroke_dasharray": traces.dashes(shape.line.dash),
        }
        if shape.type == "line":
            yield element("line", x1=x0, y1=y0, x2=x1, y2=y1, **stroke)
        elif shape.type == "rect":
            corner = {"x": min(x0, x1), "y": min(y0, y1), "width": abs(x1 - x0), "height": abs(y1 - y0)}
            yield element("rect", **corner, fill=shape.fillcolor or "none", **stroke)
        else:
            raise ValueError(f"a shape of type {shape.type!r} is not drawn as SVG: line and rect are")


def _ends(axis: Axis, shape: Any, letter: str) -> tuple[float, float]:
    ref = shape[f"{letter}ref"]
    first, last = (place(axis, shape[f"{letter}{end}"], ref, is_annotation=False) for end in (0, 1))
    return first, last
