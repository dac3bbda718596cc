"""Several runs over one axis: noise scale, loss, batch or example efficiency, a colour a run."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from noisescale_dashboard.answers.common import UNKNOWN, Interval, Numbers
from noisescale_dashboard.answers.comparisons import AlignedPoints, AlignedRun, ComparedRuns
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import blank_figure, color_of_slot, translucent
from noisescale_dashboard.words.number_format import count, share, significant, span

HEIGHT, NARROW_HEIGHT = 412, 320
RIGHT, NARROW_RIGHT = 148, 16
TENTATIVE_OPACITY = 0.5
NAME_CHARACTERS = 19
TALLEST_BAND = 3.0
QUANTITIES = ("noise", "loss", "batch", "efficiency")


@dataclass(frozen=True, slots=True)
class RunMark:
    """How one run is drawn: its name, its slot of colour (None: grey), and whether points are still to come.

    `latest` is its noise scale over the latest window, which its label says as the table beside it does; `whole` is the
    name as it was given, where `name` is shortened.
    """

    name: str
    slot: int | None = None
    is_live: bool = False
    latest: Interval = UNKNOWN
    whole: str | None = None

    @property
    def color(self) -> str:
        """Of its line."""
        return color_of_slot(self.slot)


@dataclass(frozen=True, slots=True)
class Axes:
    """What the figure counts: `x` and `y` by their words in the address, `unit` along x, `noun` of an example."""

    x: str
    y: str
    unit: str
    noun: str
    narrow: bool


def runs_side_by_side(found: ComparedRuns, looks: Sequence[RunMark], by: Axes) -> go.Figure:
    """`by.y` of the runs over `by.x`, with 95 % bands; bounds are dotted, the batch is dashed in its run's colour."""
    height = NARROW_HEIGHT if by.narrow else HEIGHT
    figure = blank_figure(height=height, right=NARROW_RIGHT if by.narrow else RIGHT, top=14, bottom=40)
    figure.update_layout(hovermode="closest", hoverdistance=14, uirevision=f"{by.x} {by.y}")
    along = along_axis([run.points.x for run in found.runs], by.x, unit=by.unit)
    axes.set_progress_axis(
        figure, along, is_live=any(look.is_live for look in looks), is_zoomed=False, narrow=by.narrow
    )
    figure.update_xaxes(showspikes=False)
    low, high = _set_y_axis(figure, found.runs, by.y)
    # the coloured ones lie on top
    for run, look in sorted(zip(found.runs, looks, strict=True), key=lambda pair: pair[1].slot is not None):
        _add_run(figure, run.points, look, along, by)
    ends = _end_labels(found.runs, looks, by.y)
    if not by.narrow:
        labels.write_end_labels(figure, ends, low=low, high=high, is_log=_is_log(found.runs, by.y))
    labels.write_x_title(figure, along.title)
    attach_table(figure, _columns(found, looks, by))
    return figure


def along_axis(columns: Sequence[Numbers], kind: str, *, unit: str) -> axes.Progress:
    """The axis that all runs share; seconds become what suits the longest."""
    known = [x for column in columns for x in column if x is not None]
    if kind == "time":
        word, seconds = axes.time_scale(max(known, default=0.0))
        at = tuple(x / seconds for x in known)
        return axes.Progress(kind, at, f"{word} since each run's start", "%{x}", length=seconds)
    if kind == "loss":
        return axes.Progress(kind, tuple(known), "training loss (falling →)", "%{x}")
    title = f"{unit} seen" if kind == "units" else "optimizer step"
    return axes.Progress(kind, tuple(known), labels.plain(title), "%{x}")


def positions(column: Numbers, along: axes.Progress) -> list[float | None]:
    """Places of a run's points on the axis."""
    return [None if x is None else x / along.length for x in column]


def values_of(points: AlignedPoints, y: str) -> tuple[Numbers, Numbers, Numbers]:
    """Value and both ends of a quantity, columns of one length; a quantity without an interval has no ends."""
    nothing: Numbers = (None,) * len(points.x)
    columns = {
        "noise": (points.value, points.low, points.high),
        "loss": (points.loss, points.loss_min, points.loss_max),
        "batch": (points.global_batch, nothing, nothing),
        "efficiency": (points.example_efficiency, points.example_efficiency_low, points.example_efficiency_high),
    }
    return columns[y]


