"""The noise scale of runs over that of a first one, where both have come equally far."""

from collections.abc import Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.comparisons import Ratio
from noisescale_dashboard.figures.comparison.runs_side_by_side import (
    Axes,
    RunMark,
    along_axis,
    positions,
    x_column,
    x_words,
)
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import LIGHT, blank_figure
from noisescale_dashboard.words.number_format import significant, span

HEIGHT = 226
TENTATIVE_OPACITY = 0.5
LEAST_REACH = 1.5
TALLEST = 30.0
NOTHING_TO_COMPARE = "No other run counts in the same unit"


def noise_scale_ratio(ratios: Sequence[Ratio], looks: Sequence[RunMark], by: Axes, *, reference: str) -> go.Figure:
    """The ratio to the run named `reference` over `by.x`, log, with 95 % bands; on the line at 1 they are equal."""
    figure = blank_figure(height=HEIGHT, right=16, top=10, bottom=40)
    figure.update_layout(hovermode="closest", hoverdistance=14, uirevision=by.x)
    if not ratios:
        labels.say_nothing(figure, NOTHING_TO_COMPARE)
        return figure
    along = along_axis([ratio.x for ratio in ratios], by.x, unit=by.unit)
    axes.set_progress_axis(figure, along, is_live=any(look.is_live for look in looks), is_zoomed=False, narrow=True)
    figure.update_xaxes(showspikes=False)
    reach = _reach(ratios)
    axes.set_log_axis(figure, 1 / reach, reach)
    figure.add_hline(y=1, line={"color": LIGHT.axis, "width": 1.25}, layer="below")
    for ratio, look in zip(ratios, looks, strict=True):
        _add_ratio(figure, ratio, look, along, by, reference)
    labels.write_x_title(figure, along.title)
    attach_table(figure, _columns(ratios, looks, by))
    return figure


def _reach(ratios: Sequence[Ratio]) -> float:
    """How far the axis goes to both sides of 1: over all values, and over intervals that do not run off."""
    known = [v for ratio in ratios for column in (ratio.value, ratio.low, ratio.high) for v in column if v]
    values = [v for ratio in ratios for v in ratio.value if v]
    furthest = max((max(v, 1 / v) for v in values), default=1.0)
    ends = max((max(v, 1 / v) for v in known), default=1.0)
    return 1.15 * max(LEAST_REACH, furthest, min(ends, 2 * furthest, TALLEST))


def _add_ratio(figure: go.Figure, ratio: Ratio, look: RunMark, along: axes.Progress, by: Axes, reference: str) -> None:
    x = positions(ratio.x, along)
    marks.add_band(figure, x, ratio.low, ratio.high, look.color, 0.14, name="interval")
    head = f"<b>{labels.plain(look.name)}</b> ÷ {labels.plain(reference)}"
    figure.add_scatter(
        x=x, y=ratio.value, name=look.name, mode="lines", opacity=TENTATIVE_OPACITY,
        line={"color": look.color, "width": 2},
        customdata=[
            [f"{head}<br>{x_words(at, by)}<br>noise scales: <b>{significant(value, 2)}</b> × [{span(low, high)}]"]
            for at, value, low, high in zip(ratio.x, ratio.value, ratio.low, ratio.high, strict=True)
        ],
        hovertemplate="%{customdata[0]}<extra></extra>",
    )  # fmt: skip
    sure = [value if known else None for value, known in zip(ratio.value, ratio.is_resolved, strict=True)]
    figure.add_scatter(
        x=x, y=sure, name=f"{look.name}, resolved", mode="lines", hoverinfo="skip",
        line={"color": look.color, "width": 2},
    )  # fmt: skip


def _columns(ratios: Sequence[Ratio], looks: Sequence[RunMark], by: Axes) -> dict[str, list[float | str | bool | None]]:
    rows = [(look, ratio, i) for ratio, look in zip(ratios, looks, strict=True) for i in range(len(ratio.x))]
    return {
        "run": [look.name for look, _, _ in rows],
        x_column(by): [ratio.x[i] for _, ratio, i in rows],
        "ratio of noise scales": [ratio.value[i] for _, ratio, i in rows],
        "lower end": [ratio.low[i] for _, ratio, i in rows],
        "upper end": [ratio.high[i] for _, ratio, i in rows],
        "resolved": [ratio.is_resolved[i] for _, ratio, i in rows],
    }
