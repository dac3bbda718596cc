"""The noise scale against the training loss: points, the law through them, and where it leads."""

import plotly.graph_objects as go

from noisescale_dashboard.answers.laws import Forecast
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.marks import add_law
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, blank_figure, translucent
from noisescale_dashboard.words.number_format import exactly, significant, span

HEIGHT = 232
TALLEST_BAND = 3.0
"""A band that runs off does not press the points flat: the axis follows it up to so many times the largest value."""


def noise_scale_against_loss(found: Forecast, *, noun: str, narrow: bool) -> go.Figure:
    """Noise scale (`noun`, log) over the training loss, which falls to the right; dotted where the law forecasts."""
    figure = blank_figure(height=HEIGHT, right=16, top=10, bottom=40)
    figure.update_layout(hovermode="closest", hoverdistance=14)
    _set_axes(figure, found, narrow=narrow)
    add_law(
        figure, found.curve, LIGHT.noise,
        across=("loss", lambda x: significant(x, 4)), value_name="noise scale", unit=labels.plain(noun),
    )  # fmt: skip
    figure.add_scatter(
        x=[point.x for point in found.observed], y=[point.value for point in found.observed], name="windows",
        mode="markers", marker={"size": 6, "color": LIGHT.noise},
        error_y=marks.whiskers(
            [point.value for point in found.observed], [point.low for point in found.observed],
            [point.high for point in found.observed], translucent(LIGHT.noise, 0.45),
        ) | {"thickness": 1},
        customdata=[
            [significant(p.x, 4), significant(p.value), span(p.low, p.high)] for p in found.observed
        ],
        hovertemplate=f"loss %{{customdata[0]}}<br>noise scale <b>%{{customdata[1]}}</b> {labels.plain(noun)} "
        "[%{customdata[2]}]<extra></extra>",
    )  # fmt: skip
    _write_power(figure, found)
    labels.write_x_title(figure, "training loss (falling →)")
    if not found.observed:
        labels.say_nothing(figure, "No window is resolved yet")
    attach_table(
        figure,
        {
            "training loss": [point.x for point in found.observed],
            f"noise scale ({noun})": [point.value for point in found.observed],
            "lower end": [point.low for point in found.observed],
            "upper end": [point.high for point in found.observed],
        },
    )
    return figure


def _set_axes(figure: go.Figure, found: Forecast, *, narrow: bool) -> None:
    losses = [*(point.x for point in found.observed), *(point.x for point in found.curve)] or [1.0, 2.0]
    room = 0.04 * (max(losses) - min(losses)) or 0.1
    ends = [max(losses) + room, min(losses) - room]
    figure.update_xaxes(
        range=ends, showspikes=False, tickformat="~g", dtick=axes.tick_step(ends, 4 if narrow else 6), tick0=0
    )
    values = [*(point.value for point in found.observed), *(point.value for point in found.curve)] or [10.0, 1000.0]
    bands = [end for point in found.curve for end in (point.low, point.high) if end is not None]
    top = max(values) * TALLEST_BAND
    low, high = min([*values, *bands]), max(min(end, top) for end in (*values, *bands))
    axes.set_log_axis(figure, *axes.log_range(max(low, min(values) / TALLEST_BAND), high))


def _write_power(figure: go.Figure, found: Forecast) -> None:
    if found.power.value is None or not found.curve:
        return
    power = found.power
    text = f"power <b>{_short(power.value)}</b>"
    if power.low is not None and power.high is not None:
        text += f", {_short(power.low)} to {_short(power.high)}"
    figure.add_annotation(
        x=0.98, y=0.06, xref="paper", yref="paper", text=text, xanchor="right", yanchor="bottom", showarrow=False,
        font={"size": 12, "color": LIGHT.noise_text, "family": FONT},
    )  # fmt: skip


def _short(power: float | None) -> str:
    return "–" if power is None else exactly(float(f"{power:.2g}"))
