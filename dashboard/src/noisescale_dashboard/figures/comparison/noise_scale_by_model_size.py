"""Noise scale against training loss for models of several sizes: where their lines meet, size does not act."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.comparisons import ModelSizes, RunAtLosses
from noisescale_dashboard.figures.parts import axes, labels
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, blank_figure, translucent
from noisescale_dashboard.words.number_format import si, significant

HEIGHT = 226
RIGHT = 48
"""Room for a size beside the lowest loss of all."""
SHADES = LIGHT.sequential[3:]
"""Of lines: at least 3 : 1 against the ground."""
COLD_OPACITY = 0.35


def noise_scale_by_model_size(found: ModelSizes, *, noun: str, narrow: bool) -> go.Figure:
    """Noise scale (`noun`, log) over the training loss, falling to the right; larger models darker.

    The stretch of losses that every size has seen is tinted; windows at a cold learning rate are pale and not tested.
    """
    figure = blank_figure(height=HEIGHT, left=44, right=RIGHT, top=12, bottom=40)
    figure.update_layout(hovermode="closest", hoverdistance=14)
    runs = [run for run in found.runs if run.size is not None and run.loss]
    _set_axes(figure, runs, narrow=narrow)
    _add_common_losses(figure, found)
    shades = shades_of([run.size or 0.0 for run in runs])
    for run in sorted(runs, key=lambda one: one.size or 0.0):
        _add_run(figure, run, shades[run.size or 0.0], noun)
    _write_sizes(figure, runs)
    labels.write_x_title(figure, "training loss (falling →)")
    attach_table(figure, _columns(runs, noun))
    return figure


def shades_of(sizes: Sequence[float]) -> dict[float, str]:
    """A shade of one hue for each size, the largest furthest from the ground."""
    ordered = sorted(set(sizes))
    last = len(ordered) - 1
    return {
        size: SHADES[round(place * (len(SHADES) - 1) / last) if last else len(SHADES) - 1]
        for place, size in enumerate(ordered)
    }


def _set_axes(figure: go.Figure, runs: Sequence[RunAtLosses], *, narrow: bool) -> None:
    losses = [loss for run in runs for loss in run.loss] or [1.0, 2.0]
    room = 0.05 * (max(losses) - min(losses)) or 0.1
    ends = [max(losses) + room, min(losses) - room]
    figure.update_xaxes(
        range=ends, showspikes=False, tickformat="~g", dtick=axes.tick_step(ends, 4 if narrow else 6), tick0=0
    )
    low, high = axes.full_range([value for run in runs for value in run.noise_scale]) or (10.0, 1000.0)
    axes.set_log_axis(figure, *axes.log_range(low, high, room=0.1))


def _add_common_losses(figure: go.Figure, found: ModelSizes) -> None:
    if found.effect is None or not found.has_common_losses:
        return
    figure.add_shape(
        type="rect", x0=found.effect.common_low, x1=found.effect.common_high, y0=0, y1=1, yref="paper", layer="below",
        fillcolor=translucent(LIGHT.text_3, 0.08), line={"width": 0},
    )  # fmt: skip


def _add_run(figure: go.Figure, run: RunAtLosses, color: str, noun: str) -> None:
    figure.add_scatter(
        x=run.loss, y=run.noise_scale, name=run.name, mode="lines+markers",
        line={"color": translucent(color, 0.4), "width": 1.25},
        marker={"size": 5, "color": color, "opacity": [1.0 if warm else COLD_OPACITY for warm in run.is_warm]},
        customdata=[
            [significant(loss, 4), significant(scale), "" if warm else "<br>cold learning rate, not tested"]
            for loss, scale, warm in zip(run.loss, run.noise_scale, run.is_warm, strict=True)
        ],
        hovertemplate=f"<b>{labels.plain(run.name)}</b>, size {si(run.size)}<br>loss %{{customdata[0]}}<br>"
        f"noise scale <b>%{{customdata[1]}}</b> {labels.plain(noun)}%{{customdata[2]}}<extra></extra>",
    )  # fmt: skip


def _write_sizes(figure: go.Figure, runs: Sequence[RunAtLosses]) -> None:
    """The size behind the end of its line, the lowest loss, pushed apart; of many the smallest and the largest."""
    best = {run.size or 0.0: run for run in sorted(runs, key=lambda one: -min(one.loss))}
    sizes = sorted(best)
    shown = sizes if len(sizes) <= len(SHADES) else [sizes[0], sizes[-1]]
    ends = [(size, *_lowest(best[size])) for size in shown]
    height = HEIGHT - figure.layout.margin.t - figure.layout.margin.b
    low, high = figure.layout.yaxis.range
    pixels = [height * (math.log10(scale) - low) / (high - low) for _, _, scale in ends]
    for (size, loss, _), wanted, y in zip(
        ends, pixels, labels.spread(pixels, [labels.LINE_PIXELS] * len(pixels)), strict=True
    ):
        figure.add_annotation(
            x=loss, y=low + (high - low) * wanted / height, text=f"<b>{si(size)}</b>", xanchor="left",
            yanchor="middle", xshift=7, yshift=y - wanted, showarrow=False,
            font={"size": 12, "color": LIGHT.text_2, "family": FONT},
        )  # fmt: skip


def _lowest(run: RunAtLosses) -> tuple[float, float]:
    """Its lowest loss, and the noise scale there."""
    return min(zip(run.loss, run.noise_scale, strict=True))


def _columns(runs: Sequence[RunAtLosses], noun: str) -> dict[str, list[float | str | bool | None]]:
    """A row a window."""
    rows = [
        (run, loss, scale, warm)
        for run in runs
        for loss, scale, warm in zip(run.loss, run.noise_scale, run.is_warm, strict=True)
    ]
    return {
        "run": [run.name for run, *_ in rows],
        "size": [run.size for run, *_ in rows],
        "training loss": [loss for _, loss, _, _ in rows],
        f"noise scale ({noun})": [scale for _, _, scale, _ in rows],
        "in the test": [warm for *_, warm in rows],
    }
