"""Data to the target of a published sweep against its batch size, with the fit."""

import math

import plotly.graph_objects as go

from noisescale_dashboard.answers.sweeps import Fit, PublishedPoint, PublishedSweep
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, blank_figure, translucent
from noisescale_dashboard.figures.sweeps.steps_against_batch_size import bound_words
from noisescale_dashboard.words.number_format import count, significant, span

HEIGHT, NARROW_HEIGHT = 470, 300
NUM_CURVE_POINTS = 60


def published_sweep(sweep: PublishedSweep, *, narrow: bool) -> go.Figure:
    """Mean data to the target (the workload's unit, log) with its standard error, over the batch size (log)."""
    figure = blank_figure(height=NARROW_HEIGHT if narrow else HEIGHT, right=16, top=14, bottom=40, left=56)
    figure.update_layout(hovermode="closest", hoverdistance=14)
    sizes = [point.batch_size for point in sweep.points]
    low, high = min(sizes) / 1.6, max(sizes) * 1.6
    axes.set_batch_axis(figure, low, high, at_most=5 if narrow else 10)
    means = [point.to_target_mean for point in sweep.points]
    axes.set_log_axis(figure, *axes.log_range(min(means), max(means), room=0.15))
    _add_fit(figure, sweep, low, high)
    _add_critical_batch(figure, sweep, low, high)
    errors = [standard_error(point) for point in sweep.points]
    figure.add_scatter(
        x=sizes, y=means, name="published", mode="markers",
        marker=marks.ringed(LIGHT.text_2, is_open=[True] * len(sizes)),
        error_y={"type": "data", "array": errors, "thickness": 1.5, "width": 0, "color": LIGHT.text_2},
        customdata=[
            [
                count(p.batch_size), significant(p.to_target_mean), significant(e), p.seeds,
                labels.plain(p.optimizer or ""),
            ]
            for p, e in zip(sweep.points, errors, strict=True)
        ],
        hovertemplate="batch <b>%{customdata[0]}</b> %{customdata[4]}<br>to target <b>%{customdata[1]}</b> ± "
        f"%{{customdata[2]}} {labels.plain(sweep.unit)}, %{{customdata[3]}} runs<extra></extra>",
    )  # fmt: skip
    unit = "examples" if sweep.tokens_per_example is None else f"sequences of {sweep.tokens_per_example} tokens"
    labels.write_x_title(figure, f"batch size, {unit}")
    attach_table(
        figure,
        {
            "batch size (examples)": sizes,
            f"data to target, mean ({sweep.unit})": means,
            f"standard deviation ({sweep.unit})": [point.to_target_sd for point in sweep.points],
            "runs": [point.seeds for point in sweep.points],
            "optimizer": [point.optimizer for point in sweep.points],
        },
    )
    return figure


def standard_error(point: PublishedPoint) -> float:
    """Of the mean."""
    return point.to_target_sd / math.sqrt(point.seeds) if point.seeds else 0.0


def _add_fit(figure: go.Figure, sweep: PublishedSweep, low: float, high: float) -> None:
    fit = sweep.fit
    if fit is None or not fit.min_examples.value or not fit.critical_batch.value:
        return
    sizes = [low * (high / low) ** (i / (NUM_CURVE_POINTS - 1)) for i in range(NUM_CURVE_POINTS)]
    figure.add_scatter(
        x=sizes, y=[fitted_examples(fit, size) for size in sizes], name="fit", mode="lines",
        line={"color": LIGHT.noise, "width": 2}, hoverinfo="skip",
    )  # fmt: skip


def fitted_examples(fit: Fit, size: float) -> float:
    """E = E_min (1 + B / B_crit), and where the sweep turns E_min (s / B)^p more."""
    least, critical = fit.min_examples.value or 0.0, fit.critical_batch.value or math.inf
    more = 0.0 if fit.turn is None else (fit.turn.start / size) ** fit.turn.power
    return least * (1 + size / critical + more)


def _add_critical_batch(figure: go.Figure, sweep: PublishedSweep, low: float, high: float) -> None:
    found = sweep.critical_batch
    known = found.value or found.low or found.high
    if known is None:
        return
    at = min(max(known, low), high)
    start, end = max(found.low or low, low), min(found.high or high, high)
    if start < end:
        figure.add_shape(
            type="rect", x0=start, x1=end, y0=0, y1=1, yref="paper", layer="below", line={"width": 0},
            fillcolor=translucent(LIGHT.recommended, 0.16 if found.value is not None else 0.08),
        )  # fmt: skip
    if at == known:
        figure.add_shape(
            type="line", x0=at, x1=at, y0=0, y1=1, yref="paper", layer="below",
            line={"color": LIGHT.recommended, "width": 1.5, "dash": "solid" if found.value else "2px,3px"},
        )  # fmt: skip
    is_right = math.log(at / low) > 0.6 * math.log(high / low)
    between = f"<br>{span(found.low, found.high)}" if found.value is not None else ""
    figure.add_annotation(
        x=math.log10(at), y=0.98, yref="paper", text=f"<b>B_crit {bound_words(found)}</b>{between}",
        xanchor="right" if is_right else "left", yanchor="top", xshift=-7 if is_right else 7, showarrow=False,
        align="right" if is_right else "left", font={"size": 12, "color": LIGHT.recommended_text, "family": FONT},
    )  # fmt: skip
