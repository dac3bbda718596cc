"""The training loss with the smallest and largest value of each point's steps, and losses logged beside it."""

import bisect
import math
from collections.abc import Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.series import Metric, NoiseScaleSeries, Points
from noisescale_dashboard.figures.over_training.noise_scale_over_training import SeriesView
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table, loss_columns
from noisescale_dashboard.figures.parts.theme import LIGHT, blank_figure
from noisescale_dashboard.words.number_format import significant, span

# Metrics that were logged beside the gradients, drawn over training as points on a thin line.

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


HEIGHT = 232
RIGHT = 56


def loss_over_training(series: NoiseScaleSeries, view: SeriesView, metrics: Sequence[Metric] = ()) -> go.Figure:
    """The loss over `view.kind`, with those `metrics` that are losses; against loss itself it is drawn over steps."""
    points, logged = series.points, losses(metrics)
    kind = "step" if view.kind == "loss" else view.kind
    along = axes.progress(points, kind, unit=view.unit, units_per_example=series.units_per_example)
    ends = _end_labels(series, logged)
    figure = blank_figure(height=HEIGHT, right=labels.room_for(ends, at_least=RIGHT), top=10, bottom=40)
    figure.update_layout(uirevision=view.revision)
    axes.set_progress_axis(figure, along, is_live=view.is_live, is_zoomed=view.is_zoomed, narrow=True)
    low, high = _set_loss_axis(figure, series, logged)
    marks.add_band(
        figure, along.at, points.loss_min, points.loss_max, LIGHT.text_3, marks.ENVELOPE_OPACITY, name="min–max"
    )
    _add_loss(figure, series, along)
    add_metrics(figure, logged, points, along)
    labels.write_end_labels(figure, ends, low=low, high=high, is_log=is_log(series, logged))
    labels.write_x_title(figure, along.title)
    attach_table(figure, loss_columns(series, logged))
    return figure


def is_log(series: NoiseScaleSeries, metrics: Sequence[Metric] = ()) -> bool:
    """Whether the losses span more than one decade, so that their axis is logarithmic."""
    known = _known(series.points.loss, *(metric.value for metric in losses(metrics)))
    return bool(known) and min(known) > 0 and max(known) / min(known) > 10


def _known(*columns: Sequence[float | None]) -> list[float]:
    return [value for column in columns for value in column if value is not None]


def _add_loss(figure: go.Figure, series: NoiseScaleSeries, along: axes.Progress) -> None:
    points = series.points
    figure.add_scatter(
        x=along.at, y=points.loss, name="loss", mode=marks.line_of(points.loss),
        line={"color": LIGHT.text_2, "width": 1.75},
        customdata=[
            [significant(loss, 4), f"  min–max {span(least, most)}" if least != most else ""]
            for loss, least, most in zip(points.loss, points.loss_min, points.loss_max, strict=True)
        ],
        hovertemplate="loss <b>%{customdata[0]}</b>%{customdata[1]}<extra></extra>",
    )  # fmt: skip


def _set_loss_axis(figure: go.Figure, series: NoiseScaleSeries, logged: Sequence[Metric]) -> tuple[float, float]:
    points = series.points
    known = _known(points.loss_min, points.loss_max, points.loss, *(metric.value for metric in logged))
    if is_log(series, logged):
        low, high = axes.log_range(*(axes.quantiles(known) or (0.1, 10.0)))
        axes.set_log_axis(figure, low, high)
        return low, high
    low, high = _linear_range(known)
    figure.update_yaxes(range=[low, high], nticks=6, tickformat="~g")
    return low, high


def _linear_range(known: list[float]) -> tuple[float, float]:
    if not known:
        return 0.0, 1.0
    least, most = min(known), max(known)
    room = 10.0 ** math.floor(math.log10((most - least) or 1.0)) / 2
    return math.floor(least / room) * room, math.ceil(most / room) * room


def _end_labels(series: NoiseScaleSeries, logged: Sequence[Metric]) -> list[labels.EndLabel]:
    last = next((v for v in reversed(series.points.loss) if v is not None), None)
    beside = end_labels(logged)
    if last is None:
        return beside
    # the name is needed only where another loss stands beside it
    return [labels.EndLabel(last, f"<b>{significant(last, 4)}</b>", LIGHT.text_2, "loss" if beside else None), *beside]
