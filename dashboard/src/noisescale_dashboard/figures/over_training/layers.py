"""The noise scale of each layer: a heat map over training, and a ranking with intervals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import plotly.graph_objects as go

from noisescale_dashboard.answers.common import Estimate, Numbers
from noisescale_dashboard.answers.series import Group
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table, layer_columns
from noisescale_dashboard.figures.parts.theme import LIGHT, TRANSPARENT, blank_figure
from noisescale_dashboard.words.number_format import count, si, span

# Layers with one of the two terms of the noise scale in its place, so that the same figures rank and map them.

NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True)
class LayerQuantity:
    """What is shown of layers.

    Attributes:
        name: In hover text and table.
        unit: What it is counted in; None: what an example is.
        color: Of its dots.
    """

    name: str
    unit: str | None
    color: str


NOISE_SCALE: Final = LayerQuantity("noise scale", None, LIGHT.noise)
QUANTITIES: Final[Mapping[str, LayerQuantity]] = MappingProxyType(
    {
        "noise": NOISE_SCALE,
        "trace_cov": LayerQuantity("tr Σ", "squared gradient", LIGHT.text_1),
        "grad_sq_norm": LayerQuantity("|G|²", "squared gradient", LIGHT.text_3),
    }
)
"""By the word in the address."""


def of_term(groups: Sequence[Group], term: str) -> list[Group]:
    """The layers with `trace_cov` or `grad_sq_norm` where their noise scale was, 95 % by its standard error.

    An estimate that is not above zero is not resolved: a logarithmic axis has no place for it.
    """
    return [_of_term(group, term) for group in groups] if term != "noise" else list(groups)


def _of_term(group: Group, term: str) -> Group:
    values, errors = getattr(group.series, term), getattr(group.series, f"{term}_se")
    ends = [_ends(value, error) for value, error in zip(values, errors, strict=True)]
    value, low, high = _ends(getattr(group, term), getattr(group, f"{term}_se"))
    series = replace(
        group.series,
        value=_column(ends, 0),
        low=_column(ends, 1),
        high=_column(ends, 2),
        state=tuple("unresolved" if one[0] is None else "resolved" for one in ends),
        step=group.series.step if ends else (),
    )
    state = "unresolved" if value is None else "resolved"
    return replace(group, series=series, estimate=Estimate(state=state, value=value, low=low, high=high))


def _column(ends: Sequence[tuple[float | None, ...]], place: int) -> Numbers:
    return tuple(one[place] for one in ends)


def _ends(value: float | None, error: float | None) -> tuple[float | None, float | None, float | None]:
    if value is None or value <= 0:
        return None, None, None
    reach = NORMAL_95 * error if error is not None else None
    return value, None if reach is None else value - reach, None if reach is None else value + reach


ROW_HEIGHT, TALLEST_ROW, WANTED_HEIGHT, NOTHING_HEIGHT = 22, 40, 176, 72
LABEL_LIMIT = 26
PIXELS_PER_CHARACTER = 6.4
TOP, BOTTOM = 6, 40
BEYOND_EVERY_AXIS = 1e-6
"""Of the value: a whisker to zero or below leaves every logarithmic axis."""
Row = Sequence[float | None]


def layer_heat_map(
    groups: Sequence[Group], *, noun: str, narrow: bool, quantity: LayerQuantity = NOISE_SCALE
) -> go.Figure:
    """Noise scale (or `quantity`) by layer (rows, network order) and step; stronger is larger, hatched not resolved."""
    figure = _row_figure(groups, narrow=narrow)
    edges = cell_edges(groups[0].series.step) if groups else []
    low, high = color_range(groups)
    rows = [[_log(v) for v in group.series.value] for group in groups]
    last = len(LIGHT.sequential) - 1
    figure.add_heatmap(
        x=edges, y=list(range(len(groups))), z=rows, zmin=math.log10(low), zmax=math.log10(high), showscale=False,
        colorscale=[[i / last, color] for i, color in enumerate(LIGHT.sequential)], xgap=0, ygap=2,
        hoverongaps=False,
        customdata=[_cells(group) for group in groups],
        hovertemplate="%{customdata[0]} · step %{customdata[3]}<br>"
        + f"{_hover(quantity, noun)}  [%{{customdata[2]}}]<extra></extra>",
    )  # fmt: skip
    _hatch_unresolved(figure, groups, edges)
    figure.update_xaxes(showline=False, ticks="", tickformat="~s", showspikes=False, nticks=4 if narrow else 7)
    labels.write_x_title(figure, "optimizer step")
    attach_table(figure, layer_columns(groups, quantity.name))
    if edges:
        figure.update_xaxes(range=[edges[0], edges[-1]])
    return figure


def no_layers() -> go.Figure:
    """In place of both where no record has layers."""
    figure = blank_figure(height=NOTHING_HEIGHT, right=16, top=4, bottom=4)
    labels.say_nothing(figure, "No layer is recorded yet")
    return figure


def color_range(groups: Sequence[Group]) -> tuple[float, float]:
    """Noise scales at the faintest and strongest colour, one and two significant digits."""
    known = axes.quantiles([v for group in groups for v in group.series.value], 0.02, 0.98) or (1.0, 10.0)
    low = float(f"{known[0]:.0e}")
    return low, max(float(f"{known[1]:.1e}"), low * 2)


def _hover(quantity: LayerQuantity, noun: str) -> str:
    return f"{quantity.name} <b>%{{customdata[1]}}</b> {labels.plain(quantity.unit or noun)}"


def layer_ranking(
    groups: Sequence[Group], *, noun: str, narrow: bool, quantity: LayerQuantity = NOISE_SCALE
) -> go.Figure:
    """Layers by noise scale (or `quantity`), largest on top: dot and 95 % whisker; an open arrow for a lower bound."""
    ranked = sorted(groups, key=lambda group: _rank(group.estimate), reverse=True)
    figure = _row_figure(ranked, narrow=narrow)
    ends = axes.quantiles([x for g in ranked for x in (g.estimate.low, g.estimate.high, g.estimate.value)], 0, 1)
    low, high = axes.log_range(*(ends or (1.0, 10.0)))
    ticks = axes.log_ticks(low, high)
    figure.update_xaxes(
        type="log", range=[math.log10(low), math.log10(high)], tickvals=ticks, ticktext=[si(t) for t in ticks],
        showgrid=True, gridcolor=LIGHT.grid, showspikes=False, fixedrange=True,
    )  # fmt: skip
    _add_bounded(figure, ranked, noun, quantity)
    _add_open(figure, ranked, high)
    attach_table(figure, layer_columns(ranked, quantity.name))
    return figure


def row_height(num_rows: int) -> int:
    """Pixels of a row: taller where there are few."""
    return max(ROW_HEIGHT, min(TALLEST_ROW, WANTED_HEIGHT // max(num_rows, 1)))


def _row_figure(groups: Sequence[Group], *, narrow: bool) -> go.Figure:
    limit = 14 if narrow else LABEL_LIMIT
    names = [labels.plain(group.name, limit) for group in groups]
    widest = max((min(len(group.name), limit) for group in groups), default=4)
    figure = blank_figure(
        height=len(groups) * row_height(len(groups)) + TOP + BOTTOM,
        left=round(widest * PIXELS_PER_CHARACTER) + 18, right=14, top=TOP, bottom=BOTTOM,
    )  # fmt: skip
    figure.update_layout(hovermode="closest", hoverdistance=14)
    figure.update_yaxes(
        tickvals=list(range(len(names))), ticktext=names, range=[len(names) - 0.5, -0.5], showgrid=False,
        tickfont={"size": 11}, ticklabelstandoff=5,
    )  # fmt: skip
    return figure


def cell_edges(steps: Sequence[int]) -> list[float]:
    """Ends of the cells on the x axis: each ends at its step, the first is as long as the second."""
    if len(steps) < 2:
        return [0.0, *(float(step) for step in steps)]
    return [max(0.0, 2.0 * steps[0] - steps[1]), *(float(step) for step in steps)]


def _hatch_unresolved(figure: go.Figure, groups: Sequence[Group], edges: Sequence[float]) -> None:
    found = [(row, part) for row, group in enumerate(groups) for part in _gaps(group.series.value)]
    if not found:
        return
    figure.add_bar(
        orientation="h", name="not resolved", y=[row for row, _ in found],
        base=[edges[part[0]] for _, part in found],
        x=[edges[part[-1] + 1] - edges[part[0]] for _, part in found],
        width=[1 - 2 / row_height(len(groups)) for _ in found], hoverinfo="skip",
        marker={
            "color": TRANSPARENT, "line": {"width": 0},
            "pattern": {"shape": "/", "fgcolor": LIGHT.axis, "size": 6, "solidity": 0.18, "fgopacity": 1},
        },
    )  # fmt: skip
    figure.update_layout(barmode="overlay")


def _gaps(values: Row) -> list[range]:
    return list(marks.stretches(len(values), lambda i: values[i] is None))


def _cells(group: Group) -> list[list[str]]:
    series, name = group.series, labels.plain(group.name)
    return [
        [name, si(value), span(low, high, dense=True), count(step)]
        for value, low, high, step in zip(series.value, series.low, series.high, series.step, strict=True)
    ]


def _log(value: float | None) -> float | None:
    return math.log10(value) if value is not None and value > 0 else None


def _rank(estimate: Estimate) -> float:
    return estimate.value if estimate.value is not None else estimate.low or 0.0


def _add_bounded(figure: go.Figure, ranked: Sequence[Group], noun: str, quantity: LayerQuantity) -> None:
    own = [(row, group) for row, group in enumerate(ranked) if group.estimate.value is not None]
    values = [group.estimate.value or 0.0 for _, group in own]
    figure.add_scatter(
        x=values, y=[row for row, _ in own], name=quantity.name, mode="markers",
        marker={"size": 8, "color": quantity.color, "line": {"width": 2, "color": LIGHT.panel}},
        error_x=marks.whiskers(
            values, [_above_zero(g.estimate) for _, g in own], [g.estimate.high for _, g in own], quantity.color
        ),
        customdata=[
            [labels.plain(g.name), si(g.estimate.value), span(g.estimate.low, g.estimate.high, dense=True)]
            for _, g in own
        ],
        hovertemplate=f"%{{customdata[0]}}<br>{_hover(quantity, noun)}  [%{{customdata[2]}}]<extra></extra>",
    )  # fmt: skip


def _above_zero(estimate: Estimate) -> float | None:
    if estimate.low is None or estimate.value is None:
        return None
    return max(estimate.low, BEYOND_EVERY_AXIS * estimate.value)


def _add_open(figure: go.Figure, ranked: Sequence[Group], high: float) -> None:
    own = [(row, g) for row, g in enumerate(ranked) if g.estimate.value is None and g.estimate.low]
    xs: list[float | None] = []
    ys: list[float | None] = []
    for row, group in own:
        xs += [group.estimate.low, high, None]
        ys += [row, row, None]
    figure.add_scatter(
        x=xs, y=ys, name="lower bound", mode="lines", hoverinfo="skip",
        line={"width": 1.5, "color": LIGHT.noise, "dash": "2px,3px"},
    )  # fmt: skip
    figure.add_scatter(
        x=[g.estimate.low for _, g in own], y=[row for row, _ in own], name="not resolved", mode="markers",
        marker={"symbol": "triangle-right-open", "size": 8, "color": LIGHT.noise},
        customdata=[[labels.plain(g.name), si(g.estimate.low)] for _, g in own],
        hovertemplate="%{customdata[0]}<br>noise scale <b>> %{customdata[1]}</b>  not resolved<extra></extra>",
    )  # fmt: skip