def _set_y_axis(figure: go.Figure, runs: Sequence[AlignedRun], y: str) -> tuple[float, float]:
    if y == "efficiency":
        quarters = [0.0, 0.25, 0.5, 0.75, 1.0]
        figure.update_yaxes(range=[0, 1], tickvals=quarters, ticktext=[share(quarter) for quarter in quarters])
        return 0.0, 1.0
    known = _known(runs, y)
    if not _is_log(runs, y):
        low, high = axes.full_range(known) or (min(known, default=0.0), max(known, default=1.0))
        room = 0.06 * (high - low) or 0.1
        figure.update_yaxes(range=[low - room, high + room], nticks=6, tickformat="~g")
        return low - room, high + room
    low, high = axes.log_range(*(axes.typical_range(known) or (1.0, 100.0)))
    axes.set_log_axis(figure, low, high)
    return low, high


def _known(runs: Sequence[AlignedRun], y: str) -> list[float]:
    """What the axis has to hold: values, lower bounds, batches, and the upper ends that do not run off."""
    found: list[float] = []
    for run in runs:
        value, low, high = values_of(run.points, y)
        shown = [one for one in value if one is not None]
        found += shown
        if y == "noise":
            top = TALLEST_BAND * max(shown, default=0.0)
            found += [one for one in (*low, *run.points.global_batch) if one]
            found += [min(one, top) for one in high if one is not None and top]
    return found


def _is_log(runs: Sequence[AlignedRun], y: str) -> bool:
    if y in ("noise", "batch"):
        return True
    known = _known(runs, y)
    return y == "loss" and bool(known) and min(known) > 0 and max(known) / min(known) > 10


def _add_run(figure: go.Figure, points: AlignedPoints, look: RunMark, along: axes.Progress, by: Axes) -> None:
    x = positions(points.x, along)
    value, low, high = values_of(points, by.y)
    if by.x == "loss":
        _add_dots(figure, x, value, look, words=_words(points, look, by))
        return
    is_measured = by.y in ("noise", "efficiency")
    if look.slot is not None and is_measured:
        bounded = [end if one is not None else None for one, end in zip(value, high, strict=True)]
        marks.add_band(figure, x, low, bounded, look.color, 0.14, name="interval")
    if by.y == "noise":
        _add_bounds(figure, x, points, look)
        if look.slot is not None:
            _add_batch(figure, x, points, look)
    is_sure = [state == "resolved" for state in points.state] if is_measured else [True] * len(value)
    _add_line(figure, x, value, look, opacity=TENTATIVE_OPACITY if is_measured else 1.0, words=_words(points, look, by))
    if is_measured:
        sure = [one if known else None for one, known in zip(value, is_sure, strict=True)]
        _add_line(figure, x, sure, look, opacity=1.0, words=None)


def _add_line(
    figure: go.Figure, x: list[float | None], y: Numbers | list[float | None], look: RunMark, *,
    opacity: float, words: list[list[str]] | None,
) -> None:  # fmt: skip
    """A line; without `words` it lies over another one that has them."""
    figure.add_scatter(
        x=x, y=y, name=look.name if words else f"{look.name}, resolved", mode="lines",
        opacity=opacity, line={"color": look.color, "width": 2 if look.slot is not None else 1.25}, customdata=words,
        **({"hoverinfo": "skip"} if words is None else {"hovertemplate": "%{customdata[0]}<extra></extra>"}),
    )  # fmt: skip


def _add_dots(
    figure: go.Figure, x: list[float | None], y: Numbers, look: RunMark, *, words: list[list[str]]
) -> None:  # fmt: skip
    """Dots where the loss is the axis: a run meets the same loss again, and a line would scribble."""
    figure.add_scatter(
        x=x, y=y, name=look.name, mode="markers", customdata=words, hovertemplate="%{customdata[0]}<extra></extra>",
        marker={"size": 5, "color": translucent(look.color, 0.75)},
    )  # fmt: skip


def _add_bounds(figure: go.Figure, x: list[float | None], points: AlignedPoints, look: RunMark) -> None:
    """Lower bounds where the noise scale is not resolved: dotted, never a number."""
    bounds = [low if value is None else None for value, low in zip(points.value, points.low, strict=True)]
    if any(bound is not None for bound in bounds):
        figure.add_scatter(
            x=x, y=bounds, name=f"{look.name}, at least", mode="lines",
            line={"color": translucent(look.color, 0.7), "width": 1.5, "dash": "2px,3px"},
            customdata=[[f"<b>{labels.plain(look.name)}</b><br>noise scale > {significant(b)}, not resolved"]
                        for b in bounds],
            hovertemplate="%{customdata[0]}<extra></extra>",
        )  # fmt: skip


