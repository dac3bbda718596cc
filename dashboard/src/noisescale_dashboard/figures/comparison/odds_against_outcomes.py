"""Odds as they were said against the share that came true."""

from collections.abc import Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.record import Bin
from noisescale_dashboard.figures.parts import labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import LIGHT, blank_figure
from noisescale_dashboard.words.number_format import count, share, share_span

HEIGHT, NARROW_HEIGHT = 380, 300
FROM, TO = 0.45, 1.02


def odds_against_outcomes(bins: Sequence[Bin], *, narrow: bool) -> go.Figure:
    """Share of the changes that were cheaper, with its 95 % interval, over the odds that were said."""
    figure = blank_figure(height=NARROW_HEIGHT if narrow else HEIGHT, right=16, top=14, bottom=40, left=56)
    figure.update_layout(hovermode="closest", hoverdistance=14)
    percent = {"tickformat": ".0%", "fixedrange": True}
    figure.update_xaxes(range=[FROM, TO], **percent)
    figure.update_yaxes(range=[0, TO], **percent)
    figure.add_scatter(
        x=[FROM, 1], y=[FROM, 1], name="honest", mode="lines", hoverinfo="skip",
        line={"color": LIGHT.text_3, "width": 1.5, "dash": "2px,3px"},
    )  # fmt: skip
    said, came_true = [one.said for one in bins], [one.came_true for one in bins]
    figure.add_scatter(
        x=said, y=came_true, name="came true", mode="markers",
        marker=marks.ringed(LIGHT.noise, is_open=[False] * len(bins)),
        error_y={
            "type": "data", "symmetric": False, "thickness": 1.5, "width": 0, "color": LIGHT.noise,
            "array": [one.came_true_high - one.came_true for one in bins],
            "arrayminus": [one.came_true - one.came_true_low for one in bins],
        },
        customdata=[
            [share(one.said), share(one.came_true), share_span(one.came_true_low, one.came_true_high),
             count(one.num_answers)]
            for one in bins
        ],
        hovertemplate="said <b>%{customdata[0]}</b><br>came true <b>%{customdata[1]}</b>, %{customdata[2]}"
        "<br>%{customdata[3]} answers<extra></extra>",
    )  # fmt: skip
    labels.write_x_title(figure, "odds as they were said")
    attach_table(
        figure,
        {
            "odds, from": [one.low for one in bins],
            "odds, to": [one.high for one in bins],
            "said, mean": said,
            "came true": came_true,
            "came true, lower end 95 %": [one.came_true_low for one in bins],
            "came true, upper end 95 %": [one.came_true_high for one in bins],
            "answers": [one.num_answers for one in bins],
        },
    )
    return figure
