"""The batches that statistics and each limit allow, on one axis, with the recommended batch across all of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from noisescale_dashboard.answers.plans import Limit, TradeOff
from noisescale_dashboard.figures.parts import axes, labels
from noisescale_dashboard.figures.parts.data_table import Cell, attach_table
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, blank_figure, translucent
from noisescale_dashboard.figures.planning import plan_quantities
from noisescale_dashboard.words.number_format import si, significant

ROW_PIXELS, TOP, BOTTOM, SIDE = 46, 8, 42, 6
LEAST_HEIGHT = 150
"""Pixels, also of a plan without limits."""
HALF, TICK_HALF, ABOVE = 0.11, 0.17, 0.2
COLORS = {"deadline": LIGHT.noise, "budget": LIGHT.batch}
"""Of limits that bind; time is blue and money orange, as in the figure of time against cost."""
MOST_DOUBLINGS = 9
"""The axis reaches this far to both sides of the recommended batch at most."""
DEFAULT_CENTER = 256.0
WHOLE, LARGEST_WRITTEN = 10.0, 1e6
"""Between these the end of a limit is written as the whole batch next to it that meets it."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of the figure.

    Attributes:
        name: What allows these batches.
        low: Smallest; None where any is small enough.
        high: Largest; None where any is large enough.
        words: What stands at the right.
        color: Of the bar.
        is_tightest: Whether it moves the batch.
        is_possible: Whether it allows any.
    """

    name: str
    low: float | None
    high: float | None
    words: str
    color: str
    is_tightest: bool = False
    is_possible: bool = True


def height(plan: TradeOff) -> int:
    """Pixels that the figure takes."""
    return max(LEAST_HEIGHT, TOP + BOTTOM + ROW_PIXELS * (1 + len(plan.limits)))


def which_limit_binds(plan: TradeOff, *, noun: str) -> go.Figure:
    """A bar for the interval of B_crit and for each limit, its words above it; what does not bind is grey.

    Args:
        plan: With limits.
        noun: Plural of what one example is.
    """
    bars = _bars(plan)
    figure = blank_figure(height=height(plan), left=SIDE, right=SIDE, top=TOP, bottom=BOTTOM)
    figure.update_layout(hovermode=False)
    low, high = _ends(plan)
    axes.set_batch_axis(figure, low, high, at_most=4)
    figure.update_xaxes(fixedrange=True, showline=False, ticks="", tickangle=0)
    figure.update_yaxes(visible=False, range=[-0.4, len(bars) - 0.35])
    for place, bar in enumerate(reversed(bars)):
        _add_bar(figure, bar, place, (low, high))
    recommended = plan.recommended.batch_size if plan.recommended is not None else None
    if recommended is not None and low < recommended < high:
        figure.add_vline(x=recommended, line={"color": LIGHT.recommended, "width": 1.5})
    labels.write_x_title(figure, f"batch size, {labels.plain(noun, 24)}")
    attach_table(figure, _columns(bars))
    return figure


def tightest(plan: TradeOff) -> Limit | None:
    """The limit that moves the batch, else the one that leaves it the least room; None without limits."""
    binding = next((limit for limit in plan.limits if limit.is_binding), None)
    if binding is not None or plan.recommended is None:
        return binding
    batch = plan.recommended.batch_size
    bounded = [limit for limit in plan.limits if limit.is_possible and (limit.low or limit.high)]
    return min(bounded, key=lambda limit: _room(limit, batch), default=None)


def _room(limit: Limit, batch: float) -> float:
    ends = [end for end in (limit.low, limit.high) if end]
    return min(abs(math.log(end / batch)) for end in ends)


def _bars(plan: TradeOff) -> list[Bar]:
    critical = plan.critical_batch
    first = Bar(
        "Statistics (B_crit)", critical.low, critical.high, f"<b>{significant(critical.value)}</b>", LIGHT.recommended
    )
    return [first, *(_bar(limit) for limit in plan.limits)]


def _bar(limit: Limit) -> Bar:
    color = COLORS.get(limit.role or "", LIGHT.text_2) if limit.is_binding else LIGHT.text_3
    words = range_words(limit)
    return Bar(
        label(limit),
        limit.low or None,
        limit.high,
        f"<b>{words}</b>" if limit.is_binding else words,
        color,
        limit.is_binding,
        limit.is_possible,
    )


def label(limit: Limit) -> str:
    """What a limit is called, with what was said: "Deadline 18 h"."""
    said = "" if limit.asked is None else f" {plan_quantities.as_given(limit.asked, limit.quantity or '')}"
    return f"{limit.name[:1].upper()}{limit.name[1:]}{said}"


def range_words(limit: Limit) -> str:
    """In short: "≥ 614", "≤ 2,067", "614 – 2,067", "any" or "none"."""
    if not limit.is_possible:
        return "none"
    if limit.low and limit.high is not None:
        return f"{at_least(limit.low)} – {at_most(limit.high)}"
    if limit.high is not None:
        return f"≤ {at_most(limit.high)}"
    return f"≥ {at_least(limit.low)}" if limit.low else "any"


def at_least(batch: float) -> str:
    """The smallest batch that meets a limit: whole, so that nothing below the limit is named.

    Args:
        batch: In examples.
    """
    return f"{math.ceil(batch):,}" if WHOLE <= batch < LARGEST_WRITTEN else si(batch)


def at_most(batch: float) -> str:
    """The largest batch that meets a limit, likewise.

    Args:
        batch: In examples.
    """
    return f"{math.floor(batch):,}" if WHOLE <= batch < LARGEST_WRITTEN else si(batch)


def _ends(plan: TradeOff) -> tuple[float, float]:
    limits = [end for limit in plan.limits for end in (limit.low, limit.high)]
    critical = plan.critical_batch
    best = plan.recommended.batch_size if plan.recommended is not None else critical.value
    center = best or DEFAULT_CENTER
    known = [end for end in (center, critical.value, critical.low, critical.high, *limits) if end and end < math.inf]
    first = max(math.log2(min(known)), math.log2(center) - MOST_DOUBLINGS)
    last = min(math.log2(max(known)), math.log2(center) + MOST_DOUBLINGS)
    return 2.0 ** (math.floor(first) - 1), 2.0 ** (math.ceil(last) + 1)


def _add_bar(figure: go.Figure, bar: Bar, place: int, ends: tuple[float, float]) -> None:
    low, high = ends
    figure.add_shape(
        type="line", x0=low, x1=high, y0=place, y1=place, line={"color": LIGHT.grid, "width": 1}, layer="below"
    )
    left, right = max(bar.low or low, low), min(bar.high if bar.high is not None else high, high)
    if bar.is_possible and left < right:
        figure.add_shape(
            type="rect", x0=left, x1=right, y0=place - HALF, y1=place + HALF, line={"width": 0},
            fillcolor=translucent(bar.color, 0.3 if bar.color != LIGHT.text_3 else 0.22),
        )  # fmt: skip
    for end in (bar.low, bar.high):
        if bar.is_possible and end is not None and low <= end <= high:
            figure.add_shape(
                type="line", x0=end, x1=end, y0=place - TICK_HALF, y1=place + TICK_HALF,
                line={"color": bar.color, "width": 2},
            )  # fmt: skip
    _write(figure, place, labels.plain(bar.name, 26), LIGHT.text_1, is_left=True)
    _write(figure, place, bar.words, LIGHT.text_1 if bar.is_tightest else LIGHT.text_2, is_left=False)


def _write(figure: go.Figure, place: int, text: str, color: str, *, is_left: bool) -> None:
    figure.add_annotation(
        x=0 if is_left else 1, xref="paper", y=place + ABOVE, text=text, xanchor="left" if is_left else "right",
        yanchor="bottom", showarrow=False,
        font={"size": 12, "color": color, "family": FONT},
    )  # fmt: skip


def _columns(bars: Sequence[Bar]) -> dict[str, Sequence[Cell]]:
    return {
        "limit": [bar.name for bar in bars],
        "smallest batch": [bar.low for bar in bars],
        "largest batch": [bar.high for bar in bars],
        "allows any batch": [bar.is_possible for bar in bars],
        "binds": [bar.is_tightest for bar in bars],
    }
