"""The headline figure: each task's noise scale against its measured critical batch, one's own and published.

After McCandlish et al. 2018, arXiv:1812.06162, figure 4, with intervals, and with what was published as a range or a
bound drawn as one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from noisescale_dashboard.answers.common import Interval
from noisescale_dashboard.answers.comparisons import ComparedTask, Comparison, PublishedCriticalBatch, PublishedTask
from noisescale_dashboard.figures.comparison.task_order import short_name
from noisescale_dashboard.figures.parts import free_places, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.free_places import Box, Ground
from noisescale_dashboard.figures.parts.labels import plain, write_x_title
from noisescale_dashboard.figures.parts.theme import (
    FONT,
    LIGHT,
    TRANSPARENT,
    blank_figure,
    colors_of_units,
    translucent,
)
from noisescale_dashboard.words.number_format import exactly, ratio, si, significant, span

HEIGHT, NARROW_HEIGHT = 800, 372
PLOT_WIDTH, NARROW_PLOT_WIDTH = 710, 276
"""About; the axes take what makes decades equal."""
TOP, BOTTOM, LEFT = 16, 42, 50
FAR = 1e30
"""Where the band ends: beyond any axis."""
OWN_NAME, PUBLISHED_NAME = 26, 24
LEFT_OUT_OPACITY = 0.4


@dataclass(frozen=True, slots=True)
class DecadeFrame:
    """Ranges in log10 and pixels a decade: the same along both axes."""

    x: tuple[float, float]
    y: tuple[float, float]
    pixels: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Pixels from the lower left corner."""
        return (math.log10(x) - self.x[0]) * self.pixels, (math.log10(y) - self.y[0]) * self.pixels


EDGE = 0.01
"""Share of the axis by which ticks keep off its end."""

EDGE_TRIES = 6
"""Places along an edge of the band that are tried for its words."""


def noise_scale_against_critical_batch(found: Comparison, *, narrow: bool) -> go.Figure:
    """B_crit over the noise scale, log-log with equal decades, each task in its own unit, the unit by colour.

    Own tasks are filled, with whiskers, published ones open; a small dot is the start, joined to the average.
    """
    height = NARROW_HEIGHT if narrow else HEIGHT
    figure = blank_figure(height=height, left=LEFT, right=16, top=TOP, bottom=BOTTOM)
    figure.update_layout(hovermode="closest", hoverdistance=14, dragmode=False)
    frame = _frame(found, NARROW_PLOT_WIDTH if narrow else PLOT_WIDTH, height - TOP - BOTTOM)
    colors = colors_of_units([*(task.unit for task in found.drawn), *(task.unit for task in found.published)])
    _set_axes(figure, frame, narrow=narrow)
    _add_band(figure, frame, found.published_statistics.rms_factor.value or 1.0)
    for task in found.published:
        _add_published(figure, task, colors[task.unit])
    _add_without_noise_scale(figure, found.published_sweeps, frame)
    for own in found.drawn:
        _add_own(figure, own, colors[own.unit])
    ground = _write_names(figure, found, frame, narrow=narrow)
    _write_band(figure, frame, found.published_statistics.rms_factor.value or 1.0, ground)
    write_x_title(figure, "noise scale, average of the run")
    attach_table(figure, _columns(found))
    return figure


def _frame(found: Comparison, width: int, height: int) -> DecadeFrame:
    scales, batches = [], []
    for own in found.drawn:
        scales += [own.noise_scale.value, own.noise_scale.low, own.noise_scale.high, own.start.value]
        batches += [own.critical_batch.value, own.critical_batch.low, own.critical_batch.high]
    for task in found.published:
        for number in (task.noise_scale, task.noise_scale_at_start):
            scales += [number.value, number.low, number.high] if number else []
        for number in (task.critical_batch, task.critical_batch_at_start):
            batches += [number.value, number.low, number.high] if number else []
    x, y = (_ends([one for one in known if one]) for known in (scales, batches))
    pixels = min(width / (x[1] - x[0]), height / (y[1] - y[0]))
    return DecadeFrame(_widened(x, width / pixels), _widened(y, height / pixels), pixels)


def _ends(known: Sequence[float]) -> tuple[float, float]:
    return math.log10(min(known, default=1.0)) - 0.35, math.log10(max(known, default=1e6)) + 0.45


def _widened(ends: tuple[float, float], decades: float) -> tuple[float, float]:
    spare = (decades - (ends[1] - ends[0])) / 2
    return ends[0] - spare, ends[1] + spare


