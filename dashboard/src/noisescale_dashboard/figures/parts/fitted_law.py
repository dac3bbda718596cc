"""A fitted law with the band of its curve: solid over the data, dotted where it forecasts."""

from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.laws import LawPoint
from noisescale_dashboard.figures.parts import marks
from noisescale_dashboard.words.number_format import significant, span

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
    marks.add_band(figure, [point.x for point in law], low, high, color, OPACITY, name="interval of the law")
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
