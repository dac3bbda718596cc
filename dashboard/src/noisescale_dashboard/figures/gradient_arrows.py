"""Gradients of many batches of one size: how far noise takes them from the true one."""

import math
from functools import cache

import plotly.graph_objects as go

from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, blank_figure, translucent

HEIGHT = 280
NUM_BATCHES = 60
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
REACH = 4.5
"""Half the height of the plot, in lengths of the true gradient: most arrows of the smallest batch stay within."""


def gradient_arrows(ratio: float) -> go.Figure:
    """Arrows of 60 made-up batches of `ratio` noise scales around a true gradient of length 1, in two dimensions.

    A batch of B examples has noise of variance tr Σ ÷ B = |G|² ÷ ratio in all, half of it along each axis.
    """
    figure = blank_figure(height=HEIGHT, left=8, right=8, top=8, bottom=8)
    figure.update_layout(hovermode=False, dragmode=False)
    figure.update_xaxes(visible=False, range=[-REACH, REACH], constrain="range", fixedrange=True)
    figure.update_yaxes(visible=False, range=[-REACH, REACH], scaleanchor="x", fixedrange=True)
    ends = batch_gradients(ratio)
    figure.add_scatter(
        x=[at for x, _ in ends for at in (0.0, x, None)], y=[at for _, y in ends for at in (0.0, y, None)],
        name="batches", mode="lines", hoverinfo="skip", line={"color": translucent(LIGHT.noise, 0.35), "width": 1.25},
    )  # fmt: skip
    figure.add_scatter(
        x=[x for x, _ in ends], y=[y for _, y in ends], name="ends", mode="markers", hoverinfo="skip",
        marker={"color": LIGHT.noise, "size": 4},
    )  # fmt: skip
    figure.add_scatter(
        x=[0.0, 1.0], y=[0.0, 0.0], name="true gradient", mode="lines+markers", hoverinfo="skip",
        line={"color": LIGHT.text_1, "width": 3}, marker={"color": LIGHT.text_1, "size": [0, 8]},
    )  # fmt: skip
    figure.add_annotation(
        x=0.5, y=0, xref="paper", yref="paper", text="<b>thick</b> true gradient · thin 60 batches", showarrow=False,
        yanchor="bottom", font={"size": 12, "color": LIGHT.text_2, "family": FONT},
    )  # fmt: skip
    attach_table(figure, {"along the gradient": [x for x, _ in ends], "across it": [y for _, y in ends]})
    return figure


def batch_gradients(ratio: float) -> list[tuple[float, float]]:
    """Gradients of the batches; the same draws at every batch size, so that they move and do not jump."""
    spread = math.sqrt(1 / (2 * ratio))
    return [(1 + spread * along, spread * across) for along, across in _draws()]


@cache
def _draws() -> tuple[tuple[float, float], ...]:
    """Points spread as a normal distribution in two dimensions is: each radius stands for an equal share of it."""
    radii = (math.sqrt(-2 * math.log(1 - (i + 0.5) / NUM_BATCHES)) for i in range(NUM_BATCHES))
    return tuple((r * math.cos(i * GOLDEN_ANGLE), r * math.sin(i * GOLDEN_ANGLE)) for i, r in enumerate(radii))