def _set_axes(figure: go.Figure, frame: DecadeFrame, *, narrow: bool) -> None:
    every = 2 if narrow else 1
    ticks = [10.0**power for power in range(-12, 31, every)]
    words = [si(tick) if tick >= 1 else f"{tick:g}" for tick in ticks]
    figure.update_xaxes(type="log", range=list(frame.x), tickvals=ticks, ticktext=words, showspikes=False)
    figure.update_yaxes(type="log", range=list(frame.y), tickvals=ticks, ticktext=words)
    # "domain": otherwise each change of width would widen the ranges further. A fixed axis would leave the bond.
    figure.update_xaxes(constrain="domain")
    figure.update_yaxes(fixedrange=False, scaleanchor="x", scaleratio=1, constrain="domain", constraintoward="bottom")


def _add_band(figure: go.Figure, frame: DecadeFrame, factor: float) -> None:
    ends = [1 / FAR, FAR]
    figure.add_scatter(
        x=[*ends, *reversed(ends)], y=[ends[0] * factor, ends[1] * factor, ends[1] / factor, ends[0] / factor],
        mode="lines", line={"width": 0}, fill="toself", fillcolor=translucent(LIGHT.text_3, 0.08), hoverinfo="skip",
        name="band",
    )  # fmt: skip
    figure.add_scatter(
        x=ends, y=ends, mode="lines", line={"color": LIGHT.axis, "width": 1.25}, hoverinfo="skip", name="identity"
    )


def _write_band(figure: go.Figure, frame: DecadeFrame, factor: float, ground: Ground) -> None:
    """What the edges of the band are, where nothing else is written."""
    top = min(frame.y[1] - math.log10(factor), frame.x[1]) - 0.5
    bottom = max(frame.x[0], frame.y[0] + math.log10(factor)) + 0.9
    for text, shift, start, step in (
        (f"× {factor:.1f}", math.log10(factor), top, -0.5),
        (f"÷ {factor:.1f}, 1 s.d. of Table 1", -math.log10(factor), bottom, 0.5),
    ):
        for x in (start + tried * step for tried in range(EDGE_TRIES)):
            place = ground.place(*frame.at(10**x, 10 ** (x + shift)), num_characters=len(text))
            if place is not None:
                anchors, pixels = (place.x_anchor, place.y_anchor), (place.x_shift, place.y_shift)
                _write(figure, (x, x + shift), text, LIGHT.text_3, anchors=anchors, shift=pixels)
                break


def _add_published(figure: go.Figure, task: PublishedTask, color: str) -> None:
    if task.form == "range":
        _add_range(figure, task, color)
        return
    x, y = task.noise_scale.value, task.critical_batch.value or task.critical_batch.low
    if x is None or y is None:
        return
    name = plain(task.task)
    start, batch = task.noise_scale_at_start, task.critical_batch_at_start
    if start and batch and start.value and batch.value:
        _join(figure, (start.value, batch.value), (x, y), color)
        _add_start(
            figure, (start.value, batch.value), color,
            hover=f"<b>{name}</b>, published, at the start<br>noise scale {si(start.value)} {task.unit}<br>"
            f"critical batch {si(batch.value)}",
        )  # fmt: skip
    is_bound = task.form == "lower_bound"
    if is_bound:
        _add_arrow(figure, x, y, color)
    figure.add_scatter(
        x=[x], y=[y], mode="markers", name=f"published {task.task}",
        marker={"size": 10, "color": LIGHT.panel, "line": {"color": color, "width": 2}},
        hovertemplate=f"<b>{name}</b>, published<br>noise scale <b>{si(x)}</b> {task.unit}<br>critical batch "
        + (f"> {si(y)}, a bound" if is_bound else f"<b>{si(y)}</b>, {ratio(y / x)} the noise scale")
        + "<extra></extra>",
    )  # fmt: skip


def _add_range(figure: go.Figure, task: PublishedTask, color: str) -> None:
    x0, x1, y0, y1 = (
        task.noise_scale.low, task.noise_scale.high, task.critical_batch.low, task.critical_batch.high,
    )  # fmt: skip
    if x0 is None or x1 is None or y0 is None or y1 is None:
        return
    figure.add_shape(
        type="rect", x0=x0, x1=x1, y0=y0, y1=y1, layer="below", fillcolor=translucent(color, 0.05),
        line={"color": color, "width": 1.25, "dash": "3px,3px"},
    )  # fmt: skip
    figure.add_scatter(
        x=[x0, x1, x1, x0], y=[y0, y0, y1, y1], mode="markers", name=f"published {task.task}",
        marker={"size": 12, "color": TRANSPARENT},
        hovertemplate=f"<b>{plain(task.task)}</b>, published as ranges<br>"
        f"noise scale {si(x0)} – {si(x1)} {task.unit}<br>"
        f"critical batch {si(y0)} – {si(y1)}<extra></extra>",
    )  # fmt: skip


