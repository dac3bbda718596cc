"""Chains of tasks from easy to hard with the noise scale of each: a dot for a point, a bar for a range or interval."""

import math
from collections.abc import Iterator, Mapping, Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.comparisons import Rung, TaskOrder
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.labels import plain
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, OTHER, blank_figure, translucent
from noisescale_dashboard.words.number_format import si

ROW_PIXELS, TOP, BOTTOM = 19, 2, 24
NAME_PIXELS, VALUE_PIXELS = 112, 62
NAME_CHARACTERS = 18
PUBLISHED_HEIGHT = TOP + BOTTOM + 7 * ROW_PIXELS
"""Of two chains of three, which are there before any of one's own."""
Row = tuple[TaskOrder, Rung] | None


def task_order(orders: Sequence[TaskOrder], colors: Mapping[str, str]) -> go.Figure:
    """The chains one below the other, a row a task, log; `colors` by the name of a task."""
    rows = list(_rows(orders))
    figure = blank_figure(height=height_of(orders), left=NAME_PIXELS, right=VALUE_PIXELS, top=TOP, bottom=BOTTOM)
    figure.update_layout(hovermode="closest", hoverdistance=14, dragmode=False)
    low = _set_axes(figure, rows)
    for place, row in enumerate(reversed(rows)):
        if row is not None:
            _add_row(figure, row, place, low, colors.get(row[1].task, OTHER))
    attach_table(figure, _columns([row for row in rows if row is not None]))
    return figure


def height_of(orders: Sequence[TaskOrder]) -> int:
    """Pixels of the figure of these chains."""
    return TOP + BOTTOM + ROW_PIXELS * max(len(list(_rows(orders))), 1)


def _rows(orders: Sequence[TaskOrder]) -> Iterator[Row]:
    """Chains with an empty row between them."""
    for number, order in enumerate(orders):
        if number:
            yield None
        for rung in order.rungs:
            yield order, rung


def _set_axes(figure: go.Figure, rows: Sequence[Row]) -> float:
    """The left end of the axis, in the unit of the data."""
    known = [end for row in rows if row for end in (row[1].low, row[1].high) if end] or [1.0, 100.0]
    first, last = math.floor(math.log10(min(known)) - 0.3), math.ceil(math.log10(max(known)))
    every = max(1, math.ceil((last - first) / 3))
    ticks = [10.0**power for power in range(first, last + 1, every)]
    figure.update_xaxes(
        type="log", range=[first, last], tickvals=ticks, ticktext=[si(tick) for tick in ticks], showline=False,
        ticks="", showspikes=False, fixedrange=True, showgrid=True, gridcolor=LIGHT.grid,
    )  # fmt: skip
    figure.update_yaxes(visible=False, range=[-0.6, len(rows) - 0.4], fixedrange=True)
    return 10.0**first


def _add_row(figure: go.Figure, row: tuple[TaskOrder, Rung], place: int, left: float, color: str) -> None:
    order, rung = row
    end = rung.high if rung.high is not None else rung.low
    is_point = rung.high == rung.low
    line = {"color": translucent(color, 0.35), "width": 2} if is_point else {"color": color, "width": 6}
    figure.add_scatter(
        x=[left if is_point else rung.low, end], y=[place, place], mode="lines", line=line, hoverinfo="skip",
        name="to the axis" if is_point else "range",
    )  # fmt: skip
    figure.add_scatter(
        x=[end], y=[place], mode="markers", name=rung.task,
        marker={
            "symbol": "triangle-right" if rung.high is None else "circle", "size": 9 if is_point else 7, "color": color,
        },
        hovertemplate=f"<b>{plain(rung.task)}</b>, {plain(order.chain)}<br>{value_words(rung)}<extra></extra>",
    )  # fmt: skip
    _write(figure, plain(short_name(rung.task), NAME_CHARACTERS), LIGHT.text_1, x=0, place=place, shift=4 - NAME_PIXELS)
    _write(figure, f"<b>{value_words(rung)}</b>", LIGHT.text_2, x=math.log10(end), place=place, shift=9, on_axis=True)


def value_words(rung: Rung) -> str:
    """In short: "900", "1k – 20k" or "> 8M"."""
    if rung.high is None:
        return f"> {si(rung.low)}"
    return si(rung.low) if rung.low == rung.high else f"{si(rung.low, 2)} – {si(rung.high, 2)}"


def short_name(task: str) -> str:
    """A published task without what stands in brackets: "ImageNet (ResNet-50)" → "ImageNet"."""
    return task.split(" (")[0]


def _write(
    figure: go.Figure, text: str, color: str, *, x: float, place: int, shift: float, on_axis: bool = False
) -> None:
    figure.add_annotation(
        x=x, y=place, xref="x" if on_axis else "paper", yref="y", text=text, xanchor="left", yanchor="middle",
        xshift=shift, font={"size": 12, "color": color, "family": FONT}, showarrow=False,
    )  # fmt: skip


def _columns(rows: Sequence[tuple[TaskOrder, Rung]]) -> dict[str, list[float | str | bool | None]]:
    return {
        "chain": [order.chain for order, _ in rows],
        "task": [rung.task for _, rung in rows],
        "noise scale, lower end (unit of the task)": [rung.low for _, rung in rows],
        "noise scale, upper end": [rung.high for _, rung in rows],
    }
