"""Noise scale and batch since the start, one small panel a run, each with its own logarithmic y axis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from noisescale_dashboard.answers.common import Estimate
from noisescale_dashboard.answers.series import ShortSeries
from noisescale_dashboard.figures.parts import axes
from noisescale_dashboard.figures.parts.data_table import Cell, attach_table
from noisescale_dashboard.figures.parts.labels import plain
from noisescale_dashboard.figures.parts.marks import add_band, stretches
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, TRANSPARENT, blank_figure
from noisescale_dashboard.words.names import short_names
from noisescale_dashboard.words.number_format import si

COLUMNS, NARROW_COLUMNS = 6, 2
PANEL_PIXELS, HEAD_PIXELS, FOOT_PIXELS = 150, 30, 30
GAP = 0.022
NAME_CHARACTERS = 21
SIDE_PIXELS = 6


@dataclass(frozen=True, slots=True)
class Panel:
    """One run: its id, name, what an example is in short, its series and its latest estimate."""

    run_id: str
    name: str
    noun: str
    series: ShortSeries
    latest: Estimate


def small_multiples(panels: Sequence[Panel], *, narrow: bool) -> go.Figure:
    """A panel a run: noise scale with its 95 % band, and the batch in use; the last values are written below."""
    columns = NARROW_COLUMNS if narrow else COLUMNS
    rows = max(1, math.ceil(len(panels) / columns))
    height = rows * PANEL_PIXELS
    figure = blank_figure(height=height, left=SIDE_PIXELS, right=SIDE_PIXELS, top=0, bottom=0)
    figure.update_layout(hovermode="closest", dragmode=False)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    short = short_names([panel.name for panel in panels], at_most=NAME_CHARACTERS)
    for place, panel in enumerate(panels):
        row, column = divmod(place, columns)
        left, right = column / columns + GAP / 2, (column + 1) / columns - GAP / 2
        top = 1 - (row * PANEL_PIXELS + HEAD_PIXELS) / height
        bottom = 1 - ((row + 1) * PANEL_PIXELS - FOOT_PIXELS) / height
        name = "" if place == 0 else str(place + 1)
        _set_axes(figure, panel, name, x=(left, right), y=(bottom, top))
        _draw(figure, panel, name)
        _write(figure, panel, short[place], left=left, right=right, top=top, bottom=bottom)
    attach_table(figure, _table(panels))
    return figure


def height_of(num_panels: int, *, narrow: bool) -> int:
    """Pixels of the figure with so many panels."""
    return max(1, math.ceil(num_panels / (NARROW_COLUMNS if narrow else COLUMNS))) * PANEL_PIXELS


def _set_axes(figure: go.Figure, panel: Panel, name: str, *, x: tuple[float, float], y: tuple[float, float]) -> None:
    points = panel.series.points
    shown = [
        *points.value,
        *points.global_batch,
        *(low for low, v in zip(points.low, points.value, strict=True) if v is None),
    ]
    low, high = axes.quantiles(shown, 0.01, 1) or (1.0, 10.0)
    bottom, top = low / 1.5, high * 1.7
    figure.update_layout(
        **{
            f"xaxis{name}": {"domain": x, "anchor": f"y{name}", "visible": False, "fixedrange": True},
            f"yaxis{name}": {
                "domain": y, "anchor": f"x{name}", "type": "log", "fixedrange": True,
                "range": [math.log10(bottom), math.log10(top)], "showticklabels": False, "ticks": "",
                "tickvals": axes.log_ticks(bottom, top)[:4], "showgrid": True, "gridcolor": LIGHT.grid,
                "zeroline": False, "showline": False,
            },
        }
    )  # fmt: skip


def _draw(figure: go.Figure, panel: Panel, name: str) -> None:
    first = len(figure.data)
    points = panel.series.points
    steps: list[float | None] = [float(step) for step in points.step]
    estimates = list(zip(points.value, points.low, points.high, strict=True))
    add_band(
        figure, steps, points.low, [None if v is None else high for v, _, high in estimates], LIGHT.noise, 0.18,
        name="95 %",
    )  # fmt: skip
    head = f"<b>{plain(panel.name)}</b><br>step %{{x:,.0f}}<br>"
    figure.add_scatter(
        x=steps, y=points.value, mode="lines", name="noise scale", connectgaps=False,
        line={"color": LIGHT.noise, "width": 1.75},
        customdata=[[panel.run_id, si(value), si(low), si(high)] for value, low, high in estimates],
        hovertemplate=f"{head}noise scale <b>%{{customdata[1]}}</b> [%{{customdata[2]}} – %{{customdata[3]}}] "
        f"{plain(panel.noun)}<extra></extra>",
    )  # fmt: skip
    for part in stretches(len(steps), lambda i: points.value[i] is None and points.low[i] is not None):
        figure.add_scatter(
            x=[steps[i] for i in part], y=[points.low[i] for i in part], mode="lines", name="bound",
            line={"color": LIGHT.noise, "width": 1.5, "dash": "2px,3px"},
            customdata=[[panel.run_id, si(points.low[i])] for i in part],
            hovertemplate=f"{head}noise scale > %{{customdata[1]}}, not resolved<extra></extra>",
        )  # fmt: skip
    figure.add_scatter(
        x=steps, y=points.global_batch, mode="lines", name="batch",
        line={"color": LIGHT.batch, "width": 1.75, "shape": "hv"},
        customdata=[[panel.run_id, si(batch)] for batch in points.global_batch],
        hovertemplate=f"{head}batch <b>%{{customdata[1]}}</b><extra></extra>",
    )  # fmt: skip
    for trace in figure.data[first:]:
        trace.xaxis, trace.yaxis = f"x{name}", f"y{name}"


def _write(
    figure: go.Figure, panel: Panel, title: str, *, left: float, right: float, top: float, bottom: float
) -> None:
    latest = panel.latest
    known = [batch for batch in panel.series.points.global_batch if batch is not None]
    noise = (
        si(latest.value)
        if latest.value is not None
        else f"> {si(latest.low)}"
        if latest.low is not None
        else "not resolved"
    )
    batch = si(known[-1]) if known else "batch unknown"
    for text, color, x, anchor, y, side in (
        (f"<b>{plain(title)}</b>", LIGHT.text_1, left, "left", top, 8),
        (
            f"{noise} {plain(panel.noun, 6)}",
            LIGHT.noise_text if latest.value is not None else LIGHT.text_3,
            left,
            "left",
            bottom,
            -18,
        ),
        (batch, LIGHT.batch_text, right, "right", bottom, -18),
    ):
        figure.add_annotation(
            x=x, y=y, xref="paper", yref="paper", text=text, xanchor=anchor, yanchor="bottom", yshift=side,
            font={"size": 12, "color": color, "family": FONT}, showarrow=False, bgcolor=TRANSPARENT,
            **({"hovertext": plain(panel.name)} if side > 0 and title != panel.name else {}),
        )  # fmt: skip


def _table(panels: Sequence[Panel]) -> dict[str, list[Cell]]:
    columns: dict[str, list[Cell]] = {
        name: []
        for name in (
            "run",
            "unit",
            "step",
            "noise scale",
            "noise scale, lower end 95 %",
            "noise scale, upper end 95 %",
            "state",
            "batch",
        )
    }
    for panel in panels:
        points = panel.series.points
        for i, step in enumerate(points.step):
            cells: tuple[Cell, ...] = (
                panel.name, panel.noun, step, points.value[i], points.low[i], points.high[i], points.state[i],
                points.global_batch[i],
            )  # fmt: skip
            for column, cell in zip(columns.values(), cells, strict=True):
                column.append(cell)
    return columns
