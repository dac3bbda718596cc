"""The noise scale over training with its interval, and the batch in use in the same unit on the same axis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from noisescale_dashboard.answers.common import Interval
from noisescale_dashboard.answers.series import Event, NoiseScaleSeries, Points
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table, noise_scale_columns
from noisescale_dashboard.figures.parts.theme import LIGHT, blank_figure, translucent
from noisescale_dashboard.words.number_format import count, rate, si, significant, span

HEIGHT, NARROW_HEIGHT = 372, 300
TENTATIVE_OPACITY = 0.5
DECAYED_LR_OPACITY = 0.6
DECAYED_LR_SHARE = 0.1
"""Below this share of the peak learning rate the noise scale does not stand for the critical batch."""
TALLEST_BAND = 3.0
NUM_ARROWS = 24
"""Along the whole axis; a short stretch gets its share, at least one."""
WORDS_ON_BOUNDS = 2


@dataclass(frozen=True, slots=True)
class SeriesView:
    """How a reader looks at a series.

    Attributes:
        kind: Along what training is measured: step, units, time or loss.
        unit: What people count in.
        noun: Plural of what an example is.
        is_live: Points are still to come.
        is_zoomed: A part of the run is shown.
        narrow: The figure is as wide as a phone.
        revision: Changes where the browser must not keep the reader's zoom.
        terms: Numerator and denominator of the noise scale.
        has_envelope: The least and most of single records are drawn behind the interval.
        shows_all: The y axis covers every value, not the 0.5 to 99.5 % range of them.
        height: Of the figure, in pixels; None: as on a page.
        ends_in_latest: The value at the end is that of the latest window, as everywhere else on the page; otherwise it
            is that of the last point, whose window was chosen, or of which the run has gone on.
    """

    kind: str = "step"
    unit: str = "examples"
    noun: str = "examples"
    is_live: bool = False
    is_zoomed: bool = False
    narrow: bool = False
    revision: str = "all"
    terms: tuple[str, str] = ("tr Σ", "|G|²")
    has_envelope: bool = True
    shows_all: bool = False
    height: int | None = None
    ends_in_latest: bool = True

    @property
    def pixels(self) -> int:
        """Height of the figure."""
        return self.height or (NARROW_HEIGHT if self.narrow else HEIGHT)


@dataclass(frozen=True, slots=True)
class MarkFrame:
    """What the marks of one drawing share."""

    points: Points
    along: axes.Progress
    low: float
    high: float
    view: SeriesView
    end: Interval


def noise_scale_over_training(series: NoiseScaleSeries, view: SeriesView) -> go.Figure:
    """The noise scale (examples, log) with its 95 % band and the batch, over `view.kind`."""
    along = axes.progress(series.points, view.kind, unit=view.unit, units_per_example=series.units_per_example)
    low, high = visible_range(series.points, shows_all=view.shows_all)
    frame = MarkFrame(series.points, along, low, high, view, _end(series, view))
    right = 18 if view.narrow else labels.room_for(_end_labels(frame), at_least=124)
    figure = blank_figure(height=view.pixels, right=right, top=26, bottom=40)
    figure.update_layout(uirevision=view.revision)
    axes.set_progress_axis(figure, along, is_live=view.is_live, is_zoomed=view.is_zoomed, narrow=view.narrow)
    axes.set_log_axis(figure, low, high)
    _add_marks(figure, frame)
    _add_words(figure, frame, series)
    attach_table(figure, noise_scale_columns(series, view.noun))
    return figure


def _end(series: NoiseScaleSeries, view: SeriesView) -> Interval:
    """What stands at the end of the line."""
    if view.ends_in_latest and not view.is_zoomed:
        return Interval(series.latest.value, series.latest.low, series.latest.high, series.latest.level)
    points = series.points
    return Interval(points.value[-1], points.low[-1], points.high[-1]) if points.step else Interval()


def visible_range(points: Points, *, shows_all: bool = False) -> tuple[float, float]:
    """Ends of the y axis: every batch, and the 0.5 to 99.5 % range of values, bounds and intervals; or all of them.

    Upper ends of intervals count up to `TALLEST_BAND` times the largest value: just before the noise scale ceases to be
    resolved they run off to infinity and would press everything else flat. A band that leaves the axis is seen to.
    """
    batches = [b for b in points.global_batch if b]
    ends = axes.full_range if shows_all else axes.typical_range
    values = ends([*points.value, *points.low])
    top = TALLEST_BAND * max([*(values or ()), *batches], default=1.0)
    seen = ends([*points.value, *points.low, *(min(h, top) for h in points.high if h is not None)])
    known = [*(seen or ()), *batches] or [1.0, 100.0]
    return axes.log_range(min(known), max(known))


def num_outside(points: Points, *, shows_all: bool = False) -> int:
    """How many resolved or tentative values lie outside the y axis."""
    low, high = visible_range(points, shows_all=shows_all)
    return sum(1 for value in points.value if value is not None and not low <= value <= high)


def _add_marks(figure: go.Figure, frame: MarkFrame) -> None:
    if frame.along.kind == "loss":
        _add_dots(figure, frame)
        return
    _add_envelope(figure, frame)
    bounded_high = [h if v is not None else None for h, v in zip(frame.points.high, frame.points.value, strict=True)]
    marks.add_band(
        figure, frame.along.at, frame.points.low, bounded_high, LIGHT.noise, marks.INTERVAL_OPACITY, name="interval"
    )
    _add_bounds(figure, frame)
    _add_lines(figure, frame)
    _add_words_of_points(figure, frame)
    _add_batch(figure, frame)
    _add_outsiders(figure, frame)


def _add_envelope(figure: go.Figure, frame: MarkFrame) -> None:
    """What single records scatter over, drawn down to the axis where the least of them is zero or below."""
    points = frame.points
    if not (frame.view.has_envelope and any(most is not None for most in points.value_max)):
        return
    least, most = (
        [None if v is None else max(v, frame.low) for v in ends] for ends in (points.value_min, points.value_max)
    )
    marks.add_band(figure, frame.along.at, least, most, LIGHT.noise, marks.FAINT_OPACITY, name="min–max")


def _add_lines(figure: go.Figure, frame: MarkFrame) -> None:
    """A pale line through every value, and full lines over what is resolved."""
    values, num = frame.points.value, len(frame.points.value)
    if all(value is None for value in values):
        return
    peak = max((r for r in frame.points.lr if r is not None), default=0.0)
    strokes = [_stroke(frame.points, i, peak) for i in range(num)]
    figure.add_scatter(
        x=frame.along.at, y=values, name="noise scale", mode="lines", opacity=TENTATIVE_OPACITY,
        line={"color": LIGHT.noise, "width": 2}, connectgaps=False, hoverinfo="skip",
    )  # fmt: skip
    for stroke, opacity in (("resolved", 1.0), ("decayed", _laid_over(DECAYED_LR_OPACITY))):
        figure.add_scatter(
            x=frame.along.at, y=[v if s == stroke else None for v, s in zip(values, strokes, strict=True)],
            name=stroke, mode="lines", opacity=opacity, line={"color": LIGHT.noise, "width": 2}, connectgaps=False,
            hoverinfo="skip",
        )  # fmt: skip


def _laid_over(wanted: float) -> float:
    """The opacity that, over the pale line, looks like `wanted`."""
    return (wanted - TENTATIVE_OPACITY) / (1 - TENTATIVE_OPACITY)


def _add_words_of_points(figure: go.Figure, frame: MarkFrame) -> None:
    """An unseen line that says of each point its value or bound: of two lines each would say its own at one step."""
    points, num = frame.points, len(frame.points.value)
    figure.add_scatter(
        x=frame.along.at,
        y=[v if v is not None else low for v, low in zip(points.value, points.low, strict=True)],
        name="noise scale in words", mode="lines", line={"color": LIGHT.noise, "width": 0}, connectgaps=False,
        customdata=[[_words_of_point(frame, i), "", points.step[i]] for i in range(num)],
        hovertemplate="noise scale %{customdata[0]}<extra></extra>",
    )  # fmt: skip


def _words_of_point(frame: MarkFrame, i: int) -> str:
    points = frame.points
    if points.value[i] is None:
        return f"<b>> {si(points.low[i])}</b>  not resolved"
    said = f"<b>{si(points.value[i])}</b>  [{span(points.low[i], points.high[i], dense=True)}]"
    return said if points.state[i] == "resolved" else f"{said}  tentative"


def _stroke(points: Points, i: int, peak_lr: float) -> str:
    if points.value[i] is None:
        return "none"
    if points.state[i] != "resolved":
        return "tentative"
    lr = points.lr[i] if points.lr else None
    return "decayed" if lr is not None and lr < DECAYED_LR_SHARE * peak_lr else "resolved"


def _hover_row(frame: MarkFrame, i: int) -> list[str | int]:
    points = frame.points
    return [si(points.value[i]), span(points.low[i], points.high[i], dense=True), points.step[i]]


def _add_bounds(figure: go.Figure, frame: MarkFrame) -> None:
    """Where nothing is resolved: a dotted line at the lower bound with arrows upward, and no number."""
    parts = _bound_stretches(frame)
    if not parts:
        return
    x, low = frame.along.at, [b if b is None else max(b, frame.low) for b in frame.points.low]
    xs: list[float | None] = []
    ys: list[float | None] = []
    for part in parts:
        xs += [*(x[i] for i in part), x[part[-1]], x[part[0]], None]
        ys += [*(low[i] for i in part), frame.high, frame.high, None]
    fade = [
        [0, translucent(LIGHT.noise, 0.2)],
        [0.55, translucent(LIGHT.noise, 0.05)],
        [1, translucent(LIGHT.noise, 0)],
    ]
    figure.add_scatter(
        x=xs, y=ys, name="no upper bound", mode="lines", line={"width": 0}, fill="toself", hoverinfo="skip",
        fillgradient={"type": "vertical", "colorscale": fade},
    )  # fmt: skip
    inside = {i for part in parts for i in part}
    figure.add_scatter(
        x=x, y=[low[i] if i in inside else None for i in range(len(x))], name="lower bound", mode="lines",
        line={"width": 1.5, "color": LIGHT.noise, "dash": "2px,3px"}, hoverinfo="skip",
    )  # fmt: skip
    arrows = [i for part in parts for i in _evenly(part, max(1, round(NUM_ARROWS * len(part) / len(x))))]
    figure.add_scatter(
        x=[x[i] for i in arrows], y=[(low[i] or frame.low) * _pixels_up(frame, 7) for i in arrows],
        name="open upward", mode="markers", hoverinfo="skip",
        marker={"symbol": "arrow-up", "size": 8, "color": LIGHT.noise},
    )  # fmt: skip


def _bound_stretches(frame: MarkFrame) -> list[range]:
    points = frame.points

    def has_bound_only(i: int) -> bool:
        return points.value[i] is None and points.low[i] is not None and frame.along.at[i] is not None

    return list(marks.stretches(len(points.value), has_bound_only))


def _evenly(part: range, at_most: int) -> list[int]:
    every = math.ceil(len(part) / at_most)
    return list(part[(every - 1) // 2 :: every])


def _pixels_up(frame: MarkFrame, pixels: int) -> float:
    return float((frame.high / frame.low) ** (pixels / (frame.view.pixels - 66)))


def _add_batch(figure: go.Figure, frame: MarkFrame) -> None:
    points = frame.points
    figure.add_scatter(
        x=frame.along.at, y=points.global_batch, name="batch", mode="lines",
        line={"color": LIGHT.batch, "width": 2, "shape": "hv"},
        customdata=[_batch_row(points, i) for i in range(len(points.step))],
        hovertemplate="batch <b>%{customdata[0]}</b>%{customdata[1]}<extra></extra>",
    )  # fmt: skip


def _batch_row(points: Points, i: int) -> list[str | int]:
    loss = points.loss[i] if points.loss else None
    lr = points.lr[i] if points.lr else None
    more = [f"loss {significant(loss)}" if loss is not None else "", f"LR {rate(lr)}" if lr is not None else ""]
    said = " · ".join(part for part in more if part)
    return [count(points.global_batch[i]), f"<br>{said}" if said else "", points.step[i]]


def _add_outsiders(figure: go.Figure, frame: MarkFrame) -> None:
    """A triangle at the edge for each value outside the axis: nothing is dropped silently."""
    above = [i for i, v in enumerate(frame.points.value) if v is not None and v > frame.high]
    below = [i for i, v in enumerate(frame.points.value) if v is not None and v < frame.low]
    for found, y, symbol in ((above, frame.high, "triangle-up"), (below, frame.low, "triangle-down")):
        if found:
            figure.add_scatter(
                x=[frame.along.at[i] for i in found], y=[y for _ in found], name="outside the axis", mode="markers",
                hoverinfo="skip", cliponaxis=False, marker={"symbol": symbol, "size": 6, "color": LIGHT.noise},
            )  # fmt: skip


def _add_dots(figure: go.Figure, frame: MarkFrame) -> None:
    """Against loss the points do not come in order, so they are dots with whiskers, not a line."""
    points = frame.points
    figure.update_layout(hovermode="closest", hoverdistance=14)
    for state, opacity in (("resolved", 0.75), ("tentative", 0.3)):
        own = [i for i, v in enumerate(points.value) if v is not None and points.state[i] == state]
        figure.add_scatter(
            x=[frame.along.at[i] for i in own], y=[points.value[i] for i in own], name=state, mode="markers",
            marker={"size": 5, "color": translucent(LIGHT.noise, opacity)},
            error_y={
                "type": "data", "symmetric": False, "thickness": 1, "width": 0, "color": translucent(LIGHT.noise, 0.2),
                "array": [(points.high[i] or 0) - (points.value[i] or 0) for i in own],
                "arrayminus": [(points.value[i] or 0) - (points.low[i] or 0) for i in own],
            },
            customdata=[_hover_row(frame, i) for i in own],
            hovertemplate="step %{customdata[2]:,}, loss %{x:.4~g}<br>"
            "noise scale <b>%{customdata[0]}</b>  [%{customdata[1]}]<extra></extra>",
        )  # fmt: skip
    figure.add_scatter(
        x=frame.along.at, y=points.global_batch, name="batch", mode="markers", hoverinfo="skip",
        marker={"size": 4, "symbol": "square", "color": LIGHT.batch},
    )  # fmt: skip


def _add_words(figure: go.Figure, frame: MarkFrame, series: NoiseScaleSeries) -> None:
    if frame.along.kind != "loss":
        labels.mark_events(
            figure, list(_placed(series.events, frame)), x_range=figure.layout.xaxis.range, narrow=frame.view.narrow
        )
        _write_bounds(figure, frame)
    ends = _end_labels(frame)
    last_x = next((x for x in reversed(frame.along.at) if x is not None), None)
    if last_x is not None and frame.along.kind != "loss":
        _add_end_dots(figure, frame, last_x)
    if frame.view.narrow:
        labels.write_inside_labels(figure, ends, x=figure.layout.xaxis.range[1])
    else:
        labels.write_end_labels(figure, ends, low=frame.low, high=frame.high, is_log=True)
    labels.write_x_title(figure, frame.along.title)


def _add_end_dots(figure: go.Figure, frame: MarkFrame, x: float) -> None:
    batch = next((b for b in reversed(frame.points.global_batch) if b), None)
    if frame.end.value is not None:
        marks.add_end_dot(figure, _last_measured(frame, x), frame.end.value, LIGHT.noise)
    if batch is not None:
        marks.add_end_dot(figure, x, batch, LIGHT.batch, symbol="square")


def _last_measured(frame: MarkFrame, x: float) -> float:
    """Where the newest point with a noise scale or a bound stands, as a run that diverged goes on without; else `x`."""
    known = zip(frame.along.at, frame.points.value, frame.points.low, strict=True)
    measured = [at for at, value, low in known if at is not None and (value is not None or low is not None)]
    return measured[-1] if measured else x


def _placed(events: Sequence[Event], frame: MarkFrame) -> list[tuple[float, Event]]:
    at_step = dict(zip(frame.points.step, frame.along.at, strict=True))
    steps = sorted(at_step)
    placed = []
    for event in events:
        nearest = next((step for step in steps if step >= event.step), None)
        x = float(event.step) if frame.along.kind == "step" else at_step.get(nearest) if nearest is not None else None
        if x is not None and steps and steps[0] <= event.step <= steps[-1]:
            placed.append((x, event))
    return placed


def _write_bounds(figure: go.Figure, frame: MarkFrame) -> None:
    longest = sorted(_bound_stretches(frame), key=len, reverse=True)[:WORDS_ON_BOUNDS]
    left, right = figure.layout.xaxis.range
    taken = [a.x for a in figure.layout.annotations]
    length = abs(right - left)
    edge = 0.2 * length if frame.view.narrow else 0.0
    for part in longest:
        first, last = frame.along.at[part[0]] or 0.0, frame.along.at[part[-1]] or 0.0
        middle = (first + last) / 2
        if right - middle < edge or any(abs(middle - x) < 0.16 * length for x in taken):
            continue
        words = _bound_words(frame, part)
        labels.write_on_top(figure, middle, words, LIGHT.noise_text)
        taken.append(middle)


def _bound_words(frame: MarkFrame, part: range) -> str:
    if part[-1] == len(frame.points.value) - 1:
        return "not resolved"
    bound = min(low for i in part if (low := frame.points.low[i]) is not None)
    return f"> {si(bound)}" if frame.view.narrow else f"not resolved, > {si(bound)}"


def _end_labels(frame: MarkFrame) -> list[labels.EndLabel]:
    noise = _noise_label(frame)
    batch = next((b for b in reversed(frame.points.global_batch) if b), None)
    found = [noise] if noise else []
    if batch:
        head = f"batch <b>{count(batch)}</b>" if frame.view.narrow else f"<b>{count(batch)}</b> batch"
        found.append(labels.EndLabel(batch, head, LIGHT.batch_text))
    return found


def _noise_label(frame: MarkFrame) -> labels.EndLabel | None:
    """The last value with its interval, or the last lower bound with the word that it is one."""
    if not frame.points.step:
        return None
    value, low, high = frame.end.value, frame.end.low, frame.end.high
    words = "" if frame.view.narrow else " noise scale"
    if value is not None:
        detail = None if frame.view.narrow else span(low, high)
        return labels.EndLabel(value, f"<b>{significant(value)}</b>{words}", LIGHT.noise_text, detail)
    if low is None:
        return None
    detail = None if frame.view.narrow else "not resolved"
    return labels.EndLabel(low, f"> {significant(low)}{words}", LIGHT.noise_text, detail)
