"""Words inside figures: end labels that do not overlap, events, axis titles, and names shown as they are written."""

import html
import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from noisescale_dashboard.answers.series import Event
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT
from noisescale_dashboard.words.names import cut_in_the_middle
from noisescale_dashboard.words.number_format import significant

NAME_LIMIT = 80
LINE_PIXELS, BETWEEN_PIXELS = 14, 5
EVENTS_WITH_WORDS = 6
SPREAD_ROUNDS = 12
NEAR_AN_END = 0.08
BESIDE_LABELS, PIXELS_PER_CHARACTER = 14, 6.6
TAG = re.compile(r"</?b>")


def plain(text: str, limit: int = NAME_LIMIT) -> str:
    """`text` as plotly shows it literally: no tag, link, TeX or turned writing; a long one without its middle.

    Args:
        text: As somebody wrote it.
        limit: Characters that are kept at most.
    """
    printable = "".join(character if character.isprintable() else "�" for character in text)
    cut = cut_in_the_middle(printable, limit)
    # a word joiner after $ ends what plotly takes for TeX without being seen
    return html.escape(cut, quote=False).replace("$", "$\u2060")


@dataclass(frozen=True, slots=True)
class EndLabel:
    """What is written beside the last point of a line; `whole` is what the pointer is told of a short name."""

    y: float
    head: str
    color: str
    detail: str | None = None
    whole: str | None = None

    @property
    def pixels(self) -> int:
        """Height of the label."""
        return 2 * LINE_PIXELS + BETWEEN_PIXELS if self.detail else LINE_PIXELS


def spread(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Centres near the wanted ones (pixels, any order) whose boxes of the given heights do not overlap."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = list(wanted)
    # a pair that is pushed apart may meet its other neighbours; each round halves what is left of that
    for below, above in list(itertools.pairwise(order)) * SPREAD_ROUNDS:
        gap = (heights[below] + heights[above]) / 2
        overlap = placed[below] + gap - placed[above]
        if overlap > 0:
            placed[below] -= overlap / 2
            placed[above] += overlap / 2
    return placed


def room_for(labels: Sequence[EndLabel], *, at_least: int) -> int:
    """Pixels of a right margin in which no line of `labels` is cut; `at_least` so many."""
    lines = [TAG.sub("", line) for label in labels for line in (label.head, label.detail or "")]
    return max(at_least, round(BESIDE_LABELS + PIXELS_PER_CHARACTER * max(map(len, lines), default=0)))


def write_end_labels(figure: go.Figure, labels: Sequence[EndLabel], *, low: float, high: float, is_log: bool) -> None:
    """Write `labels` into the right margin, at the height of their values, pushed apart."""
    height = figure.layout.height - figure.layout.margin.t - figure.layout.margin.b
    scale = math.log10 if is_log else float
    pixels = [height * (scale(label.y) - scale(low)) / (scale(high) - scale(low)) for label in labels]
    inside = [min(max(y, (label.pixels - LINE_PIXELS) / 2), height) for y, label in zip(pixels, labels, strict=True)]
    for label, y in zip(labels, spread(inside, [label.pixels for label in labels]), strict=True):
        lines = [(label.head, label.color, LINE_PIXELS / 2 if label.detail else 0.0)]
        if label.detail:
            lines.append((label.detail, LIGHT.text_3, -LINE_PIXELS / 2))
        for text, color, shift in lines:
            figure.add_annotation(
                x=1, y=0, xref="paper", yref="paper", text=text, xanchor="left", yanchor="middle",
                xshift=8, yshift=y + shift, font={"size": 12, "color": color, "family": FONT}, showarrow=False,
                **({} if label.whole is None else {"hovertext": label.whole}),
            )  # fmt: skip


def write_inside_labels(figure: go.Figure, labels: Sequence[EndLabel], *, x: float) -> None:
    """Write the heads of `labels` above the end of their lines, for figures without a right margin."""
    for rank, label in enumerate(sorted(labels, key=lambda label: -label.y)):
        is_top = rank == 0
        figure.add_annotation(
            x=x, y=math.log10(label.y), text=label.head, xanchor="right", yanchor="bottom" if is_top else "top",
            yshift=7 if is_top else -7, font={"size": 12, "color": label.color, "family": FONT}, showarrow=False,
        )  # fmt: skip


def write_x_title(figure: go.Figure, text: str) -> None:
    """Write `text` below the x axis at its right end."""
    figure.add_annotation(
        x=1, y=0, xref="paper", yref="paper", text=text, xanchor="right", yanchor="middle", yshift=-32,
        font={"size": 12, "color": LIGHT.text_3, "family": FONT}, showarrow=False,
    )  # fmt: skip


def say_nothing(figure: go.Figure, text: str) -> None:
    """Say in a figure without data why it is empty: no axis, no line, one sentence in its middle."""
    figure.update_layout(annotations=[], shapes=[])
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.add_annotation(
        x=0.5, y=0.5, xref="paper", yref="paper", text=text, showarrow=False,
        font={"size": 12, "color": LIGHT.text_3, "family": FONT},
    )  # fmt: skip


def mark_events(
    figure: go.Figure, events: Sequence[tuple[float, Event]], *, x_range: Sequence[float], narrow: bool
) -> None:
    """Draw a dashed line at each event; words on top where there is room for them."""
    wordy = events if len(events) <= EVENTS_WITH_WORDS else [pair for pair in events if pair[1].kind in ("lr", "batch")]
    room = (0.3 if narrow else 0.12) * abs(x_range[1] - x_range[0])
    last_word = -math.inf
    for x, event in sorted(events, key=lambda pair: pair[0]):
        figure.add_vline(x=x, line={"color": LIGHT.axis, "width": 1, "dash": "3px,3px"}, layer="below")
        if (x, event) in wordy and x - last_word >= room:
            last_word = x
            write_on_top(figure, x, event_words(event), LIGHT.text_3)


def write_on_top(figure: go.Figure, x: float, text: str, color: str) -> None:
    """Write `text` above the plot at `x`; near an end of the axis it grows inwards."""
    left, right = figure.layout.xaxis.range
    part = (x - left) / (right - left)
    anchor = "left" if part < NEAR_AN_END else "right" if part > 1 - NEAR_AN_END else "center"
    figure.add_annotation(
        x=x, y=1, yref="paper", text=text, xanchor=anchor, yanchor="bottom", yshift=3,
        font={"size": 12, "color": color, "family": FONT}, showarrow=False,
    )  # fmt: skip


def event_words(event: Event) -> str:
    """In short: "LR ÷3", "batch ×2", "resumed"."""
    if event.kind == "resumed" or not event.before or not event.after:
        return plain(event.kind, 16)
    factor = event.after / event.before
    name = {"lr": "LR", "batch": "batch"}.get(event.kind, plain(event.kind, 16))
    sign, shown = ("×", factor) if factor >= 1 else ("÷", 1 / factor)
    return f"{name} {sign}{significant(shown, 2).removesuffix('.0')}"
