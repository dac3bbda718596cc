"""Marks that several figures share: interval bands, end dots, runs of neighbouring points."""

from collections.abc import Callable, Iterator, Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.laws import LawPoint
from noisescale_dashboard.figures.parts.theme import LIGHT, translucent
from noisescale_dashboard.words.number_format import significant, span

INTERVAL_OPACITY = 0.2
ENVELOPE_OPACITY = 0.1
FAINT_OPACITY = 0.07
"""Of an envelope behind an interval band of its own colour."""

Maybe = Sequence[float | None]


def stretches(length: int, belongs: Callable[[int], bool]) -> Iterator[range]:
    """Maximal runs of neighbouring indices that belong."""
    start: int | None = None
    for index in range(length + 1):
        inside = index < length and belongs(index)
        if inside and start is None:
            start = index
        elif not inside and start is not None:
            yield range(start, index)
            start = None


def line_of(values: Maybe) -> str:
    """How plotly draws a line of these values: of one value alone there is no line, but a dot."""
    return "markers" if sum(value is not None for value in values) == 1 else "lines"


def add_band(figure: go.Figure, x: Maybe, low: Maybe, high: Maybe, color: str, opacity: float, *, name: str) -> None:
    """Fill between `low` and `high`, with a gap wherever one of the three is unknown: one trace of closed shapes."""

    def is_known(i: int) -> bool:
        return x[i] is not None and low[i] is not None and high[i] is not None

    xs: list[float | None] = []
    ys: list[float | None] = []
    for part in stretches(len(x), is_known):
        xs += [*(x[i] for i in part), *(x[i] for i in reversed(part)), None]
        ys += [*(high[i] for i in part), *(low[i] for i in reversed(part)), None]
    figure.add_scatter(
        x=xs, y=ys, name=name, mode="lines", line={"width": 0}, fill="toself",
        fillcolor=translucent(color, opacity), hoverinfo="skip",
    )  # fmt: skip


def whiskers(values: Sequence[float], low: Maybe, high: Maybe, color: str) -> dict[str, object]:
    """Error bars from `low` to `high` around `values`, without caps; where an end is not known none is drawn."""
    return {
        "type": "data",
        "symmetric": False,
        "thickness": 1.5,
        "width": 0,
        "color": color,
        "array": [(end if end is not None else value) - value for value, end in zip(values, high, strict=True)],
        "arrayminus": [value - (end if end is not None else value) for value, end in zip(values, low, strict=True)],
    }


def ringed(color: str, *, size: int = 9, is_open: Sequence[bool] = ()) -> dict[str, object]:
    """Dots with a ring in the panel's colour; those that are open have it the other way round."""
    if not is_open:
        return {"size": size, "color": color, "line": {"width": 2, "color": LIGHT.panel}}
    return {
        "size": size,
        "color": [LIGHT.panel if empty else color for empty in is_open],
        "line": {"width": 2, "color": [color if empty else LIGHT.panel for empty in is_open]},
    }


def add_end_dot(figure: go.Figure, x: float, y: float, color: str, *, symbol: str = "circle") -> None:
    """Mark the last value with a dot that has a ring in the panel's colour."""
    figure.add_scatter(
        x=[x], y=[y], mode="markers", hoverinfo="skip", cliponaxis=False, name="last value",
        marker={"size": 9, "color": color, "symbol": symbol, "line": {"width": 2, "color": LIGHT.panel}},
    )  # fmt: skip


# A fitted law with the band of its curve: solid over the data, dotted where it forecasts.

OPACITY = 0.13


def add_law(
    figure: go.Figure,
    law: Sequence[LawPoint],
    color: str,
    *,
    across: tuple[str, Callable[[float], str]],
    value_name: str,
    unit: str = "",
) -> None:
    """Draw a law.

    Args:
        figure: Where to.
        law: Points of it, in order of x; none draws nothing.
        color: Of its quantity, in the light palette.
        across: Word for x, and how to write one.
        value_name: Word for the value.
        unit: Its unit, escaped.
    """
    if not law:
        return
    low, high = [point.low for point in law], [point.high for point in law]
    add_band(figure, [point.x for point in law], low, high, color, OPACITY, name="interval of the law")
    word, written = across
    known = [point for point in law if not point.is_extrapolated]
    for dash, points in (("3px,3px", law), ("solid", known)):
        figure.add_scatter(
            x=[point.x for point in points], y=[point.value for point in points], name=f"law, {dash}", mode="lines",
            line={"color": color, "width": 1.75, "dash": dash},
            customdata=[
                [written(p.x), significant(p.value), span(p.low, p.high), ", forecast" * p.is_extrapolated]
                for p in points
            ],
            hovertemplate=f"{word} %{{customdata[0]}}, law%{{customdata[3]}}<br>{value_name} <b>%{{customdata[1]}}</b> "
            f"{unit} [%{{customdata[2]}}]<extra></extra>",
        )  # fmt: skip