def _add_arrow(figure: go.Figure, x: float, y: float, color: str) -> None:
    """Where the number may lie instead: upwards."""
    figure.add_scatter(
        x=[x, x], y=[y * 1.2, y * 1.8], mode="lines", line={"color": color, "width": 1.5}, hoverinfo="skip", name="open"
    )
    figure.add_scatter(
        x=[x], y=[y * 1.9], mode="markers", hoverinfo="skip", name="open",
        marker={"symbol": "triangle-up", "size": 9, "color": color},
    )  # fmt: skip


def _add_without_noise_scale(figure: go.Figure, sweeps: Sequence[PublishedCriticalBatch], frame: DecadeFrame) -> None:
    """Critical batches whose noise scale is not published: ticks at the right edge, however wide the plot is."""
    known = [(one, one.critical_batch.value) for one in sweeps if one.critical_batch.value is not None]
    edge = 10 ** (frame.x[1] - EDGE * (frame.x[1] - frame.x[0]))
    figure.add_scatter(
        x=[edge] * len(known), y=[value for _, value in known], mode="markers", name="B_crit only",
        marker={"symbol": "line-ew-open", "size": 11, "color": LIGHT.text_3, "line": {"width": 1.5}},
        customdata=[
            [f"{plain(one.suite, 30)} {plain(one.workload, 40)}", significant(value), _between(one.critical_batch)]
            for one, value in known
        ],
        hovertemplate="<b>%{customdata[0]}</b>, published<br>critical batch <b>%{customdata[1]}</b> examples"
        "%{customdata[2]}<br>no noise scale is published<extra></extra>",
    )  # fmt: skip


def _add_own(figure: go.Figure, task: ComparedTask, color: str) -> None:
    x, y = task.noise_scale.value, task.critical_batch.value
    assert x is not None, "drawn tasks have both numbers"
    assert y is not None, "drawn tasks have both numbers"
    if task.start.value is not None:
        _join(figure, (task.start.value, y), (x, y), color)
        _add_start(
            figure, (task.start.value, y), color,
            hover=f"<b>{plain(task.task)}</b>, noise scale at the start<br>{si(task.start.value)} {plain(task.unit)}",
        )  # fmt: skip
    figure.add_scatter(
        x=[x], y=[y], mode="markers", name=f"own {task.task}",
        opacity=LEFT_OUT_OPACITY if task.left_out is not None else 1.0,
        error_x=marks.whiskers([x], [task.noise_scale.low], [task.noise_scale.high], color),
        error_y=marks.whiskers([y], [task.critical_batch.low], [task.critical_batch.high], color),
        marker={"size": 10, "color": color, "line": {"color": LIGHT.panel, "width": 1.5}},
        customdata=[[task.sweep_id]],
        hovertemplate=_hover(task) + "<extra></extra>",
    )  # fmt: skip


def _hover(task: ComparedTask) -> str:
    target = "" if task.target is None else f" at {plain(task.metric or 'training loss', 24)} {exactly(task.target)}"
    said = [
        f"<b>{plain(task.task)}</b>{', ' + plain(task.optimizer, 20) if task.optimizer else ''}, yours",
        f"noise scale <b>{significant(task.noise_scale.value)}</b> {plain(task.unit)}{_between(task.noise_scale)}",
        f"critical batch <b>{significant(task.critical_batch.value)}</b>{_between(task.critical_batch)}{target}",
    ]
    if task.kappa.value is not None:
        said.append(f"critical batch ÷ noise scale {significant(task.kappa.value, 2)}{_between(task.kappa, 2)}")
    if task.left_out is not None:
        said.append("not in the statistics")
    return "<br>".join(said)


def _between(found: Interval, digits: int = 3) -> str:
    if found.low is None or found.high is None:
        return ""
    shown = f"{significant(found.low, digits)} – {significant(found.high, digits)}"
    return f" [{shown if digits < 3 else span(found.low, found.high)}]"


def _join(figure: go.Figure, start: tuple[float, float], end: tuple[float, float], color: str) -> None:
    figure.add_scatter(
        x=[start[0], end[0]], y=[start[1], end[1]], mode="lines", hoverinfo="skip", name="from start to average",
        line={"color": translucent(color, 0.35), "width": 1.25},
    )  # fmt: skip


