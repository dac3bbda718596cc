"""A figure as one SVG element, for the part of plotly that the house's line figures use."""

from collections.abc import Iterator
from typing import Any

import plotly.graph_objects as go

from noisescale_dashboard.figures.svg import ticks, traces, words
from noisescale_dashboard.figures.svg.markup import element
from noisescale_dashboard.figures.svg.plane import Axis, Plane, place, plane_of

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
        *ticks.grid(figure, plane),
        *shapes(figure, plane, is_below=True),
        *(
            part
            for number, one in enumerate(figure.data)
            for part in traces.trace(one, plane, name=f"{name}-{number}", clip=clip)
        ),
        *shapes(figure, plane, is_below=False),
        *ticks.axes(figure, plane),
        *words.annotations(figure, plane),
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
