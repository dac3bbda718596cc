"""Which runs are off: the batch in use over the recommended one, a row a run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.labels import plain
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, blank_figure, translucent
from noisescale_dashboard.words import decisions
from noisescale_dashboard.words.names import short_names
from noisescale_dashboard.words.number_format import count, significant, span

AXIS_END = 26.0
"""The axis reaches from 1/26 to 26, so that 1/16 and 16 have room."""
BALANCED_WITHIN = 2.0
"""A batch within this factor of the best one costs at most 12.5 % more."""
ROW_PIXELS, NARROW_ROW_PIXELS = 33, 40
TOP, NARROW_TOP, BOTTOM, NARROW_BOTTOM = 34, 30, 30, 26
NAME_PIXELS, RESULT_PIXELS = 196, 138
HEAD_PIXELS = 44
"""From the middle to the heads at its sides."""
NAME_CHARACTERS = 24
TICKS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16)
TICK_WORDS = ("1/16", "1/8", "1/4", "1/2", "1×", "2×", "4×", "8×", "16×")
COLORS = {
    **dict.fromkeys(decisions.RAISED, LIGHT.noise_text),
    **dict.fromkeys(decisions.LOWERED, LIGHT.batch_text),
}


@dataclass(frozen=True, slots=True)
class MisfitRow:
    """One run; batches and bounds in examples.

    Attributes:
        run_id: Of the run.
        name: As the reader called it.
        noun: Plural of what an example is.
        batch: In use.
        decision: One of `decisions.DECISIONS`.
        best: Recommended; None while nothing can be said.
        low: Lower end of the best batch, with the error of the model.
        high: Upper end of it.
        statistical_low: Lower end by the measurement alone.
        statistical_high: Upper end by it.
        bound: What the noise scale is above, where it is not resolved.
    """

    run_id: str
    name: str
    noun: str
    batch: float
    decision: str
    best: float | None = None
    low: float | None = None
    high: float | None = None
    statistical_low: float | None = None
    statistical_high: float | None = None
    bound: float | None = None

    @property
    def ratio(self) -> float:
        """Batch over recommended; where that is not known, what it is at most."""
        return self.batch / (self.best or self.bound or self.batch)


def misfit(rows: Sequence[MisfitRow], *, narrow: bool) -> go.Figure:
    """Batch ÷ recommended (log₂), from timid to wasteful; thick bar: statistical 95 %, thin: with the model's error."""
    ordered = sorted(rows, key=lambda row: row.ratio)
    figure = blank_figure(
        height=height_of(len(ordered), narrow=narrow),
        left=8 if narrow else NAME_PIXELS,
        right=8 if narrow else RESULT_PIXELS,
        top=NARROW_TOP if narrow else TOP,
        bottom=NARROW_BOTTOM if narrow else BOTTOM,
    )
    figure.update_layout(hovermode="closest", hoverdistance=14, dragmode=False)
    _set_axes(figure, len(ordered), narrow=narrow)
    short = short_names([row.name for row in ordered], at_most=NAME_CHARACTERS)
    for place, (row, name) in enumerate(reversed(list(zip(ordered, short, strict=True)))):
        _add_row(figure, row, place)
        _write_row(figure, row, name, place, narrow=narrow)
    _write_heads(figure, narrow=narrow)
    attach_table(figure, _table(ordered))
    return figure


def height_of(num_rows: int, *, narrow: bool) -> int:
    """Pixels of the figure with so many rows."""
    if narrow:
        return NARROW_TOP + NARROW_BOTTOM + NARROW_ROW_PIXELS * num_rows
    return TOP + BOTTOM + ROW_PIXELS * num_rows


def _set_axes(figure: go.Figure, num_rows: int, *, narrow: bool) -> None:
    every = 2 if narrow else 1
    reach = math.log10(AXIS_END)
    figure.update_xaxes(
        type="log", range=[-reach, reach], tickvals=TICKS[::every], ticktext=TICK_WORDS[::every],
        showline=False, ticks="", showspikes=False, fixedrange=True,
    )  # fmt: skip
    figure.update_yaxes(visible=False, range=[-0.55, num_rows - 0.45])
    figure.add_shape(
        type="rect", x0=1 / BALANCED_WITHIN, x1=BALANCED_WITHIN, y0=0, y1=1, yref="paper", layer="below",
        fillcolor=translucent(LIGHT.recommended, 0.1), line={"width": 0},
    )  # fmt: skip
    figure.add_shape(
        type="line", x0=1, x1=1, y0=0, y1=1, yref="paper", layer="below",
        line={"color": LIGHT.recommended, "width": 1},
    )  # fmt: skip


