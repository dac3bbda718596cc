"""Steps to a target against the batch size: measured points, fit, and where more batch ceases to save steps."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.common import Interval
from noisescale_dashboard.answers.sweeps import Fit, StepsPoint, TargetFit
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, blank_figure, translucent
from noisescale_dashboard.words.number_format import count, rate, significant, span

HEIGHT, NARROW_HEIGHT = 392, 320
TOP = 34
REGIME_WORDS = {"perfect": "perfect scaling", "diminishing": "diminishing returns", "maximal": "maximal"}
REGIME_OPACITY = {"perfect": 0.0, "diminishing": 0.06, "maximal": 0.13}
PERFECT_BELOW, MAXIMAL_FROM = 0.1, 10.0
"""Ends of diminishing returns in units of B_crit: the slopes of the fit there are −0.91 and −0.09."""
PIXELS_PER_CHARACTER = 6.4
ROOM = 1.6
DASH = "4px,4px"
SLOPE_LABEL_AT = 0.4
"""In units of B_crit: below the curve, before the guide crosses S_min."""
Zone = tuple[str, float, float]


def steps_against_batch_size(
    target: TargetFit, *, unit: str, diverged: Sequence[float] = (), from_slopes: bool = False, narrow: bool
) -> go.Figure:
    """Optimizer steps to the target over the batch size (`unit`), both log.

    Args:
        target: Points, and the fit or the refusal.
        unit: Plural of what an example is.
        diverged: Batch sizes at which every run diverged.
        from_slopes: Take the regimes from the slopes between neighbouring points and not from B_crit; they are also
            taken from there where there is no fit.
        narrow: The figure is as wide as a phone.
    """
    figure = blank_figure(height=NARROW_HEIGHT if narrow else HEIGHT, right=16, top=TOP, bottom=40)
    figure.update_layout(hovermode="closest", hoverdistance=14)
    sizes = [*(point.batch_size for point in target.points), *diverged]
    low, high = (min(sizes) / ROOM, max(sizes) * ROOM) if sizes else (1.0, 1024.0)
    axes.set_batch_axis(figure, low, high, at_most=5 if narrow else 12)
    top = _set_steps_axis(figure, target)
    _add_regimes(figure, regime_zones(target, low, high, from_slopes=from_slopes), (low, high), narrow=narrow)
    if target.fit is not None:
        _add_fit(figure, target, target.fit, ends=(low, high))
    _add_critical_batch(figure, target.critical_batch, ends=(low, high), label_at=0.88 if diverged else 0.97)
    _add_points(figure, target.points, unit)
    _add_diverged(figure, diverged, top)
    labels.write_x_title(figure, f"batch size, {labels.plain(unit)}")
    attach_table(figure, _columns(target, unit))
    return figure


def regime_zones(target: TargetFit, low: float, high: float, *, from_slopes: bool = False) -> list[Zone]:
    """Regime and its ends in batch sizes, between `low` and `high`, smallest first."""
    if target.fit is not None and target.fit.critical_batch.value is not None and not from_slopes:
        center = target.fit.critical_batch.value
        edges = [low, PERFECT_BELOW * center, MAXIMAL_FROM * center, high]
        zones = zip(REGIME_WORDS, edges, edges[1:], strict=False)
        return [
            (name, max(start, low), min(end, high)) for name, start, end in zones if max(start, low) < min(end, high)
        ]
    zones_by_slope: list[Zone] = []
    for slope in target.regimes:
        if zones_by_slope and zones_by_slope[-1][0] == slope.regime:
            zones_by_slope[-1] = (slope.regime, zones_by_slope[-1][1], slope.to_batch_size)
        else:
            zones_by_slope.append((slope.regime, slope.from_batch_size, slope.to_batch_size))
    return zones_by_slope


def _set_steps_axis(figure: go.Figure, target: TargetFit) -> float:
    steps = [point.steps or point.low for point in target.points if (point.steps or point.low) > 0]
    if target.fit is not None and target.fit.min_steps.value:
        steps.append(target.fit.min_steps.value)
    low, high = axes.log_range(min(steps), max(steps), room=0.09) if steps else (1.0, 100.0)
    axes.set_log_axis(figure, low, high)
    return high


def _add_regimes(figure: go.Figure, zones: Sequence[Zone], ends: tuple[float, float], *, narrow: bool) -> None:
    pixels = 280 if narrow else 500
    for name, start, end in zones:
        if REGIME_OPACITY.get(name):
            figure.add_shape(
                type="rect", x0=start, x1=end, y0=0, y1=1, yref="paper", layer="below", line={"width": 0},
                fillcolor=translucent(LIGHT.text_3, REGIME_OPACITY[name]),
            )  # fmt: skip
        width = pixels * math.log(end / start) / math.log(ends[1] / ends[0])
        words = REGIME_WORDS.get(name, name)
        fitting = next((w for w in (words, words.split()[0]) if len(w) * PIXELS_PER_CHARACTER < width), None)
        if fitting:
            _write(
                figure,
                math.sqrt(start * end),
                1.0,
                fitting,
                LIGHT.text_2,
                y_ref="paper",
                anchors=("center", "bottom"),
                shift=(0, 5),
            )


def _add_fit(figure: go.Figure, target: TargetFit, fit: Fit, *, ends: tuple[float, float]) -> None:
    least, examples = fit.min_steps.value or 0.0, fit.min_examples.value or 0.0
    curve = [point for point in target.curve if ends[0] <= point.batch_size <= ends[1]]
    x = [point.batch_size for point in curve]
    figure.add_scatter(
        x=list(ends), y=[examples / size for size in ends], name="slope −1", mode="lines", hoverinfo="skip",
        line={"color": LIGHT.text_3, "width": 1.25, "dash": DASH},
    )  # fmt: skip
    figure.add_shape(
        type="line", x0=ends[0], x1=ends[1], y0=least, y1=least, layer="below",
        line={"color": LIGHT.text_3, "width": 1.25, "dash": DASH},
    )  # fmt: skip
    marks.add_band(
        figure, x, [point.low for point in curve], [point.high for point in curve], LIGHT.noise,
        marks.INTERVAL_OPACITY, name="interval",
    )  # fmt: skip
    figure.add_scatter(
        x=x, y=[point.steps for point in curve], name="fit", mode="lines", line={"color": LIGHT.noise, "width": 2},
        customdata=[[significant(p.batch_size), significant(p.steps), span(p.low, p.high)] for p in curve],
        hovertemplate="batch %{customdata[0]}, fit<br><b>%{customdata[1]}</b> steps [%{customdata[2]}]<extra></extra>",
    )  # fmt: skip
    _write(
        figure, ends[0], least, f"S_min {significant(least)}", LIGHT.text_3, anchors=("left", "bottom"), shift=(6, 2)
    )
    at = SLOPE_LABEL_AT * (fit.critical_batch.value or 0.0)
    if at > 2 * ends[0]:
        _write(figure, at, examples / at, "slope −1", LIGHT.text_3, anchors=("right", "top"), shift=(-4, -2))


def _add_critical_batch(figure: go.Figure, found: Interval, *, ends: tuple[float, float], label_at: float) -> None:
    """A line with its band; of a refused sweep the bounds it leaves."""
    low, high = max(found.low or ends[0], ends[0]), min(found.high or ends[1], ends[1])
    if found.value is None and found.low is None and found.high is None:
        return
    # a bound outside the axis would colour all of it or nothing
    says_something = found.value is not None or (low, high) != ends
    if says_something and low < high:
        figure.add_shape(
            type="rect", x0=low, x1=high, y0=0, y1=1, yref="paper", layer="below", line={"width": 0},
            fillcolor=translucent(LIGHT.recommended, 0.16 if found.value is not None else 0.08),
        )  # fmt: skip
    known = found.value or found.low or found.high or ends[0]
    at = min(max(known, ends[0]), ends[1])
    if at == known:
        dash = "solid" if found.value is not None else "2px,3px"
        figure.add_shape(
            type="line", x0=at, x1=at, y0=0, y1=1, yref="paper", layer="below",
            line={"color": LIGHT.recommended, "width": 1.5, "dash": dash},
        )  # fmt: skip
    is_right = math.log(at / ends[0]) > 0.62 * math.log(ends[1] / ends[0])
    edge, anchor, shift = (low, "right", -7) if is_right else (high, "left", 7)
    edge = edge if found.value is not None else at
    _write(
        figure,
        edge,
        label_at,
        f"<b>B_crit {bound_words(found)}</b>",
        LIGHT.recommended_text,
        y_ref="paper",
        anchors=(anchor, "top"),
        shift=(shift, 0),
    )
    if found.value is not None:
        _write(
            figure,
            edge,
            label_at,
            span(found.low, found.high),
            LIGHT.text_3,
            y_ref="paper",
            anchors=(anchor, "top"),
            shift=(shift, -16),
        )


def bound_words(found: Interval) -> str:
    """In short: "992", "> 5,000" or "< 40"."""
    if found.value is not None:
        return significant(found.value)
    if found.low is not None:
        return f"> {significant(found.low)}"
    return f"< {significant(found.high)}" if found.high is not None else "not known"


def _add_points(figure: go.Figure, points: Sequence[StepsPoint], unit: str) -> None:
    reached = [point for point in points if point.steps is not None]
    censored = [point for point in points if point.steps is None and point.low > 0]
    steps = [point.steps or 0.0 for point in reached]
    figure.add_scatter(
        x=[point.batch_size for point in reached], y=steps, name="measured", mode="markers",
        error_y=marks.whiskers(steps, [p.low for p in reached], [p.high for p in reached], LIGHT.noise),
        marker=marks.ringed(LIGHT.noise, is_open=[point.is_at_grid_edge for point in reached]),
        customdata=[_words(point) for point in reached],
        hovertemplate=f"batch <b>%{{customdata[0]}}</b> {labels.plain(unit)}<br><b>%{{customdata[1]}}</b> steps, seen "
        "between %{customdata[2]}<br>LR %{customdata[3]}<extra></extra>",
    )  # fmt: skip
    if censored:
        figure.add_scatter(
            x=[point.batch_size for point in censored], y=[point.low for point in censored], name="not reached",
            mode="markers",
            marker={
                "symbol": "triangle-up", "size": 13, "color": LIGHT.noise, "line": {"width": 1.5, "color": LIGHT.panel},
            },
            customdata=[[count(p.batch_size), significant(p.low), rate(p.lr)] for p in censored],
            hovertemplate="batch <b>%{customdata[0]}</b><br>not reached in %{customdata[1]} steps<br>"
            "LR %{customdata[2]}<extra></extra>",
        )  # fmt: skip


def _words(point: StepsPoint) -> list[str]:
    tried = f"{rate(point.lr)}, best of {point.num_learning_rates}" + ", edge of the grid" * point.is_at_grid_edge
    return [count(point.batch_size), significant(point.steps), span(point.low, point.high), tried]


def _add_diverged(figure: go.Figure, sizes: Sequence[float], top: float) -> None:
    if not sizes:
        return
    figure.add_scatter(
        x=list(sizes), y=[top / 1.15] * len(sizes), name="diverged", mode="markers",
        marker={"symbol": "x-thin", "size": 9, "line": {"width": 2, "color": LIGHT.text_3}},
        customdata=[[count(size)] for size in sizes],
        hovertemplate="batch <b>%{customdata[0]}</b><br>diverged at every learning rate<extra></extra>",
    )  # fmt: skip


def _write(
    figure: go.Figure, x: float, y: float, text: str, color: str, *,
    anchors: tuple[str, str], shift: tuple[float, float], y_ref: str = "y",
) -> None:  # fmt: skip
    figure.add_annotation(
        x=math.log10(x), y=y if y_ref == "paper" else math.log10(y), yref=y_ref, text=text,
        xanchor=anchors[0], yanchor=anchors[1], xshift=shift[0], yshift=shift[1], showarrow=False,
        font={"size": 12, "color": color, "family": FONT},
    )  # fmt: skip


def _columns(target: TargetFit, unit: str) -> dict[str, list[float | str | bool | None]]:
    """A row a batch size."""
    points, found = target.points, {r.batch_size: r.log_ratio for r in target.fit.residuals} if target.fit else {}
    return {
        f"batch size ({unit})": [point.batch_size for point in points],
        "best learning rate": [point.lr for point in points],
        "at the edge of the grid": [point.is_at_grid_edge for point in points],
        "runs averaged": [point.num_runs for point in points],
        "outcome": ["reached" if point.steps is not None else "not reached" for point in points],
        "steps": [point.steps for point in points],
        "seen after step": [point.low for point in points],
        "seen at step": [point.high for point in points],
        "log of steps over fit": [found.get(point.batch_size) for point in points],
    }
