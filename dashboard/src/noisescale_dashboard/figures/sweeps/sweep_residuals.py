"""How far the measured steps of a sweep lie from its fit, at each batch size."""

import math

import plotly.graph_objects as go

from noisescale_dashboard.answers.sweeps import TargetFit
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import LIGHT, blank_figure, translucent
from noisescale_dashboard.words.number_format import count

HEIGHT = 226
LEAST_SPAN = 5.0
"""Percent: what is smaller is not stretched over the whole figure."""


def sweep_residuals(target: TargetFit, *, unit: str, narrow: bool) -> go.Figure:
    """Steps over the fit in percent, by batch size (`unit`, log); band: two standard deviations of the scatter."""
    figure = blank_figure(height=HEIGHT, right=16, top=12, bottom=40)
    figure.update_layout(hovermode="closest", hoverdistance=14)
    residuals = target.fit.residuals if target.fit is not None else ()
    percents = [percent(residual.log_ratio) for residual in residuals]
    scatter = percent(2 * target.fit.scatter) if target.fit is not None else 0.0
    reach = 1.25 * max([LEAST_SPAN, scatter, *map(abs, percents)])
    figure.update_yaxes(range=[-reach, reach], nticks=6, ticksuffix=" %")
    sizes = [residual.batch_size for residual in residuals] or [point.batch_size for point in target.points] or [1.0]
    axes.set_batch_axis(figure, min(sizes) / 1.6, max(sizes) * 1.6, at_most=4 if narrow else 6)
    if residuals:
        figure.add_hrect(
            y0=percent(-2 * target.fit.scatter) if target.fit else 0, y1=scatter, layer="below", line={"width": 0},
            fillcolor=translucent(LIGHT.noise, 0.1),
        )  # fmt: skip
    figure.add_hline(y=0, line={"color": LIGHT.axis, "width": 1}, layer="below")
    figure.add_scatter(
        x=[residual.batch_size for residual in residuals], y=percents, name="steps over fit", mode="markers",
        marker=marks.ringed(LIGHT.noise),
        customdata=[
            [count(residual.batch_size), f"{value:+.1f}".replace("-", "−")]
            for residual, value in zip(residuals, percents, strict=True)
        ],
        hovertemplate=f"batch <b>%{{customdata[0]}}</b> {labels.plain(unit)}<br>steps %{{customdata[1]}} % from the fit"
        "<extra></extra>",
    )  # fmt: skip
    labels.write_x_title(figure, f"batch size, {labels.plain(unit)}")
    attach_table(
        figure,
        {
            f"batch size ({unit})": [residual.batch_size for residual in residuals],
            "log of steps over fit": [residual.log_ratio for residual in residuals],
            "steps over fit (%)": percents,
        },
    )
    return figure


def percent(log_ratio: float) -> float:
    """A logarithm of a ratio in percent: log 1.05 → 5."""
    return 100 * math.expm1(log_ratio)
