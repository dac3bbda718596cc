"""Lines, bands, marks and whiskers of scatter traces."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from noisescale_dashboard.figures.svg.markup import element, path
from noisescale_dashboard.figures.svg.plane import Plane

# The marks of points: each with its own shape, so that a print without colours can be read.

_OUTLINES: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    "triangle-up": ((-1.15, 0.67), (0, -1.33), (1.15, 0.67)),
    "triangle-down": ((-1.15, -0.67), (0, 1.33), (1.15, -0.67)),
    "triangle-left": ((0.67, -1.15), (-1.33, 0), (0.67, 1.15)),
    "triangle-right": ((-0.67, -1.15), (1.33, 0), (-0.67, 1.15)),
    # plotly's arrow has its tip at the point
    "arrow-up": ((0, 0), (1, 2), (-1, 2)),
}
"""Corners in units of half the size."""
_STROKES = {"x-thin": ((-1, -1, 1, 1), (-1, 1, 1, -1)), "cross-thin": ((-1, 0, 1, 0), (0, -1, 0, 1))}


def symbol(
    kind: str, at: tuple[float, float], *, size: float, color: str | None, ring: tuple[float, str | None]
) -> str:
    """One mark at a pixel; `ring` is width and colour of its outline.

    Raises:
        ValueError: For a kind that has no drawing.
    """
    name, half = kind.removesuffix("-open"), size / 2
    width, around = ring
    is_open = kind.endswith("-open")
    look = {
        "fill": "none" if is_open else color,
        "stroke": color if is_open else around if width else None,
        "stroke_width": float(width or 1) if is_open or width else None,
    }
    if name == "circle":
        return element("circle", cx=at[0], cy=at[1], r=half, **look)
    if name in _OUTLINES:
        corners = [(at[0] + half * x, at[1] + half * y) for x, y in _OUTLINES[name]]
        return element("path", d=path(corners, is_closed=True), **look)
    if name in _STROKES:
        ends = [[(at[0] + half * line[i], at[1] + half * line[i + 1]) for i in (0, 2)] for line in _STROKES[name]]
        return element("path", d="".join(map(path, ends)), stroke=around or color, stroke_width=float(width or 1))
    raise ValueError(f"marker symbol {kind!r} is not drawn as SVG: add it to traces.py")


Pixel = tuple[float, float]


def trace(one: Any, plane: Plane, *, name: str, clip: str) -> Iterator[str]:
    """A scatter trace; `name` is unique in the document, `clip` the id of the plot's outline.

    Raises:
        ValueError: For a trace or a mark that is not drawn here: nothing is left out silently.
    """
    if one.type != "scatter":
        raise ValueError(f"a trace of type {one.type!r} is not drawn as SVG: scatter is")
    if one.visible is False:
        return
    modes = (one.mode or "lines").split("+")
    parts = [*_band(one, plane, name), *(_line(one, plane) if "lines" in modes else ()), *_whiskers(one, plane)]
    marks = list(_marks(one, plane)) if "markers" in modes else []
    outline = None if one.cliponaxis is False else f"url(#{clip})"
    if parts or marks:
        yield element("g", *parts, *marks, clip_path=outline, opacity=_share(one.opacity))


def stretches(one: Any, plane: Plane) -> list[list[Pixel]]:
    """Its points in pixels, parted where one has no place."""
    found: list[list[Pixel]] = [[]]
    for x, y in zip(one.x, one.y, strict=True):
        here = plane.x.pixel(_number(x)), plane.y.pixel(_number(y))
        if here[0] is None or here[1] is None:
            found.append([])
        else:
            found[-1].append((here[0], here[1]))
    return [stretch for stretch in found if stretch]


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _band(one: Any, plane: Plane, name: str) -> Iterator[str]:
    if one.fill is None or one.fill == "none":
        return
    if one.fill != "toself":
        raise ValueError(f"fill={one.fill!r} is not drawn as SVG: toself is")
    data = "".join(path(stretch, is_closed=True) for stretch in stretches(one, plane))
    if not data:
        return
    if one.fillgradient.type is None:
        yield element("path", d=data, fill=one.fillcolor, stroke="none")
    else:
        yield _gradient(one.fillgradient.colorscale, f"{name}-fade")
        yield element("path", d=data, fill=f"url(#{name}-fade)", stroke="none")


def _gradient(scale: Sequence[tuple[float, str]], name: str) -> str:
    # plotly's vertical gradient begins at the bottom of what it fills
    stops = [element("stop", offset=str(share), stop_color=color) for share, color in scale]
    return element("linearGradient", *stops, id=name, x1="0", x2="0", y1="1", y2="0")


def _line(one: Any, plane: Plane) -> Iterator[str]:
    width = 2 if one.line.width is None else one.line.width
    if not width:
        return
    shape = one.line.shape or "linear"
    if shape not in ("linear", "hv"):
        raise ValueError(f"line shape {shape!r} is not drawn as SVG: linear and hv are")
    parts = [_steps(stretch) if shape == "hv" else stretch for stretch in stretches(one, plane)]
    data = "".join(path(stretch) for stretch in parts if len(stretch) > 1)
    if data:
        yield element(
            "path", d=data, fill="none", stroke=one.line.color, stroke_width=float(width), stroke_linejoin="round",
            stroke_dasharray=dashes(one.line.dash),
        )  # fmt: skip


def dashes(dash: str | None) -> str | None:
    """Plotly's `dash` as SVG writes it; None for a solid line."""
    named = {"dot": "2,3", "dash": "7,4", "dashdot": "7,3,2,3"}
    return None if dash in (None, "solid") else named.get(dash or "", (dash or "").replace("px", ""))


