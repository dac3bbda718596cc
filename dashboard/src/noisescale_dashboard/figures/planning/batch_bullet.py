"""The batch in use and the recommended one with its intervals, on one axis of powers of two."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.advice import Recommendation
from noisescale_dashboard.answers.plans import Limit
from noisescale_dashboard.figures.parts import axes
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, blank_figure, translucent
from noisescale_dashboard.words.decisions import MOVES
from noisescale_dashboard.words.number_format import count

HEIGHT = 88
CLOSE_LABELS = 0.16
"""Labels nearer than this share of the axis are set on two sides."""


def batch_bullet(recommendation: Recommendation, allowed: Sequence[Limit] = ()) -> go.Figure:
    """■ now and ● recommended; broad bar: statistical 95 %, thin bar: 95 % with the model error; grey: not allowed.

    Where the batch stays, ● is left out: a second batch beside "keep" would ask for a change.

    Args:
        recommendation: Both batches, their intervals, and the limit that binds.
        allowed: All limits; those that do not bind are drawn fainter, with a line where they end.
    """
    now = recommendation.current_batch_size
    best = recommendation.recommended_batch_size if recommendation.decision in MOVES else None
    whole, statistical = recommendation.interval, recommendation.statistical_interval
    inside = recommendation.limited.batch_size if recommendation.limited else None
    low, high = _ends([now, best, whole.low, whole.high, statistical.low, statistical.high, inside])
    figure = blank_figure(height=HEIGHT, left=8, right=8, top=26, bottom=24)
    figure.update_layout(hovermode=False)
    figure.update_yaxes(visible=False, range=[-1, 1])
    values, words = _ticks(low, high, now, best)
    # a little more than the ends, whose ticks rounding would else cut off
    figure.update_xaxes(
        type="log", range=[math.log10(low) - 1e-6, math.log10(high) + 1e-6], tickvals=values, ticktext=words,
        showline=False, ticks="", showspikes=False, fixedrange=True,
    )  # fmt: skip
    figure.add_shape(
        type="line", x0=low, x1=high, y0=0, y1=0, line={"color": LIGHT.line_strong, "width": 1}, layer="below"
    )
    _add_forbidden(figure, recommendation, low, high)
    _add_others(figure, allowed, low, high)
    for bar, half in ((whole, 0.1), (statistical, 0.26)):
        if bar.low is not None and bar.high is not None:
            figure.add_shape(
                type="rect", x0=max(bar.low, low), x1=min(bar.high, high), y0=-half, y1=half,
                fillcolor=translucent(LIGHT.recommended, 0.28), line={"width": 0},
            )  # fmt: skip
    _add_batches(figure, now, best, decades=math.log10(high / low))
    return figure


def _add_forbidden(figure: go.Figure, recommendation: Recommendation, low: float, high: float) -> None:
    limited, free = recommendation.limited, recommendation.interval.value
    if limited is None or not limited.batch_size or not limited.binding or not free or limited.batch_size == free:
        return
    # a limit that made the batch smaller forbids what is above it, one that made it larger what is below
    is_ceiling = limited.batch_size < free
    ends = (max(limited.batch_size, low), high) if is_ceiling else (low, min(limited.batch_size, high))
    if ends[0] >= ends[1]:
        return
    figure.add_shape(
        type="rect", x0=ends[0], x1=ends[1], y0=-0.34, y1=0.34, layer="below",
        fillcolor=translucent(LIGHT.text_3, 0.2), line={"width": 0},
    )  # fmt: skip
    figure.add_annotation(
        x=math.log10(ends[1] if is_ceiling else ends[0]), y=-0.42, xanchor="right" if is_ceiling else "left",
        text=" and ".join(limited.binding_names), yanchor="top", showarrow=False,
        font={"size": 11, "color": LIGHT.text_3, "family": FONT},
    )  # fmt: skip


def _add_others(figure: go.Figure, allowed: Sequence[Limit], low: float, high: float) -> None:
    """What limits that do not bind forbid, where that lies on the axis."""
    for limit in allowed:
        if limit.is_binding or not limit.is_possible:
            continue
        for end, is_ceiling in ((limit.low, False), (limit.high, True)):
            if end is None or not low < end < high:
                continue
            figure.add_shape(
                type="rect", x0=end if is_ceiling else low, x1=high if is_ceiling else end, y0=-0.34, y1=0.34,
                fillcolor=translucent(LIGHT.text_3, 0.1), line={"width": 0}, layer="below", name=limit.kind,
            )  # fmt: skip
            figure.add_shape(
                type="line", x0=end, x1=end, y0=-0.34, y1=0.34, line={"color": LIGHT.text_3, "width": 1}, layer="below"
            )
            figure.add_annotation(
                x=math.log10(end), y=-0.42, xanchor="left" if is_ceiling else "right", yanchor="top", showarrow=False,
                text=limit.name,
                font={"size": 11, "color": LIGHT.text_3, "family": FONT},
            )  # fmt: skip


def _ends(known: list[float | None]) -> tuple[float, float]:
    found = [value for value in known if value]
    if not found:
        return 16.0, 4096.0
    # at most 12 doublings around the two batches: an uncalibrated interval may be a thousandfold
    center = math.log2(found[0])
    first = max(math.floor(math.log2(min(found)) - 0.3), center - 6)
    last = min(math.ceil(math.log2(max(found)) + 0.3), center + 6)
    return 2.0**first, 2.0**last


def _ticks(low: float, high: float, now: float | None, best: float | None) -> tuple[list[float], list[str]]:
    """Three numbers on the axis at most: two ticks beside one batch, and beside two one, as far from both as can be."""
    if not now or not best or best == now:
        return axes.power_of_two_ticks(low, high, at_most=2)
    inside = range(math.floor(math.log2(low)) + 1, math.ceil(math.log2(high)))
    farthest = 2.0 ** max(inside, key=lambda e: min(abs(e - math.log2(now)), abs(e - math.log2(best))))
    return axes.power_of_two_ticks(farthest, farthest)


def _add_batches(figure: go.Figure, now: float | None, best: float | None, *, decades: float) -> None:
    are_close = bool(now and best and abs(math.log10(now / best)) < CLOSE_LABELS * decades)
    _add_batch(
        figure, now, f"<b>now {count(now)}</b>", LIGHT.batch, LIGHT.batch_text, "square", _side(now, best, are_close)
    )
    if best != now:
        _add_batch(
            figure, best, f"<b>{count(best)}</b>", LIGHT.recommended, LIGHT.recommended_text, "circle",
            _side(best, now, are_close),
        )  # fmt: skip


def _side(own: float | None, other: float | None, are_close: bool) -> str:
    if not are_close or own is None or other is None or own == other:
        return "center"
    return "right" if own < other else "left"


def _add_batch(
    figure: go.Figure, batch: float | None, words: str, color: str, text_color: str, symbol: str, anchor: str
) -> None:
    if not batch:
        return
    figure.add_scatter(
        x=[batch], y=[0], mode="markers", name=symbol, cliponaxis=False,
        marker={"size": 12, "color": color, "symbol": symbol, "line": {"width": 2, "color": LIGHT.panel}},
    )  # fmt: skip
    figure.add_annotation(
        x=math.log10(batch), y=0.5, text=words, xanchor=anchor, yanchor="bottom", showarrow=False,
        xshift={"right": 6, "left": -6}.get(anchor, 0), font={"size": 12, "color": text_color, "family": FONT},
    )  # fmt: skip
