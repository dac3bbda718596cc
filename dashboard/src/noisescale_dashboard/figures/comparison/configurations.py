"""Configurations of runs as parallel coordinates: an axis a setting, a line a run in the colour of its decision."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from noisescale_dashboard.figures.parts import labels
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, OTHER, blank_figure
from noisescale_dashboard.words import decisions
from noisescale_dashboard.words.number_format import count, rate, si

HEIGHT, NARROW_HEIGHT = 360, 320
MAX_AXES, NARROW_AXES = 8, 4
TICKS = 5
NAME_CHARACTERS = 19
LEFT, TICK_SHIFT, CHARACTER_WIDTH = 28, 6, 7
NOT_SET = -0.16
EXACT_BELOW = 100_000
COLORS = {
    **dict.fromkeys(decisions.RAISED, LIGHT.noise),
    **dict.fromkeys(decisions.LOWERED, LIGHT.batch),
    "keep": LIGHT.recommended,
}
Value = float | str | None


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting with its value in each run; None where a run does not say."""

    name: str
    values: tuple[Value, ...]

    @property
    def varies(self) -> bool:
        """Whether runs differ in it."""
        return len(set(self.values)) > 1

    @property
    def numbers(self) -> list[float]:
        """Its numbers, where all values that are said are numbers; else none."""
        said = [value for value in self.values if value is not None]
        numbers = [value for value in said if isinstance(value, float)]
        return numbers if len(numbers) == len(said) else []

    @property
    def is_log(self) -> bool:
        """Whether its numbers span more than a decade."""
        known = self.numbers
        return bool(known) and min(known) > 0 and max(known) / min(known) > 10

    def ticks(self) -> list[tuple[float, str]]:
        """Heights from 0 to 1 and what stands there: every value where they are few, else the ends and the middle."""
        if not self.numbers:
            return [(self.height(word) or 0.0, word) for word in self._words()]
        distinct = sorted(set(self.numbers))
        if len(distinct) > TICKS:
            ends = distinct[0], distinct[-1]
            distinct = [ends[0], math.sqrt(ends[0] * ends[1]) if self.is_log else sum(ends) / 2, ends[1]]
        return [(self.height(number) or 0.0, number_words(number)) for number in distinct]

    def height(self, value: Value) -> float | None:
        """Where a value stands, from 0 to 1; None where it is not said."""
        if value is None:
            return None
        if not self.numbers:
            words = self._words()
            return words.index(word_of(value)) / (len(words) - 1) if len(words) > 1 else 0.5
        scale = math.log if self.is_log else float
        low, high = scale(min(self.numbers)), scale(max(self.numbers))
        return (scale(float(value)) - low) / (high - low) if high > low else 0.5

    def _words(self) -> list[str]:
        return sorted({word_of(value) for value in self.values if value is not None})


def word_of(value: float | str) -> str:
    """A value in words."""
    return number_words(value) if isinstance(value, float) else value


def number_words(number: float) -> str:
    """In short: "64", "4,096", "3.2M", "3e-4"."""
    if number.is_integer() and abs(number) < EXACT_BELOW:
        return count(number)
    return rate(number) if 0 < abs(number) < 1 else si(number)


@dataclass(frozen=True, slots=True)
class Line:
    """A run: its name, its decision, the decision in words, and its name as it was given where that is shortened."""

    name: str
    decision: str
    words: str
    whole: str | None = None


def shown(settings: Sequence[Setting], *, narrow: bool) -> list[Setting]:
    """The settings that vary, as many as have room."""
    return [setting for setting in settings if setting.varies][: NARROW_AXES if narrow else MAX_AXES]


def configurations(settings: Sequence[Setting], lines: Sequence[Line], *, narrow: bool) -> go.Figure:
    """The settings that vary side by side, log axes marked; a setting that a run does not say stands below."""
    axes = shown(settings, narrow=narrow)
    left = _room_for_ticks(axes[0], narrow=narrow) if axes else LEFT
    figure = blank_figure(
        height=NARROW_HEIGHT if narrow else HEIGHT, left=left, right=40 if narrow else 168, top=48, bottom=20
    )
    figure.update_layout(hovermode="closest", hoverdistance=14, dragmode=False)
    has_gaps = any(value is None for setting in axes for value in setting.values)
    low = NOT_SET if has_gaps else 0.0
    figure.update_xaxes(visible=False, range=[-0.1, max(len(axes) - 1, 1) + 0.04], fixedrange=True, showspikes=False)
    figure.update_yaxes(visible=False, range=[low - 0.05, 1.05], showgrid=False)
    for place, setting in enumerate(axes):
        _add_axis(figure, setting, place, narrow=narrow)
    ends = []
    for number, line in enumerate(lines):
        heights = [setting.height(setting.values[number]) for setting in axes]
        at = [NOT_SET if height is None else height for height in heights]
        _add_line(figure, axes, line, number, at)
        if at:
            color = COLORS.get(line.decision, OTHER)
            name = f"<b>{labels.plain(line.name, NAME_CHARACTERS)}</b>"
            whole = labels.plain(line.whole or line.name)
            ends.append(labels.EndLabel(at[-1], name, color, labels.plain(line.words, 28), whole))
    if not narrow:
        labels.write_end_labels(figure, ends, low=low - 0.05, high=1.05, is_log=False)
    attach_table(figure, _columns(settings, lines))
    return figure


