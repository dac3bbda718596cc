"""Metrics that were logged beside the gradients, drawn over training as points on a thin line."""

import bisect
from collections.abc import Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.series import Metric, Points
from noisescale_dashboard.figures.parts import axes, labels
from noisescale_dashboard.figures.parts.theme import LIGHT
from noisescale_dashboard.words.number_format import significant

SYMBOLS = ("circle", "diamond", "triangle-up", "square")
"""One a metric; more metrics than these are not drawn into one figure."""
MAX_DOTS = 60
"""More points than this would run into each other: the line alone is drawn."""
NAME_LIMIT = 14


def losses(metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    """Those that may stand beside the training loss: their name holds "loss". At most one a symbol."""
    found = [m for m in metrics if "loss" in m.name.lower() and m.last is not None]
    return tuple(found[: len(SYMBOLS)])


def positions(metric: Metric, points: Points, along: axes.Progress) -> list[float | None]:
    """Where on the axis `along` each value stands; None where that is not known.

    Steps and times are the metric's own. Units seen are those of the series at the metric's step, between two points on
    a straight line; before its first and after its last point they are unknown.
    """
    if along.kind == "time":
        return [along.place(t) for t in metric.wall_time]
    if along.kind == "units":
        return [_between(step, points.step, along.at) for step in metric.step]
    return [float(step) for step in metric.step]


def _between(step: int, steps: Sequence[int], at: Sequence[float | None]) -> float | None:
    after = bisect.bisect_left(steps, step)
    if after == len(steps) or (after == 0 and steps[0] != step):
        return None
    if steps[after] == step:
        return at[after]
    left, right = at[after - 1], at[after]
    if left is None or right is None:
        return None
    return left + (right - left) * (step - steps[after - 1]) / (steps[after] - steps[after - 1])


def add_metrics(figure: go.Figure, metrics: Sequence[Metric], points: Points, along: axes.Progress) -> None:
    """Draw `metrics`, each with a symbol of its own."""
    for metric, symbol in zip(metrics, SYMBOLS, strict=False):
        figure.add_scatter(
            x=positions(metric, points, along), y=metric.value, name=f"metric {labels.plain(metric.name)}",
            mode="lines+markers" if len(metric.step) <= MAX_DOTS else "lines", cliponaxis=False,
            line={"color": LIGHT.text_1, "width": 1},
            marker={"color": LIGHT.text_1, "size": 6, "symbol": symbol, "line": {"width": 1, "color": LIGHT.panel}},
            customdata=[[labels.plain(metric.name, 24), significant(value, 4)] for value in metric.value],
            hovertemplate="%{customdata[0]} <b>%{customdata[1]}</b><extra></extra>",
        )  # fmt: skip


def end_labels(metrics: Sequence[Metric]) -> list[labels.EndLabel]:
    """Last value and name of each."""
    return [
        labels.EndLabel(last[1], f"<b>{significant(last[1], 4)}</b>", LIGHT.text_1, labels.plain(name, NAME_LIMIT))
        for name, last in ((metric.name, metric.last) for metric in metrics)
        if last is not None
    ]
