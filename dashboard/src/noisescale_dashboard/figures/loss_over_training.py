"""The training loss with the smallest and largest value of each point's steps."""

import math

import plotly.graph_objects as go

from noisescale_dashboard.answers import NoiseScaleSeries
from noisescale_dashboard.figures import axes, labels, marks
from noisescale_dashboard.figures.noise_scale_over_training import View
from noisescale_dashboard.figures.theme import LIGHT, blank_figure
from noisescale_dashboard.number_format import significant, span

HEIGHT = 232


def loss_over_training(series: NoiseScaleSeries, view: View) -> go.Figure:
    """The loss over `view.kind`; against loss itself it is drawn over steps, which is what remains."""
    points = series.points
    kind = "step" if view.kind == "loss" else view.kind
    along = axes.progress(points, kind, unit=view.unit, units_per_example=series.units_per_example)
    figure = blank_figure(height=HEIGHT, right=18 if view.narrow else 56, top=10, bottom=40)
    figure.update_layout(uirevision=view.revision)
    axes.set_progress_axis(figure, along, is_live=view.is_live, is_zoomed=view.is_zoomed, narrow=True)
    low, high = _set_loss_axis(figure, series)
    marks.add_band(
        figure, along.at, points.loss_min, points.loss_max, LIGHT.text_3, marks.ENVELOPE_OPACITY, name="min–max"
    )
    figure.add_scatter(
        x=along.at, y=points.loss, name="loss", mode="lines", line={"color": LIGHT.text_2, "width": 1.75},
        customdata=[
            [significant(loss, 4), span(least, most)]
            for loss, least, most in zip(points.loss, points.loss_min, points.loss_max, strict=True)
        ],
        hovertemplate="loss <b>%{customdata[0]}</b>  min–max %{customdata[1]}<extra></extra>",
    )  # fmt: skip
    _write_last(figure, series, view, low=low, high=high)
    if not view.narrow:
        labels.write_x_title(figure, along.title)
    return figure


def is_log(series: NoiseScaleSeries) -> bool:
    """Whether the loss spans more than one decade, so that its axis is logarithmic."""
    known = [v for v in series.points.loss if v is not None]
    return bool(known) and min(known) > 0 and max(known) / min(known) > 10


def _set_loss_axis(figure: go.Figure, series: NoiseScaleSeries) -> tuple[float, float]:
    known = [v for v in (*series.points.loss_min, *series.points.loss_max, *series.points.loss) if v is not None]
    if is_log(series):
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


def _write_last(figure: go.Figure, series: NoiseScaleSeries, view: View, *, low: float, high: float) -> None:
    last = next((v for v in reversed(series.points.loss) if v is not None), None)
    if last is None or view.narrow:
        return
    label = labels.EndLabel(last, f"<b>{significant(last)}</b>", LIGHT.text_2)
    labels.write_end_labels(figure, [label], low=low, high=high, is_log=is_log(series))