def _room_for_ticks(first: Setting, *, narrow: bool) -> int:
    """Pixels left of the first axis, whose words would be cut where it stands close to the edge."""
    longest = max((len(labels.plain(words, _tick_characters(narrow))) for _, words in first.ticks()), default=0)
    return max(LEFT, TICK_SHIFT + CHARACTER_WIDTH * longest)


def _tick_characters(narrow: bool) -> int:
    return 10 if narrow else 14


def _add_axis(figure: go.Figure, setting: Setting, place: int, *, narrow: bool) -> None:
    figure.add_shape(type="line", x0=place, x1=place, y0=0, y1=1, layer="below", line={"color": LIGHT.axis, "width": 1})
    anchor = "left" if place == 0 else "center"
    name = labels.plain(setting.name, 11 if narrow else 18)
    _write(
        figure,
        place,
        1.0,
        f"<b>{name}</b>",
        LIGHT.text_1,
        anchor,
        31,
        shift_x=-22 if place == 0 else 0,
        whole=setting.name,
    )
    if setting.is_log:
        _write(figure, place, 1.0, "log", LIGHT.text_3, anchor, 17, shift_x=-22 if place == 0 else 0)
    for height, words in setting.ticks():
        short = labels.plain(words, _tick_characters(narrow))
        _write(figure, place, height, short, LIGHT.text_3, "right", 0, shift_x=-TICK_SHIFT, on=LIGHT.panel, whole=words)
    if any(value is None for value in setting.values):
        _write(figure, place, NOT_SET, "not set", LIGHT.text_3, "right", 0, shift_x=-TICK_SHIFT, on=LIGHT.panel)


def _add_line(figure: go.Figure, axes: Sequence[Setting], line: Line, number: int, at: Sequence[float]) -> None:
    color = COLORS.get(line.decision, OTHER)
    said = "<br>".join(f"{labels.plain(one.name, 24)} {_value_words(one.values[number])}" for one in axes)
    figure.add_scatter(
        x=list(range(len(axes))), y=list(at), name=line.name, mode="lines+markers",
        line={"color": color, "width": 1.75},
        marker={"size": 7, "color": color, "line": {"width": 1.5, "color": LIGHT.panel}},
        customdata=[[f"<b>{labels.plain(line.name)}</b>, {labels.plain(line.words, 40)}<br>{said}"]] * len(axes),
        hovertemplate="%{customdata[0]}<extra></extra>",
    )  # fmt: skip


def _value_words(value: Value) -> str:
    if value is None:
        return "not set"
    return labels.plain(word_of(value), 40)


def _write(
    figure: go.Figure, x: float, y: float, text: str, color: str, anchor: str, shift_y: float, *,
    shift_x: float, on: str | None = None, whole: str | None = None,
) -> None:  # fmt: skip
    """Text at a place; `on` is the ground that keeps lines behind it from striking it through.

    `whole` is what the pointer is told of a text that is cut.
    """
    figure.add_annotation(
        x=x, y=y, text=text, xanchor=anchor, yanchor="middle", xshift=shift_x, yshift=shift_y, showarrow=False,
        bgcolor=on, borderpad=1,
        font={"size": 12, "color": color, "family": FONT},
        **({} if whole is None else {"hovertext": labels.plain(whole)}),
    )  # fmt: skip


def _columns(settings: Sequence[Setting], lines: Sequence[Line]) -> dict[str, list[float | str | bool | None]]:
    """A row a run, all settings that vary."""
    columns: dict[str, list[float | str | bool | None]] = {
        "run": [line.name for line in lines], "decision": [line.words for line in lines],
    }  # fmt: skip
    return columns | {setting.name: list(setting.values) for setting in settings if setting.varies}