def _add_row(figure: go.Figure, row: MisfitRow, place: int) -> None:
    figure.add_shape(
        type="line", x0=0, x1=1, xref="paper", y0=place, y1=place, layer="below",
        line={"color": LIGHT.grid, "width": 1},
    )  # fmt: skip
    at = _inside(row.ratio)
    is_open = row.best is None
    if is_open:
        figure.add_scatter(
            x=[1 / AXIS_END * 1.12, at], y=[place, place], mode="lines", hoverinfo="skip",
            line={"color": translucent(LIGHT.noise, 0.55), "width": 2, "dash": "2px,3px"},
        )  # fmt: skip
        figure.add_scatter(
            x=[1 / AXIS_END * 1.12], y=[place], mode="markers", hoverinfo="skip",
            marker={"symbol": "triangle-left", "size": 8, "color": LIGHT.noise},
        )  # fmt: skip
    for low, high, width, opacity in (
        (row.low, row.high, 2, 0.55),
        (row.statistical_low, row.statistical_high, 7, 0.38),
    ):
        if low and high and not is_open:
            figure.add_scatter(
                x=[_inside(row.batch / high), _inside(row.batch / low)], y=[place, place], mode="lines",
                line={"color": translucent(LIGHT.noise, opacity), "width": width}, hoverinfo="skip",
            )  # fmt: skip
    figure.add_scatter(
        x=[at], y=[place], mode="markers", name="batch now", customdata=[[row.run_id]], cliponaxis=False,
        marker={
            "symbol": "square-open" if is_open else _symbol(row.ratio), "size": 11, "color": LIGHT.batch,
            "line": {"width": 2, "color": LIGHT.batch if is_open else LIGHT.panel},
        },
        hovertemplate=_hover(row) + "<extra></extra>",
    )  # fmt: skip


def _inside(ratio: float) -> float:
    return min(max(ratio, 1 / AXIS_END), AXIS_END)


def _symbol(ratio: float) -> str:
    """What lies beyond the axis points outwards, so that nothing looks nearer than it is."""
    if ratio < 1 / AXIS_END:
        return "triangle-left"
    return "triangle-right" if ratio > AXIS_END else "square"


def _hover(row: MisfitRow) -> str:
    head = f"<b>{plain(row.name)}</b><br>batch <b>{count(row.batch)}</b> {plain(row.noun)}"
    if row.best is None:
        if row.bound is None:
            return f"{head}<br>nothing is recommended yet"
        below = f"batch ÷ recommended below {significant(row.ratio, 2)}"
        return f"{head}<br>noise scale > {significant(row.bound)}, not resolved<br>{below}"
    between = f" [{span(row.low, row.high)}]" if row.low and row.high else ""
    return f"{head}<br>recommended <b>{count(row.best)}</b>{between}<br>batch ÷ recommended {significant(row.ratio, 2)}"


def result_words(row: MisfitRow) -> str:
    """What is written at the end of a row: "512 → 1,536", "512 → 768?", "keep 512", "256, noise > 410"."""
    if row.decision in decisions.LIKELY and row.best is not None:
        return f"{count(row.batch)} → {count(row.best)}?"
    if row.decision in COLORS and row.best is not None:
        return f"{count(row.batch)} → <b>{count(row.best)}</b>"
    if row.decision in decisions.KEPT:
        return f"keep {count(row.batch)}{'' if row.decision == 'keep' else ' for now'}"
    if row.best is None and row.bound is not None:
        return f"{count(row.batch)}, noise > {significant(row.bound)}"
    return f"{count(row.batch)}, undecided"


def _write_row(figure: go.Figure, row: MisfitRow, name: str, place: int, *, narrow: bool) -> None:
    shift = 13 if narrow else 0
    _write(
        figure, plain(name), LIGHT.text_1, x=0, y=place, anchor="left",
        shift=(2 if narrow else 6 - NAME_PIXELS, shift), whole=plain(row.name),
    )  # fmt: skip
    _write(
        figure, result_words(row), COLORS.get(row.decision, LIGHT.text_3), x=1, y=place, anchor="right",
        shift=(-2 if narrow else RESULT_PIXELS - 8, shift),
    )  # fmt: skip


def _write_heads(figure: go.Figure, *, narrow: bool) -> None:
    """Side by side around the middle, where names and results leave little between them; short ones at the ends."""
    if narrow:
        small, large = ("← too small", 0.0, "left", 0), ("too large →", 1.0, "right", 0)
    else:
        small = ("← too small: loses time", 0.5, "right", -HEAD_PIXELS)
        large = ("too large: wastes examples →", 0.5, "left", HEAD_PIXELS)
    for (text, x, anchor, shift), color in (
        (small, LIGHT.noise_text),
        (("<b>balanced</b>", 0.5, "center", 0), LIGHT.recommended_text),
        (large, LIGHT.batch_text),
    ):
        figure.add_annotation(
            x=x, y=1, xref="paper", yref="paper", text=text, xanchor=anchor, yanchor="bottom", xshift=shift, yshift=8,
            font={"size": 12, "color": color, "family": FONT}, showarrow=False,
        )  # fmt: skip


def _write(
    figure: go.Figure, text: str, color: str, *, x: float, y: float, anchor: str, shift: tuple[float, float],
    whole: str | None = None,
) -> None:  # fmt: skip
    figure.add_annotation(
        x=x, y=y, xref="paper", yref="y", text=text, xanchor=anchor, yanchor="middle", xshift=shift[0],
        yshift=shift[1], font={"size": 13, "color": color, "family": FONT}, showarrow=False,
        **({"hovertext": whole} if whole is not None and whole != text else {}),
    )  # fmt: skip


def _table(rows: Sequence[MisfitRow]) -> dict[str, list[float | str | None]]:
    return {
        "run": [row.name for row in rows],
        "batch (examples)": [row.batch for row in rows],
        "recommended batch (examples)": [row.best for row in rows],
        "recommended, lower end 95 %": [row.low for row in rows],
        "recommended, upper end 95 %": [row.high for row in rows],
        "recommended, statistical lower end 95 %": [row.statistical_low for row in rows],
        "recommended, statistical upper end 95 %": [row.statistical_high for row in rows],
        "noise scale above (examples)": [row.bound for row in rows],
        "batch ÷ recommended": [None if row.best is None else row.ratio for row in rows],
        "decision": [row.decision for row in rows],
    }
