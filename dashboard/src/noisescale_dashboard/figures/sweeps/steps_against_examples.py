"""Steps against examples to each target of a sweep: measured points, the fitted hyperbola, and B_crit at its bend."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.sweeps import CurvePoint, StepsPoint, TargetFit
from noisescale_dashboard.figures.parts import axes, labels
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, TRANSPARENT, blank_figure, translucent
from noisescale_dashboard.words.number_format import count, exactly, significant, span

HEIGHT, NARROW_HEIGHT = 392, 320
MAX_TARGETS = 4
BAND_OPACITY = 0.16
ROOM = 1.7
"""How far the axes reach beyond the outermost point, as a factor."""
CROSS_PIXELS = 12


def steps_against_examples(targets: Sequence[TargetFit], chosen: float, *, unit: str, narrow: bool) -> go.Figure:
    """Examples (`unit`) over optimizer steps to each target, both log; a band on the chosen target alone."""
    drawn = drawn_targets(targets, chosen)
    height = NARROW_HEIGHT if narrow else HEIGHT
    figure = blank_figure(height=height, right=44, top=14, bottom=40)
    figure.update_layout(hovermode="closest", hoverdistance=14)
    x_ends, y_ends = _ends(drawn, chosen)
    axes.set_log_x_axis(figure, *x_ends, narrow=narrow)
    axes.set_log_axis(figure, *y_ends)
    colors = LIGHT.sequential[-len(drawn) :] if drawn else ()
    for target, color in zip(drawn, colors, strict=True):
        _add_target(figure, target, color, unit=unit, ends=(x_ends, y_ends), is_chosen=target.target == chosen)
    _write_targets(figure, drawn, chosen, (x_ends, y_ends))
    labels.write_x_title(figure, "optimizer steps to target")
    attach_table(figure, _columns(targets, unit))
    return figure


def drawn_targets(targets: Sequence[TargetFit], chosen: float) -> list[TargetFit]:
    """At most four targets, easiest first: the ends, the chosen one, and others evenly between."""
    ordered = sorted(targets, key=_hardness)
    if len(ordered) <= MAX_TARGETS:
        return ordered
    last = len(ordered) - 1
    places = {round(i * last / (MAX_TARGETS - 1)) for i in range(MAX_TARGETS)}
    own = next((i for i, target in enumerate(ordered) if target.target == chosen), last)
    if own not in places:
        places.remove(min(places - {0, last}, key=lambda place: abs(place - own)))
        places.add(own)
    return [ordered[place] for place in sorted(places)]


def _hardness(target: TargetFit) -> float:
    """Examples of the largest batch size that reached the target: harder targets take more."""
    return max((point.examples for point in target.points if point.examples is not None), default=math.inf)


Ends = tuple[float, float]


def _ends(drawn: Sequence[TargetFit], chosen: float) -> tuple[Ends, Ends]:
    steps = [point.steps or point.low for target in drawn for point in target.points]
    examples = [(point.steps or point.low) * point.batch_size for target in drawn for point in target.points]
    for target in drawn:
        if target.fit is not None and target.target == chosen:
            steps.append(2 * (target.fit.min_steps.value or 0))
            examples.append(2 * (target.fit.min_examples.value or 0))
    return _around(steps), _around(examples)


def _around(values: Sequence[float]) -> Ends:
    known = [value for value in values if value > 0]
    if not known:
        return 1.0, 100.0
    # a decade at least: what hardly changes should look so
    room = max(ROOM, math.sqrt(10 * min(known) / max(known)))
    return min(known) / room, max(known) * room


def _add_target(
    figure: go.Figure, target: TargetFit, color: str, *, unit: str, ends: tuple[Ends, Ends], is_chosen: bool
) -> None:
    curve = _visible(target.curve, ends)
    name = f"target {exactly(target.target)}"
    if is_chosen and curve:
        _add_band(figure, curve, color)
    figure.add_scatter(
        x=[point.steps for point in curve], y=[point.steps * point.batch_size for point in curve], name=name,
        mode="lines", line={"color": color, "width": 2 if is_chosen else 1.75},
        customdata=[
            [significant(p.batch_size), significant(p.steps * p.batch_size), significant(p.steps)] for p in curve
        ],
        hovertemplate=f"{name}, fit<br>batch <b>%{{customdata[0]}}</b><br>%{{customdata[2]}} steps, "
        + f"%{{customdata[1]}} {labels.plain(unit)}<extra></extra>",
    )  # fmt: skip
    _add_points(figure, target, color, name, unit)
    fit = target.fit
    if fit is None or fit.min_steps.value is None or fit.min_examples.value is None:
        return
    figure.add_scatter(
        x=[2 * fit.min_steps.value], y=[2 * fit.min_examples.value], name="B_crit", mode="markers",
        marker={"symbol": "cross-thin", "size": CROSS_PIXELS, "line": {"color": LIGHT.recommended, "width": 2.25}},
        hovertemplate=f"{name}<br>B_crit <b>{significant(fit.critical_batch.value)}</b> "
        + f"[{span(fit.critical_batch.low, fit.critical_batch.high)}] {labels.plain(unit)}<extra></extra>",
    )  # fmt: skip


def _visible(curve: Sequence[CurvePoint], ends: tuple[Ends, Ends]) -> list[CurvePoint]:
    (least_steps, most_steps), (least, most) = ends
    return [
        point
        for point in curve
        if least_steps <= point.steps <= most_steps and least <= point.steps * point.batch_size <= most
    ]


def _add_band(figure: go.Figure, curve: Sequence[CurvePoint], color: str) -> None:
    low = [(point.low, point.low * point.batch_size) for point in curve]
    high = [(point.high, point.high * point.batch_size) for point in reversed(curve)]
    figure.add_scatter(
        x=[x for x, _ in (*low, *high)], y=[y for _, y in (*low, *high)], name="interval", mode="lines",
        line={"width": 0}, fill="toself", fillcolor=translucent(color, BAND_OPACITY), hoverinfo="skip",
    )  # fmt: skip


def _add_points(figure: go.Figure, target: TargetFit, color: str, name: str, unit: str) -> None:
    for symbol, points in (
        ("circle", [p for p in target.points if p.steps is not None]),
        ("triangle-up", [p for p in target.points if p.steps is None]),
    ):
        if not points:
            continue
        figure.add_scatter(
            x=[p.steps or p.low for p in points], y=[(p.steps or p.low) * p.batch_size for p in points],
            name=f"{name}, {'reached' if symbol == 'circle' else 'not reached'}", mode="markers",
            marker={
                "size": 8 if symbol == "circle" else 12, "symbol": symbol,
                "color": [LIGHT.panel if p.is_at_grid_edge else color for p in points],
                "line": {"width": 1.75, "color": [color if p.is_at_grid_edge else LIGHT.panel for p in points]},
            },
            customdata=[_words(p) for p in points],
            hovertemplate=f"{name}<br>batch <b>%{{customdata[0]}}</b>, LR %{{customdata[1]}}<br>"
            + f"%{{customdata[2]}} steps, %{{customdata[3]}} {labels.plain(unit)}<extra></extra>",
        )  # fmt: skip


def _words(point: StepsPoint) -> list[str]:
    more = "" if point.steps is not None else "> "
    steps = point.steps or point.low
    rate = f"{point.lr:.3g} of {point.num_learning_rates} tried" + (", edge of the grid" * point.is_at_grid_edge)
    return [count(point.batch_size), rate, more + significant(steps), more + significant(steps * point.batch_size)]


def _write_targets(figure: go.Figure, drawn: Sequence[TargetFit], chosen: float, ends: tuple[Ends, Ends]) -> None:
    """The target at the right end of each curve, and B_crit beside the cross of the chosen one."""
    placed = []
    for target in drawn:
        curve = _visible(target.curve, ends)
        known = [(p.steps, p.steps * p.batch_size) for p in curve]
        known = known or [(p.steps or p.low, (p.steps or p.low) * p.batch_size) for p in target.points]
        if known:
            x, y = max(known)
            placed.append((x, y, target))
    for x, y, target in placed:
        _write(figure, x, y, f"<b>{exactly(target.target)}</b>", LIGHT.text_2, anchor="left", shift=(7, 0))
    fit = next((target.fit for target in drawn if target.target == chosen), None)
    if fit is not None and fit.min_steps.value and fit.min_examples.value:
        words = f"<b>B_crit {significant(fit.critical_batch.value)}</b>"
        x, y = 2 * fit.min_steps.value, 2 * fit.min_examples.value
        _write(figure, x, y, words, LIGHT.recommended_text, anchor="left", shift=(9, 11))


def _write(
    figure: go.Figure, x: float, y: float, text: str, color: str, *, anchor: str, shift: tuple[float, float]
) -> None:
    figure.add_annotation(
        x=math.log10(x), y=math.log10(y), text=text, xanchor=anchor, yanchor="middle", xshift=shift[0],
        yshift=shift[1], showarrow=False, bgcolor=TRANSPARENT, font={"size": 12, "color": color, "family": FONT},
    )  # fmt: skip


def _columns(targets: Sequence[TargetFit], unit: str) -> dict[str, list[float | str | bool | None]]:
    """A row a target and batch size."""
    rows = [(target, point) for target in targets for point in target.points]
    fits = [target.fit for target, _ in rows]
    return {
        "target": [target.target for target, _ in rows],
        f"batch size ({unit})": [point.batch_size for _, point in rows],
        "best learning rate": [point.lr for _, point in rows],
        "learning rates tried": [point.num_learning_rates for _, point in rows],
        "at the edge of the grid": [point.is_at_grid_edge for _, point in rows],
        "runs averaged": [point.num_runs for _, point in rows],
        "steps": [point.steps for _, point in rows],
        "seen after step": [point.low for _, point in rows],
        "seen at step": [point.high for _, point in rows],
        f"examples ({unit})": [point.examples for _, point in rows],
        "B_crit": [fit.critical_batch.value if fit else None for fit in fits],
        "B_crit, lower end": [target.critical_batch.low for target, _ in rows],
        "B_crit, upper end": [target.critical_batch.high for target, _ in rows],
    }
