"""The metric of each batch size under three budgets, as a difference from the smallest batch size."""

from collections.abc import Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.sweeps import Quality, QualityPoint
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import LIGHT, blank_figure
from noisescale_dashboard.words.number_format import count, significant

HEIGHT = 250
BUDGET_WORDS = {"equal_steps": "equal steps", "equal_examples": "equal examples", "large_budget": "large budget"}
SYMBOLS = {"equal_steps": "square", "equal_examples": "diamond", "large_budget": "circle"}
COLORS = {"equal_steps": LIGHT.text_3, "equal_examples": LIGHT.text_2, "large_budget": LIGHT.text_1}
SIDE_STEP = 0.035
"""Decades between the marks of two budgets at one batch size, so that none covers another."""


def large_batch_quality(comparisons: Sequence[Quality], *, unit: str, narrow: bool) -> go.Figure:
    """Metric minus that of the smallest batch size, with 95 % whiskers, over the batch size (`unit`, log)."""
    figure = blank_figure(height=HEIGHT, right=16, top=12, bottom=40, left=58)
    figure.update_layout(hovermode="closest", hoverdistance=14)
    sizes = [point.batch_size for one in comparisons for point in one.points] or [1.0]
    axes.set_batch_axis(figure, min(sizes) / 1.6, max(sizes) * 1.6, at_most=4 if narrow else 8)
    figure.update_yaxes(tickformat="~g", nticks=6)
    figure.add_hline(y=0, line={"color": LIGHT.axis, "width": 1}, layer="below")
    for place, one in enumerate(comparisons):
        _add_budget(figure, one, 10 ** (SIDE_STEP * (place - 1)), unit)
    labels.write_x_title(figure, f"batch size, {labels.plain(unit)}")
    attach_table(figure, _columns(comparisons, unit))
    return figure


def _add_budget(figure: go.Figure, one: Quality, aside: float, unit: str) -> None:
    points = [point for point in one.points if difference(point, one) is not None]
    values = [difference(point, one) or 0.0 for point in points]
    color = COLORS.get(one.budget, LIGHT.text_2)
    low, high = [point.difference.low for point in points], [point.difference.high for point in points]
    figure.add_scatter(
        x=[point.batch_size * aside for point in points], y=values, name=BUDGET_WORDS.get(one.budget, one.budget),
        mode="markers", error_y=marks.whiskers(values, low, high, color),
        marker=marks.ringed(color) | {"symbol": SYMBOLS.get(one.budget, "circle")},
        customdata=[
            [count(p.batch_size), significant(p.mean, 4), significant(v), p.num_seeds]
            for p, v in zip(points, values, strict=True)
        ],
        hovertemplate=f"batch <b>%{{customdata[0]}}</b> {labels.plain(unit)}, {BUDGET_WORDS.get(one.budget, '')}<br>"
        "metric <b>%{customdata[1]}</b>, %{customdata[2]} from the smallest batch, %{customdata[3]} seeds"
        "<extra></extra>",
    )  # fmt: skip


def difference(point: QualityPoint, one: Quality) -> float | None:
    """The point's metric minus that of the smallest batch size; 0 there."""
    if point.difference.value is not None:
        return point.difference.value
    return point.mean - one.points[0].mean if one.points else None


def _columns(comparisons: Sequence[Quality], unit: str) -> dict[str, list[float | str | bool | None]]:
    """A row a budget and batch size."""
    rows = [(one, point) for one in comparisons for point in one.points]
    return {
        "budget": [BUDGET_WORDS.get(one.budget, one.budget) for one, _ in rows],
        "at": [one.at for one, _ in rows],
        f"batch size ({unit})": [point.batch_size for _, point in rows],
        "learning rate": [point.lr for _, point in rows],
        "seeds": [point.num_seeds for _, point in rows],
        "metric": [point.mean for _, point in rows],
        "standard error": [point.standard_error for _, point in rows],
        "difference from the smallest": [point.difference.value for _, point in rows],
        "difference, lower end": [point.difference.low for _, point in rows],
        "difference, upper end": [point.difference.high for _, point in rows],
        "is still improving": [point.is_still_improving for _, point in rows],
    }