def _add_start(figure: go.Figure, at: tuple[float, float], color: str, *, hover: str) -> None:
    figure.add_scatter(
        x=[at[0]], y=[at[1]], mode="markers", name="start", hovertemplate=hover + "<extra></extra>",
        marker={"size": 5, "color": LIGHT.panel, "line": {"color": translucent(color, 0.6), "width": 1.25}},
    )  # fmt: skip


def _write_names(figure: go.Figure, found: Comparison, frame: DecadeFrame, *, narrow: bool) -> Ground:
    """Names where there is room: one's own first, and on a phone those alone; hovering tells the others.

    Returns:
        The plot with the places that are taken.
    """
    width, height = ((ends[1] - ends[0]) * frame.pixels for ends in (frame.x, frame.y))
    ground = Ground(Box(0, width, 0, height))
    points = [(task.task, _point(task), LIGHT.text_1, True) for task in found.drawn]
    others = [(short_name(task.task), _published_point(task), LIGHT.text_3, False) for task in found.published]
    for _, at, _, is_own in (*points, *others):
        reach = (12 if is_own else 6) / (2 if narrow else 1)
        x, y = frame.at(*at)
        ground.take(Box(x - reach, x + reach, y - reach / 2, y + reach / 2))
    for name, at, color, is_own in (*points, *(() if narrow else others)):
        limit = OWN_NAME if is_own else PUBLISHED_NAME
        shown = plain(name, limit)
        place = ground.place(*frame.at(*at), num_characters=min(len(name), limit))
        if place is not None:
            _write(
                figure, (math.log10(at[0]), math.log10(at[1])), f"<b>{shown}</b>" if is_own else shown, color,
                anchors=(place.x_anchor, place.y_anchor), shift=(place.x_shift, place.y_shift),
            )  # fmt: skip
    return ground


def _point(task: ComparedTask) -> tuple[float, float]:
    return task.noise_scale.value or 1.0, task.critical_batch.value or 1.0


def _published_point(task: PublishedTask) -> tuple[float, float]:
    """The mark; of a range its lower right corner."""
    if task.form == "range":
        return task.noise_scale.high or 1.0, task.critical_batch.low or 1.0
    return task.noise_scale.value or 1.0, task.critical_batch.value or task.critical_batch.low or 1.0


def _write(
    figure: go.Figure, at: tuple[float, float], text: str, color: str, *,
    anchors: tuple[str, str], shift: tuple[float, float],
) -> None:  # fmt: skip
    figure.add_annotation(
        x=at[0], y=at[1], text=text, xanchor=anchors[0], yanchor=anchors[1], xshift=shift[0], yshift=shift[1],
        font={"size": 12, "color": color, "family": FONT}, showarrow=False, borderpad=0, height=free_places.LINE_PIXELS,
    )  # fmt: skip


def _columns(found: Comparison) -> dict[str, list[float | str | bool | None]]:
    """A row a task; published ranges and bounds have no value."""
    own, published, only = found.drawn, found.published, found.published_sweeps
    nothing: list[float | str | bool | None] = [None] * len(only)
    return {
        "task": [*(t.task for t in own), *(t.task for t in published), *(f"{s.suite} {s.workload}" for s in only)],
        "source": [*("yours" for _ in own), *(t.source for t in published), *(s.suite for s in only)],
        "optimizer": [*(t.optimizer for t in own), *(None for _ in published), *nothing],
        "unit": [*(t.unit for t in own), *(t.unit for t in published), *("examples" for _ in only)],
        "noise scale (unit)": [
            *(t.noise_scale.value for t in own), *(t.noise_scale.value for t in published), *nothing
        ],
        "noise scale, lower end": [
            *(t.noise_scale.low for t in own), *(t.noise_scale.low for t in published), *nothing
        ],
        "noise scale, upper end": [
            *(t.noise_scale.high for t in own), *(t.noise_scale.high for t in published), *nothing
        ],
        "noise scale at the start (unit)": [
            *(t.start.value for t in own),
            *(t.noise_scale_at_start.value if t.noise_scale_at_start else None for t in published), *nothing,
        ],
        "B_crit (unit)": [
            *(t.critical_batch.value for t in own), *(t.critical_batch.value for t in published),
            *(s.critical_batch.value for s in only),
        ],
        "B_crit, lower end": [
            *(t.critical_batch.low for t in own), *(t.critical_batch.low for t in published),
            *(s.critical_batch.low for s in only),
        ],
        "B_crit, upper end": [
            *(t.critical_batch.high for t in own), *(t.critical_batch.high for t in published),
            *(s.critical_batch.high for s in only),
        ],
        "in the statistics": [*(t.left_out is None for t in own), *(t.form == "point" for t in published),
                              *(False for _ in only)],
    }  # fmt: skip
