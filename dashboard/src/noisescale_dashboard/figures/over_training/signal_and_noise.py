"""The two terms of the noise scale over training, the noise and the signal: tr Σ and |G|² of kind simple."""

import plotly.graph_objects as go

from noisescale_dashboard.answers.common import Numbers
from noisescale_dashboard.answers.series import NoiseScaleSeries
from noisescale_dashboard.figures.over_training.noise_scale_over_training import SeriesView
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table, term_columns
from noisescale_dashboard.figures.parts.theme import LIGHT, blank_figure
from noisescale_dashboard.words.number_format import significant

HEIGHT = 232
NORMAL_95 = 1.96
BAND_OPACITY = 0.13
FITTING_CHARACTERS, PIXELS_A_CHARACTER = 4, 5
"""Labels longer than tr Σ need a wider margin."""


def signal_and_noise(series: NoiseScaleSeries, view: SeriesView) -> go.Figure:
    """Noise and signal (tr Σ and |G|² in squared gradient, log) with 95 % bands; estimates ≤ 0 leave a gap."""
    points = series.points
    along = axes.progress(points, view.kind, unit=view.unit, units_per_example=series.units_per_example)
    room = PIXELS_A_CHARACTER * max(0, max(map(len, view.terms)) - FITTING_CHARACTERS)
    figure = blank_figure(height=HEIGHT, right=(44 if view.narrow else 56) + room, top=10, bottom=40)
    figure.update_layout(uirevision=view.revision)
    axes.set_progress_axis(figure, along, is_live=view.is_live, is_zoomed=view.is_zoomed, narrow=True)
    ends = axes.typical_range([*points.trace_cov, *points.grad_sq_norm]) or (0.1, 10.0)
    low, high = axes.log_range(*ends)
    axes.set_log_axis(figure, low, high)
    noise, signal = view.terms
    terms = (
        (noise, points.trace_cov, points.trace_cov_se, LIGHT.text_1),
        (signal, points.grad_sq_norm, points.grad_sq_norm_se, LIGHT.text_3),
    )
    ends_of_lines = []
    for name, values, errors, color in terms:
        _add_term(figure, along, name, values, errors, color, bottom=low)
        last = next((v for v in reversed(values) if v is not None and v > 0), None)
        if last is not None:
            ends_of_lines.append(labels.EndLabel(last, f"<b>{name}</b>", color))
    labels.write_end_labels(figure, ends_of_lines, low=low, high=high, is_log=True)
    labels.write_x_title(figure, along.title)
    if not ends_of_lines:
        labels.say_nothing(figure, "Neither term is measured yet")
    attach_table(figure, term_columns(series, view.terms))
    return figure


def num_not_positive(series: NoiseScaleSeries) -> int:
    """How many points have a |G|² estimate that a logarithmic axis cannot show."""
    return sum(1 for value in series.points.grad_sq_norm if value is not None and value <= 0)


def _add_term(
    figure: go.Figure, along: axes.Progress, name: str, values: Numbers, errors: Numbers, color: str, *, bottom: float
) -> None:
    drawn = [v if v is not None and v > 0 else None for v in values]
    margins = [NORMAL_95 * e if e is not None else None for e in errors]
    low = [None if v is None or m is None else max(v - m, bottom / 2) for v, m in zip(drawn, margins, strict=True)]
    high = [None if v is None or m is None else v + m for v, m in zip(drawn, margins, strict=True)]
    is_scattered = along.kind == "loss"
    if not is_scattered:
        marks.add_band(figure, along.at, low, high, color, BAND_OPACITY, name=f"{name} interval")
    figure.add_scatter(
        x=along.at, y=drawn, name=name, mode="markers" if is_scattered else marks.line_of(drawn),
        line={"color": color, "width": 1.75}, marker={"size": 4, "color": color},
        customdata=[f"{significant(v)} ± {significant(m)}" for v, m in zip(drawn, margins, strict=True)],
        hovertemplate=f"{name} <b>%{{customdata}}</b><extra></extra>",
    )  # fmt: skip
