"""Where things stand in the pixels of a drawing: axes, margins, and plotly's three ways to say a place."""

import math
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: from `first` to `last`, in powers of ten where `is_log`, over the pixels from `start` to `end`."""

    first: float
    last: float
    start: float
    end: float
    is_log: bool

    def pixel(self, value: float | None) -> float | None:
        """Where a value of the data stands; None where it has no place on this axis."""
        if value is None or not math.isfinite(value) or (self.is_log and value <= 0):
            return None
        return self.along(math.log10(value) if self.is_log else float(value))

    def along(self, place: float) -> float:
        """The pixel of a place in the axis' own units: powers of ten on a logarithmic one."""
        return self.start + (place - self.first) / (self.last - self.first) * (self.end - self.start)

    def part(self, share: float) -> float:
        """The pixel of a share of the axis, 0 at its beginning."""
        return self.start + share * (self.end - self.start)

    def holds(self, pixel: float) -> bool:
        """Whether a pixel lies on the axis."""
        return min(self.start, self.end) - 0.5 <= pixel <= max(self.start, self.end) + 0.5


@dataclass(frozen=True, slots=True)
class Plane:
    """The plot of a drawing: its two axes."""

    x: Axis
    y: Axis


def plane_of(figure: go.Figure, *, width: float) -> Plane:
    """The plane of `figure`, drawn so many pixels wide.

    Raises:
        ValueError: Where an axis has no range of its own: only a browser would choose one.
    """
    margin, height = figure.layout.margin, figure.layout.height
    return Plane(
        _axis(figure.layout.xaxis, "x", margin.l, width - margin.r),
        _axis(figure.layout.yaxis, "y", height - margin.b, margin.t),
    )


def _axis(axis: Any, name: str, start: float, end: float) -> Axis:
    if axis.range is None:
        raise ValueError(f"the {name} axis has no range: give the figure one")
    first, last = axis.range
    return Axis(float(first), float(last), float(start), float(end), axis.type == "log")


def place(axis: Axis, value: float, ref: str | None, *, is_annotation: bool) -> float:
    """The pixel of plotly's `x` or `y` with its `xref` or `yref`.

    Annotations on a logarithmic axis say powers of ten, shapes say values.
    """
    if ref == "paper" or (ref or "").endswith("domain"):
        return axis.part(value)
    if is_annotation or not axis.is_log:
        return axis.along(float(value))
    return axis.along(math.log10(value))
