"""How far a run's learning rate is from the best one, over training: too low, right or too high."""

import plotly.graph_objects as go

from noisescale_dashboard.answers.series import RateAtStep, RateVerdict
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, blank_figure, translucent
from noisescale_dashboard.words.number_format import significant, span

HEIGHT = 232
FARTHEST = 4
"""Octaves that are always shown; a verdict reaches to three, its interval may go on."""

ROOM_FOR_WORDS = 62
"""Right of the axis, where no line runs through them; in pixels."""

RIGHT = 1.0
"""Octaves within which a rate is as good as right: a factor 2."""

TICKS = {-3: "÷ 8", -2: "÷ 4", -1: "÷ 2", 0: "best", 1: "× 2", 2: "× 4", 3: "× 8"}


def learning_rate_over_training(found: RateVerdict, *, narrow: bool) -> go.Figure:
    """log₂(rate ÷ best rate) with its 95 % band over the steps; shaded where it is within a factor 2 of the best."""
    figure = blank_figure(height=HEIGHT, right=ROOM_FOR_WORDS, top=10, bottom=40, left=52)
    points = [point for point in found.points if point.octaves is not None]
    steps = [float(point.step) for point in found.points]
    along = axes.Progress("step", tuple(steps), "optimizer step", "step %{x:,.0f}")
    axes.set_progress_axis(figure, along, is_live=False, is_zoomed=False, narrow=narrow)
    figure.update_yaxes(range=[-FARTHEST, FARTHEST], tickvals=list(TICKS), ticktext=list(TICKS.values()))
    figure.add_hrect(y0=-RIGHT, y1=RIGHT, fillcolor=translucent(LIGHT.noise, 0.1), line={"width": 0}, layer="below")
    at = [float(point.step) for point in points]
    low, high = [point.low for point in points], [point.high for point in points]
    marks.add_band(figure, at, low, high, LIGHT.text_1, marks.INTERVAL_OPACITY, name="interval")
    figure.add_scatter(
        x=at, y=[point.octaves for point in points], name="rate ÷ best rate", mode="lines",
        line={"color": LIGHT.text_1, "width": 2},
        customdata=[_words(point) for point in points],
        hovertemplate="<b>%{customdata[0]}</b> the best rate  [%{customdata[1]}]<br>%{customdata[2]}<extra></extra>",
    )  # fmt: skip
    if points:
        marks.add_end_dot(figure, at[-1], points[-1].octaves or 0.0, LIGHT.text_1)
    for y, text in ((FARTHEST - 0.5, "too high"), (0.0, "right"), (0.5 - FARTHEST, "too low")):
        figure.add_annotation(
            x=1, xshift=8, y=y, xref="paper", text=text, xanchor="left", yanchor="middle", showarrow=False,
            font={"size": 12, "color": LIGHT.text_3, "family": FONT},
        )  # fmt: skip
    labels.write_x_title(figure, "optimizer step")
    if not points:
        labels.say_nothing(figure, "No learning rate is judged yet")
    attach_table(
        figure,
        {
            "step": [point.step for point in found.points],
            "learning rate": [point.learning_rate for point in found.points],
            "path ratio q (octaves)": [point.ratio for point in found.points],
            "rate ÷ best rate (octaves)": [point.octaves for point in found.points],
            "lower end": [point.low for point in found.points],
            "upper end": [point.high for point in found.points],
        },
    )
    return figure


def _words(point: RateAtStep) -> list[str]:
    ends = span(_power(point.low), _power(point.high))
    return [_times(point.octaves), ends, (point.verdict or "").replace("_", " ")]


def _power(octaves: float | None) -> float | None:
    return None if octaves is None else 2.0**octaves


def _times(octaves: float | None) -> str:
    return "–" if octaves is None else f"{significant(2.0**octaves, 2)} ×"
