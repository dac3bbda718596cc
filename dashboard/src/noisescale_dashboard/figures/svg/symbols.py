"""The marks of points: each with its own shape, so that a print without colours can be read."""

from noisescale_dashboard.figures.svg.markup import element, path

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
    raise ValueError(f"marker symbol {kind!r} is not drawn as SVG: add it to symbols.py")