def _steps(points: list[Pixel]) -> list[Pixel]:
    corners = [[before, (after[0], before[1])] for before, after in itertools.pairwise(points)]
    return [*itertools.chain.from_iterable(corners), points[-1]]


def _whiskers(one: Any, plane: Plane) -> Iterator[str]:
    for x, y, up, down in _reaches(one, one.error_y):
        if y is not None:
            yield from _whisker(one.error_y, plane, (x, y - down), (x, y + up))
    for x, y, up, down in _reaches(one, one.error_x):
        if x is not None:
            yield from _whisker(one.error_x, plane, (x - down, y), (x + up, y))


def _reaches(one: Any, error: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
    if error.array is None:
        return iter(())
    below = error.array if error.arrayminus is None else error.arrayminus
    return zip(one.x, one.y, error.array, below, strict=True)


def _whisker(error: Any, plane: Plane, *ends: tuple[Any, Any]) -> Iterator[str]:
    (x1, y1), (x2, y2) = ((plane.x.pixel(_number(x)), plane.y.pixel(_number(y))) for x, y in ends)
    if None not in (x1, y1, x2, y2):
        yield element("line", x1=x1, x2=x2, y1=y1, y2=y2, stroke=error.color, stroke_width=error.thickness)


def _marks(one: Any, plane: Plane) -> Iterator[str]:
    marker = one.marker
    for number, (x, y) in enumerate(zip(one.x, one.y, strict=True)):
        at = plane.x.pixel(_number(x)), plane.y.pixel(_number(y))
        if at[0] is None or at[1] is None:
            continue
        yield symbol(
            _of(marker.symbol, number) or "circle",
            (at[0], at[1]),
            size=float(_of(marker.size, number) or 6),
            color=_of(marker.color, number),
            ring=(_of(marker.line.width, number) or 0, _of(marker.line.color, number)),
        )


def _of(value: Any, number: int) -> Any:
    return value[number] if isinstance(value, list | tuple) else value


def _share(opacity: float | None) -> str | None:
    return None if opacity is None or math.isclose(opacity, 1) else f"{opacity:g}"
