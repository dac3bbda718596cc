"""How much of each example and of each step was used over training, and what was redundant between."""

from collections.abc import Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.series import NoiseScaleSeries, Points
from noisescale_dashboard.figures.over_training.noise_scale_over_training import SeriesView
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import LIGHT, blank_figure
from noisescale_dashboard.words.number_format import share, share_span

HEIGHT = 232
WASTE_OPACITY = 0.14
Shares = list[float | None]


def efficiency_over_training(series: NoiseScaleSeries, view: SeriesView) -> go.Figure:
    """Example efficiency φ / (φ + B) with its 95 % band, step efficiency B / (φ + B); shaded above: redundant examples.

    Source: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11 at B_crit = φ. Points that are not resolved leave a gap.
    """
    points = series.points
    along = axes.progress(points, view.kind, unit=view.unit, units_per_example=series.units_per_example)
    figure = blank_figure(height=HEIGHT, right=66 if view.narrow else 72, top=10, bottom=40)
    figure.update_layout(uirevision=view.revision)
    axes.set_progress_axis(figure, along, is_live=view.is_live, is_zoomed=view.is_zoomed, narrow=True)
    figure.update_yaxes(range=[0, 1], tickvals=[0, 0.25, 0.5, 0.75, 1], tickformat=".0%")
    used, low, high = (_example_efficiency(points, noise) for noise in (points.value, points.low, points.high))
    ends = [None if v is None else 1.0 for v in used]
    marks.add_band(figure, along.at, used, ends, LIGHT.batch, WASTE_OPACITY, name="redundant examples")
    marks.add_band(figure, along.at, low, high, LIGHT.text_1, marks.INTERVAL_OPACITY, name="interval")
    _add_lines(figure, along, used, low, high)
    _write_ends(figure, used)
    labels.write_x_title(figure, along.title)
    attach_table(
        figure,
        {
            "step": points.step, "example efficiency": used, "example efficiency, lower end": low,
            "example efficiency, upper end": high, "step efficiency": _rest(used),
        },
    )  # fmt: skip
    return figure


def _example_efficiency(points: Points, noise: Sequence[float | None]) -> Shares:
    """The share at each point with a value; an end of an interval gives that end, as the share rises with φ."""
    return [
        phi / (phi + batch) if value is not None and phi and batch else None
        for value, phi, batch in zip(points.value, noise, points.global_batch, strict=True)
    ]


def _rest(used: Shares) -> Shares:
    return [None if v is None else 1 - v for v in used]


def _add_lines(figure: go.Figure, along: axes.Progress, used: Shares, low: Shares, high: Shares) -> None:
    figure.add_scatter(
        x=along.at, y=used, name="example efficiency", mode="lines", line={"color": LIGHT.text_1, "width": 2},
        connectgaps=False, customdata=[[share(v), share_span(*e)] for v, *e in zip(used, low, high, strict=True)],
        hovertemplate="uses <b>%{customdata[0]}</b> of each example  [%{customdata[1]}]<extra></extra>",
    )  # fmt: skip
    figure.add_scatter(
        x=along.at, y=_rest(used), name="step efficiency", mode="lines", connectgaps=False,
        line={"color": LIGHT.text_3, "width": 1.5, "dash": "4px,3px"}, customdata=[[share(v)] for v in _rest(used)],
        hovertemplate="and <b>%{customdata[0]}</b> of the best possible step<extra></extra>",
    )  # fmt: skip


def _write_ends(figure: go.Figure, used: Shares) -> None:
    last = next((v for v in reversed(used) if v is not None), None)
    if last is None:
        return
    ends = [
        labels.EndLabel(last, f"<b>{share(last)}</b>", LIGHT.text_1, "examples"),
        labels.EndLabel(1 - last, f"<b>{share(1 - last)}</b>", LIGHT.text_3, "steps"),
    ]
    labels.write_end_labels(figure, ends, low=0, high=1, is_log=False)
