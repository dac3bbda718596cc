"""Where the batch in use and the recommended one lie between fewest steps and fewest examples."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.advice import Recommendation
from noisescale_dashboard.answers.common import Interval
from noisescale_dashboard.figures.parts import labels, marks
from noisescale_dashboard.figures.parts.data_table import Cell, attach_table
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, blank_figure, translucent
from noisescale_dashboard.words.number_format import count, significant

HEIGHT = 232
LEAST_END, MOST_END = 6.0, 60.0
"""The axes reach as far as the batches do, within these multiples of the minimum."""
NUM_POINTS = 60
START = 1.01


def trade_off_position(advice: Recommendation, *, narrow: bool) -> go.Figure:
    """Examples ÷ E_min over steps ÷ S_min, both log: (S/S_min − 1)(E/E_min − 1) = 1 (McCandlish et al. 2018, eq. 2.11).

    ■ the batch in use and ● the recommended one lie on the curve at B_crit / B; the broad stretch of the curve is where
    the batch in use may lie by the interval of B_crit.
    """
    critical = advice.critical_batch
    figure = on_the_curve(critical, advice.current_batch_size, advice.recommended_batch_size)
    if critical.value and advice.noise_scale.value:
        # with it the browser puts any moment of training on the curve
        figure.layout.meta = {**figure.layout.meta, "kappa": critical.value / advice.noise_scale.value}
    return figure


def on_the_curve(critical: Interval, now: float | None, recommended: float | None) -> go.Figure:
    """Where two batch sizes lie on the curve of this critical batch, all in examples."""
    figure = blank_figure(height=HEIGHT, right=16, top=10, bottom=40)
    figure.update_layout(hovermode="closest", hoverdistance=14)
    batches = (
        ("now", now, LIGHT.batch, LIGHT.batch_text, "square"),
        ("recommended", recommended, LIGHT.recommended, LIGHT.recommended_text, "circle"),
    )
    end = _end([_steps(critical.value, size) for _, size, *_ in batches])
    low = 10 ** (-0.04 * math.log10(end))
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50) if tick <= end]
    words = {"tickvals": ticks, "ticktext": [f"{tick}×" for tick in ticks], "range": [math.log10(low), math.log10(end)]}
    figure.update_xaxes(type="log", showspikes=False, **words)
    figure.update_yaxes(type="log", **words)
    _add_curve(figure, end)
    drawn = [row for row in batches if row[1] and critical.value and not (row[0] != "now" and row[1] == batches[0][1])]
    for name, size, color, text_color, symbol in drawn:
        _add_batch(figure, name, size or 0.0, critical, (color, text_color, symbol), end)
    labels.write_x_title(figure, "steps ÷ S_min")
    attach_table(figure, _columns((now, recommended), critical.value))
    return figure


def _steps(critical: float | None, batch_size: float | None) -> float | None:
    """Steps over S_min at a batch size."""
    return None if not critical or not batch_size else 1 + critical / batch_size


def _end(steps: list[float | None]) -> float:
    reached = [one for known in steps if known is not None for one in (known, known / (known - 1))]
    return min(max([LEAST_END, *(1.5 * one for one in reached)]), MOST_END)


def _at(steps: float) -> float:
    return steps / (steps - 1)


def _add_curve(figure: go.Figure, end: float) -> None:
    first, last = math.log(_at(end) - 1), math.log(end - 1)
    steps = [1 + math.exp(first + (last - first) * i / (NUM_POINTS - 1)) for i in range(NUM_POINTS)]
    figure.add_scatter(
        x=steps, y=[_at(one) for one in steps], name="trade-off", mode="lines", hoverinfo="skip",
        line={"color": LIGHT.text_3, "width": 1.75},
    )  # fmt: skip


def _add_batch(
    figure: go.Figure, name: str, size: float, critical: Interval, look: tuple[str, str, str], end: float
) -> None:
    color, text_color, symbol = look
    if name == "now" and critical.low and critical.high:
        first, last = math.log(critical.low / size), math.log(critical.high / size)
        steps = [1 + math.exp(first + (last - first) * i / (NUM_POINTS - 1)) for i in range(NUM_POINTS)]
        figure.add_scatter(
            x=steps, y=[_at(one) for one in steps], name=f"{name}, interval", mode="lines", hoverinfo="skip",
            line={"color": translucent(color, 0.22), "width": 9},
        )  # fmt: skip
    steps_here = 1 + (critical.value or 0.0) / size
    figure.add_scatter(
        x=[steps_here], y=[_at(steps_here)], name=name, mode="markers",
        marker=marks.ringed(color, size=12) | {"symbol": symbol},
        hovertemplate=f"<b>{name} {count(size)}</b><br>{significant(steps_here)} × the fewest steps, "
        f"{significant(_at(steps_here))} × the fewest examples<extra></extra>",
    )  # fmt: skip
    words = f"<b>now {count(size)}</b>" if name == "now" else f"<b>{count(size)}</b>"
    # beside the right end there is no room but above the curve, which rises to the left
    is_right = steps_here > 0.6 * end
    figure.add_annotation(
        x=math.log10(min(steps_here, end)), y=math.log10(min(_at(steps_here), end)), text=words, showarrow=False,
        xanchor="right" if is_right else "left", yanchor="bottom", xshift=7, yshift=14 if is_right else 5,
        font={"size": 12, "color": text_color, "family": FONT},
    )  # fmt: skip


def _columns(sizes: Sequence[float | None], critical: float | None) -> dict[str, Sequence[Cell]]:
    """A row a batch."""
    steps = [_steps(critical, size) for size in sizes]
    return {
        "batch": ["now", "recommended"],
        "batch size": list(sizes),
        "steps over S_min": steps,
        "examples over E_min": [None if one is None else _at(one) for one in steps],
    }
