"""Compute of runs over their days, with the fitted and the published doubling times."""

import math
from datetime import date

import plotly.graph_objects as go

from noisescale_dashboard.answers.cost import ComputeGrowth
from noisescale_dashboard.figures.cost.boards import HEIGHT, NARROW_HEIGHT
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import LIGHT, blank_figure
from noisescale_dashboard.words.number_format import money, significant

DAYS_PER_YEAR = 365.25


def compute_over_time(found: ComputeGrowth, *, narrow: bool) -> go.Figure:
    """PF-days of each run, log, over the day on which it began; line: fit, dotted: published doubling times."""
    figure = blank_figure(height=NARROW_HEIGHT if narrow else HEIGHT, right=16, top=14, bottom=40, left=56)
    figure.update_layout(hovermode="closest", hoverdistance=14)
    took = [one.compute.pf_days for one in found.runs]
    if took:
        axes.set_log_axis(figure, *axes.log_range(min(took), max(took), room=0.12))
    figure.update_xaxes(type="date", showspikes=False, nticks=4 if narrow else 8)
    days = [one.day for one in found.runs]
    for line in found.lines:
        figure.add_scatter(
            x=[days[0], days[-1]], y=[line.at_start, line.at_end], name=f"published, {line.months:g} months",
            mode="lines", line={"color": LIGHT.text_3, "width": 1.5, "dash": "2px,3px"},
            hovertemplate=f"published: doubles in {line.months:g} months<extra></extra>",
        )  # fmt: skip
    if found.growth is not None:
        figure.add_scatter(
            x=[days[0], days[-1]], y=[_fitted(found, days[0]), _fitted(found, days[-1])], name="fit", mode="lines",
            line={"color": LIGHT.text_1, "width": 2}, hoverinfo="skip",
        )  # fmt: skip
    figure.add_scatter(
        x=days, y=took, name="runs", mode="markers", marker=marks.ringed(LIGHT.text_2),
        customdata=[
            [labels.plain(one.name), significant(one.compute.pf_days), labels.plain(one.compute.said), money(one.usd)]
            for one in found.runs
        ],
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]} PF-days, %{customdata[3]}<br>%{customdata[2]}"
        "<extra></extra>",
    )  # fmt: skip
    labels.write_x_title(figure, "began")
    attach_table(
        figure,
        {
            "run": [one.name for one in found.runs],
            "day": days,
            "PF-days": took,
            "counted from": [one.compute.said for one in found.runs],
            "USD": [one.usd for one in found.runs],
            "price": [one.price_said for one in found.runs],
        },
    )
    return figure


def _fitted(found: ComputeGrowth, day: str) -> float:
    """The fitted line at a day."""
    assert found.growth is not None, "drawn only where there is one"
    years = (date.fromisoformat(day) - date.fromisoformat(found.runs[-1].day)).days / DAYS_PER_YEAR
    return found.growth.at_end * math.exp2(found.growth.doublings_per_year.value * years)
