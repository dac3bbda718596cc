"""B_crit against the target it belongs to: harder targets have a larger one."""

from collections.abc import Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.laws import LawPoint
from noisescale_dashboard.answers.sweeps import TargetFit
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.marks import add_law
from noisescale_dashboard.figures.parts.theme import LIGHT, blank_figure
from noisescale_dashboard.words.number_format import exactly, significant, span

HEIGHT = 226
MAX_TARGET_TICKS, NARROW_TARGET_TICKS = 6, 4


def critical_batch_against_target(
    targets: Sequence[TargetFit], *, goal: str, unit: str, metric: str, narrow: bool, law: Sequence[LawPoint] = ()
) -> go.Figure:
    """B_crit (`unit`, log) with 95 % whiskers over the target, harder ones to the right; bounds as open arrows.

    `law` is a line with its band, dotted where it reaches beyond the targets.
    """
    figure = blank_figure(height=HEIGHT, right=16, top=12, bottom=40)
    figure.update_layout(hovermode="closest", hoverdistance=14)
    fitted = [target for target in targets if target.fit is not None]
    bounded = [target for target in targets if target.fit is None and _bound(target) is not None]
    known = [end for t in targets for end in (t.critical_batch.value, t.critical_batch.low, t.critical_batch.high)]
    ends = axes.quantiles(known, 0, 1)
    top = max([*(ends or (1000.0,)), *(point.value for point in law)])
    bottom = min([*(ends or (10.0,)), *(point.value for point in law)])
    axes.set_log_axis(figure, *axes.log_range(bottom, top, room=0.12))
    _set_target_axis(figure, [target.target for target in targets], law, goal=goal, narrow=narrow)
    add_law(
        figure, law, LIGHT.recommended,
        across=("target", lambda x: exactly(float(f"{x:.4g}"))), value_name="B_crit", unit=labels.plain(unit),
    )  # fmt: skip
    _add_fitted(figure, fitted, unit)
    _add_bounded(figure, bounded, unit)
    labels.write_x_title(figure, f"target {labels.plain(metric, 24)} (harder →)")
    attach_table(figure, _columns(targets, unit))
    return figure


def _set_target_axis(
    figure: go.Figure, targets: Sequence[float], law: Sequence[LawPoint], *, goal: str, narrow: bool
) -> None:
    reached = [*targets, *(point.x for point in law)]
    low, high = (min(reached), max(reached)) if reached else (0.0, 1.0)
    room = 0.08 * (high - low) or 0.1 * abs(high) or 0.1
    ends = [low - room, high + room] if goal == "max" else [high + room, low - room]
    at_most = NARROW_TARGET_TICKS if narrow else MAX_TARGET_TICKS
    figure.update_xaxes(range=ends, showspikes=False, tickformat="~g")
    if len(targets) <= at_most:
        figure.update_xaxes(tickvals=list(targets), ticktext=[exactly(target) for target in targets])
    else:
        figure.update_xaxes(dtick=axes.tick_step(ends, at_most), tick0=0)


def _add_fitted(figure: go.Figure, fitted: Sequence[TargetFit], unit: str) -> None:
    values = [target.critical_batch.value or 0.0 for target in fitted]
    figure.add_scatter(
        x=[target.target for target in fitted], y=values, name="B_crit", mode="markers",
        marker=marks.ringed(LIGHT.recommended),
        error_y=marks.whiskers(
            values, [t.critical_batch.low for t in fitted], [t.critical_batch.high for t in fitted], LIGHT.recommended
        ),
        customdata=[
            [exactly(t.target), significant(v), span(t.critical_batch.low, t.critical_batch.high)]
            for v, t in zip(values, fitted, strict=True)
        ],
        hovertemplate="target %{customdata[0]}<br>B_crit <b>%{customdata[1]}</b> "
        + f"[%{{customdata[2]}}] {labels.plain(unit)}<extra></extra>",
    )  # fmt: skip


def _bound(target: TargetFit) -> tuple[float, str] | None:
    """The bound that is known, and to which side it is open."""
    found = target.critical_batch
    if found.low is not None:
        return found.low, ">"
    return (found.high, "<") if found.high is not None else None


def _add_bounded(figure: go.Figure, bounded: Sequence[TargetFit], unit: str) -> None:
    bounds = [(target, bound) for target in bounded if (bound := _bound(target)) is not None]
    if not bounds:
        return
    figure.add_scatter(
        x=[target.target for target, _ in bounds], y=[value for _, (value, _) in bounds], name="bound", mode="markers",
        marker={
            "symbol": ["triangle-up-open" if side == ">" else "triangle-down-open" for _, (_, side) in bounds],
            "size": 10, "color": LIGHT.recommended, "line": {"width": 1.75},
        },
        customdata=[[exactly(target.target), f"{side} {significant(value)}"] for target, (value, side) in bounds],
        hovertemplate="target %{customdata[0]}<br>B_crit <b>%{customdata[1]}</b> "
        + f"{labels.plain(unit)}, no fit<extra></extra>",
    )  # fmt: skip


def _columns(targets: Sequence[TargetFit], unit: str) -> dict[str, list[float | str | bool | None]]:
    """A row a target."""
    fits = [target.fit for target in targets]
    found = [target.critical_batch for target in targets]
    return {
        "target": [target.target for target in targets],
        f"B_crit ({unit})": [one.value for one in found],
        f"B_crit, lower end ({unit})": [one.low for one in found],
        f"B_crit, upper end ({unit})": [one.high for one in found],
        "S_min (steps)": [fit.min_steps.value if fit else None for fit in fits],
        f"E_min ({unit})": [fit.min_examples.value if fit else None for fit in fits],
        "rms of log(steps over fit)": [fit.rms if fit else None for fit in fits],
        "refused because": [target.refusal.reason if target.refusal else None for target in targets],
    }