def _add_batch(figure: go.Figure, x: list[float | None], points: AlignedPoints, look: RunMark) -> None:
    figure.add_scatter(
        x=x, y=points.global_batch, name=f"{look.name}, batch", mode="lines", hoverinfo="skip",
        line={"color": look.color, "width": 1.25, "dash": "6px,4px", "shape": "hv"},
    )  # fmt: skip


def _words(points: AlignedPoints, look: RunMark, by: Axes) -> list[list[str]]:
    value, low, high = values_of(points, by.y)
    head = f"<b>{labels.plain(look.name)}</b>"
    return [
        [f"{head}<br>{x_words(x, by)}<br>{value_words(one, least, most, by)}{_batch_words(batch, by)}"]
        for x, one, least, most, batch in zip(points.x, value, low, high, points.global_batch, strict=True)
    ]


def x_words(x: float | None, by: Axes) -> str:
    """How far a run had come."""
    if x is None:
        return ""
    if by.x == "time":
        return f"{significant(x)} s since its start"
    words = {"step": f"step {count(x)}", "loss": f"loss {significant(x, 4)}"}
    return words.get(by.x) or f"{significant(x)} {labels.plain(by.unit)}"


def value_words(value: float | None, low: float | None, high: float | None, by: Axes) -> str:
    """A value with its interval, in words."""
    between = f" [{span(low, high)}]" if low is not None and high is not None else ""
    if by.y == "noise":
        return f"noise scale <b>{significant(value)}</b>{between} {labels.plain(by.noun)}"
    if by.y == "batch":
        return f"batch <b>{count(value)}</b> {labels.plain(by.noun)}"
    if by.y == "efficiency":
        ends = f" [{share(low)} – {share(high)}]" if between else ""
        return f"uses <b>{share(value)}</b> of each example{ends}"
    return f"loss <b>{significant(value, 4)}</b>" + (f", min–max {span(low, high)}" if between and low != high else "")


def _batch_words(batch: float | None, by: Axes) -> str:
    return f"<br>batch {count(batch)}" if batch is not None and by.y in ("noise", "efficiency") else ""


def _end_labels(runs: Sequence[AlignedRun], looks: Sequence[RunMark], y: str) -> list[labels.EndLabel]:
    """The name of each coloured run beside its last value, or its last bound."""
    found = []
    for run, look in zip(runs, looks, strict=True):
        value, low, _ = values_of(run.points, y)
        last = next((one for one in reversed(value) if one is not None), None)
        bound = next((one for one in reversed(low) if one is not None), None) if last is None else None
        at = last if last is not None else bound
        if look.slot is not None and at is not None:
            said = short_words(at, y) if bound is None else f"> {short_words(at, y)}"
            if y == "noise" and (look.latest.value or look.latest.low):
                said = significant(look.latest.value) if look.latest.value else f"> {significant(look.latest.low)}"
            name = f"<b>{labels.plain(look.name, NAME_CHARACTERS)}</b>"
            found.append(labels.EndLabel(at, name, look.color, said, labels.plain(look.whole or look.name)))
    return found


def short_words(value: float, y: str) -> str:
    """A value for a label."""
    if y == "efficiency":
        return share(value)
    return significant(value, 4) if y == "loss" else significant(value)


def x_column(by: Axes) -> str:
    """The name of the axis among the columns of data."""
    return {"step": "step", "loss": "training loss", "time": "seconds since start"}.get(by.x, f"{by.unit} seen")


def _columns(found: ComparedRuns, looks: Sequence[RunMark], by: Axes) -> dict[str, list[float | str | bool | None]]:
    """A row a point of a run, with all that may be shown of it."""
    rows = [
        (look, run.points, i) for run, look in zip(found.runs, looks, strict=True) for i in range(len(run.points.x))
    ]
    columns: dict[str, list[float | str | bool | None]] = {
        "run": [look.name for look, _, _ in rows],
        x_column(by): [points.x[i] for _, points, i in rows],
        f"noise scale ({by.noun})": [points.value[i] for _, points, i in rows],
        "lower end": [points.low[i] for _, points, i in rows],
        "upper end": [points.high[i] for _, points, i in rows],
        "state": [points.state[i] for _, points, i in rows],
        f"batch ({by.noun})": [points.global_batch[i] for _, points, i in rows],
        "example efficiency": [points.example_efficiency[i] for _, points, i in rows],
    }
    if by.x != "loss":
        columns["loss"] = [points.loss[i] for _, points, i in rows]
    return columns
