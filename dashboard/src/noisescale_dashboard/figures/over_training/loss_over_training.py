"""The training loss with the smallest and largest value of each point's steps, and losses logged beside it."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.series import Metric, NoiseScaleSeries
from noisescale_dashboard.figures.over_training import logged_metrics
from noisescale_dashboard.figures.over_training.noise_scale_over_training import SeriesView
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.series_tables import loss_columns
from noisescale_dashboard.figures.parts.theme import LIGHT, blank_figure
from noisescale_dashboard.words.number_format import significant, span

HEIGHT = 232
RIGHT = 56


def loss_over_training(series: NoiseScaleSeries, view: SeriesView, metrics: Sequence[Metric] = ()) -> go.Figure:
    """The loss over `view.kind`, with those `metrics` that are losses; against loss itself it is drawn over steps."""
    points, logged = series.points, logged_metrics.losses(metrics)
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
    logged_metrics.add_metrics(figure, logged, points, along)
    labels.write_end_labels(figure, ends, low=low, high=high, is_log=is_log(series, logged))
    labels.write_x_title(figure, along.title)
    attach_table(figure, loss_columns(series, logged))
    return figure


def is_log(series: NoiseScaleSeries, metrics: Sequence[Metric] = ()) -> bool:
    """Whether the losses span more than one decade, so that their axis is logarithmic."""
    known = _known(series.points.loss, *(metric.value for metric in logged_metrics.losses(metrics)))
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
    beside = logged_metrics.end_labels(logged)
    if last is None:
        return beside
    # the name is needed only where another loss stands beside it
    return [labels.EndLabel(last, f"<b>{significant(last, 4)}</b>", LIGHT.text_2, "loss" if beside else None), *beside]
