"""Trainings to one target: time against money with the front, and the line of records over the years."""

import math
from collections.abc import Sequence
from datetime import date

import plotly.graph_objects as go

from noisescale_dashboard.answers.cost import Board, ComputeGrowth, Record, Training
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, blank_figure
from noisescale_dashboard.words.number_format import count, duration, money, ratio, significant

HEIGHT, NARROW_HEIGHT = 380, 300
SECONDS = 3600
ROOM = 0.12
NAMED = 40
"""Characters of a name inside a figure."""


def time_against_money(board: Board, *, narrow: bool) -> go.Figure:
    """USD over hours to the target, both log; filled: on the front, than which none is as fast and as cheap."""
    figure = _blank(narrow=narrow)
    priced = [one for one in board.rows if one.usd]
    if priced:
        spots = [one.on_spot for one in priced if one.on_spot is not None]
        hours = [*(one.hours for one in priced), *(one.hours for one in spots)]
        usd = [*(one.usd or 0.0 for one in priced), *(one.usd for one in spots)]
        axes.set_log_x_axis(figure, *axes.log_range(min(hours), max(hours), room=ROOM), narrow=narrow)
        axes.set_log_axis(figure, *axes.log_range(min(usd), max(usd), room=ROOM))
    _add_front(figure, [one for one in priced if one.is_on_front])
    figure.add_scatter(
        x=[one.hours for one in priced], y=[one.usd for one in priced], name="trainings", mode="markers",
        marker=marks.ringed(LIGHT.text_2, is_open=[not one.is_on_front for one in priced]),
        customdata=[[_words(one)] for one in priced], hovertemplate="%{customdata[0]}<extra></extra>",
    )  # fmt: skip
    spot = [one for one in priced if one.on_spot is not None]
    if spot:
        figure.add_scatter(
            x=[one.on_spot.hours for one in spot if one.on_spot], y=[one.on_spot.usd for one in spot if one.on_spot],
            name="on interruptible machines", mode="markers",
            marker={"size": 7, "symbol": "diamond-open", "color": LIGHT.text_3},
            customdata=[[f"{labels.plain(one.name, NAMED)} on interruptible machines"] for one in spot],
            hovertemplate="%{customdata[0]}<br>%{x:.3~g} h, %{y:$,.2f}<extra></extra>",
        )  # fmt: skip
    labels.write_x_title(figure, "hours to the target")
    attach_table(figure, _columns(board.rows))
    return figure


def _add_front(figure: go.Figure, front: Sequence[Training]) -> None:
    """The best that there is at each time: less money only for more hours."""
    ordered = sorted(front, key=lambda one: one.hours)
    figure.add_scatter(
        x=[one.hours for one in ordered], y=[one.usd for one in ordered], name="front", mode="lines",
        line={"color": LIGHT.text_1, "width": 2, "shape": "hv"}, hoverinfo="skip",
    )  # fmt: skip


def _words(one: Training) -> str:
    devices = "" if one.num_devices is None else f"<br>{count(one.num_devices)} × {labels.plain(one.device or '')}"
    return (
        f"<b>{labels.plain(one.name, NAMED)}</b><br>{duration(one.hours * SECONDS)}, {money(one.usd)}"
        f"<br>{one.day}{devices}<br>{labels.plain(one.price_said)}"
    )


def records_over_time(board: Board, *, narrow: bool) -> go.Figure:
    """Hours of every training over its day, log; the line falls where a record was broken."""
    figure = _blank(narrow=narrow)
    if board.rows:
        hours = [one.hours for one in board.rows]
        axes.set_log_axis(figure, *axes.log_range(min(hours), max(hours), room=ROOM))
    figure.update_xaxes(type="date", showspikes=False, nticks=4 if narrow else 8)
    figure.add_scatter(
        x=[one.day for one in board.rows], y=[one.hours for one in board.rows], name="trainings", mode="markers",
        marker=marks.ringed(LIGHT.text_3, is_open=[True] * len(board.rows)),
        customdata=[[_words(one)] for one in board.rows], hovertemplate="%{customdata[0]}<extra></extra>",
    )  # fmt: skip
    line = board.records
    figure.add_scatter(
        x=[one.day for one in line], y=[one.value for one in line], name="records", mode="lines+markers",
        line={"color": LIGHT.text_1, "width": 2, "shape": "hv"}, marker=marks.ringed(LIGHT.text_1),
        customdata=[[_record_words(one)] for one in line], hovertemplate="%{customdata[0]}<extra></extra>",
    )  # fmt: skip
    if line:
        _write_factor(figure, line[-1])
    labels.write_x_title(figure, "submitted" if board.rows and board.rows[0].origin == "dawnbench" else "began")
    attach_table(
        figure,
        {
            "day": [one.day for one in line],
            "record": [one.name for one in line],
            "hours": [one.value for one in line],
            "times of the first": [one.of_baseline for one in line],
            "times of the one before": [one.of_previous for one in line],
        },
    )
    return figure


def _write_factor(figure: go.Figure, last: Record) -> None:
    figure.add_annotation(
        x=1, y=1, xref="paper", yref="paper", xanchor="right", yanchor="top", showarrow=False,
        text=f"<b>{count(round(last.of_baseline)) if last.of_baseline >= 10 else ratio(last.of_baseline)}"
        f"{' ×' if last.of_baseline >= 10 else ''}</b> faster than the first",
        font={"size": 12, "color": LIGHT.text_1, "family": FONT},
    )  # fmt: skip


def _record_words(one: Record) -> str:
    return (
        f"<b>{labels.plain(one.name, NAMED)}</b><br>{duration(one.value * SECONDS)}, {one.day}"
        f"<br>{ratio(one.of_previous)} the record before"
    )


def _blank(*, narrow: bool) -> go.Figure:
    figure = blank_figure(height=NARROW_HEIGHT if narrow else HEIGHT, right=16, top=14, bottom=40, left=56)
    figure.update_layout(hovermode="closest", hoverdistance=14)
    return figure


def _columns(rows: Sequence[Training]) -> dict[str, list[float | str | bool | None]]:
    return {
        "training": [one.name for one in rows],
        "whose": [one.origin for one in rows],
        "day": [one.day for one in rows],
        "hours": [one.hours for one in rows],
        "USD": [one.usd for one in rows],
        "price": [one.price_said for one in rows],
        "devices": [one.num_devices for one in rows],
        "kind of device": [one.device for one in rows],
        "device-hours": [one.device_hours for one in rows],
        "on the front": [one.is_on_front for one in rows],
        "record": [one.is_record for one in rows],
        "left off the front since": [one.excluded for one in rows],
    }


# Compute of runs over their days, with the fitted and the published doubling times.

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
