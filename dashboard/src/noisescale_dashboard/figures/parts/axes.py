"""Axes of the figures: ranges that follow the data, ticks that can be read, four ways to measure training."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from noisescale_dashboard.answers.series import Points
from noisescale_dashboard.words.number_format import si

LIVE_GRID = 1.05
"""The right end of the axis of a running run moves in steps of 5 %, so that it does not crawl."""
MAX_TICKS, NARROW_TICKS = 10, 5
ENDS = tuple(k * 10.0**e for e in range(-300, 301) for k in (1, 1.5, 2, 3, 5, 7))
"""Where a logarithmic axis that follows its data may end."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far training is, at each point of a series."""

    kind: str
    at: tuple[float | None, ...]
    title: str
    hover_title: str
    origin: float = 0.0
    length: float = 1.0

    @property
    def is_reversed(self) -> bool:
        """Whether the axis runs right to left, so that time still goes rightwards."""
        return self.kind == "loss"

    @property
    def known(self) -> list[float]:
        """The positions that are known."""
        return [x for x in self.at if x is not None]

    def place(self, measured: float | None) -> float | None:
        """Where on the axis something stands that was measured at that wall time (`kind` "time"), in seconds."""
        return None if measured is None else (measured - self.origin) / self.length


def progress(points: Points, kind: str, *, unit: str = "examples", units_per_example: float = 1) -> Progress:
    """Positions on the x axis: optimizer step, units seen, time since the first point, or training loss."""
    if kind == "units":
        seen = tuple(None if n is None else n * units_per_example for n in points.examples)
        return Progress(kind, seen, unit, f"%{{x:.3~s}} {unit}")
    if kind == "time":
        return _elapsed(points)
    if kind == "loss":
        return Progress(kind, points.loss, "training loss (falling →)", "loss %{x:.4~g}")
    return Progress("step", tuple(float(step) for step in points.step), "optimizer step", "step %{x:,.0f}")


def _elapsed(points: Points) -> Progress:
    known = [t for t in points.wall_time if t is not None]
    if not known:
        return Progress("time", tuple(None for _ in points.wall_time), "time since start", "%{x}")
    start = min(known)
    word, seconds = time_scale(max(known) - start)
    at = tuple(None if t is None else (t - start) / seconds for t in points.wall_time)
    return Progress("time", at, f"{word} since start", f"%{{x:.3~f}} {word}", origin=start, length=seconds)


def time_scale(length: float) -> tuple[str, float]:
    """The word for the unit of time in which `length` seconds are shown, and its seconds."""
    scales = (("seconds", 1.0, 300), ("minutes", 60.0, 7200), ("hours", 3600.0, math.inf))
    return next((word, seconds) for word, seconds, limit in scales if length < limit)


def set_progress_axis(figure: go.Figure, along: Progress, *, is_live: bool, is_zoomed: bool, narrow: bool) -> None:
    """Give `figure` its x axis; the range is explicit so that a new point does not move what is seen."""
    figure.update_xaxes(range=progress_range(along, is_live=is_live and not is_zoomed))
    figure.update_xaxes(
        tickformat="~g" if along.kind in ("loss", "time") else "~s",
        dtick=tick_step(figure.layout.xaxis.range, 4 if narrow else MAX_TICKS),
        tick0=0,
        unifiedhovertitle={"text": along.hover_title},
    )


def progress_range(along: Progress, *, is_live: bool) -> list[float]:
    """[left, right] ends of the x axis."""
    if not along.known:
        return [0.0, 1.0]
    low, high = min(along.known), max(along.known)
    if along.is_reversed:
        room = 0.02 * (high - low) or 0.1
        return [high + room, low - room]
    if low == high:
        # one point stands in the middle, and no step is shown as a fraction
        return [0.0, 2.0 * high] if high > 0 else [low - 0.5, high + 0.5]
    return [low, _next_on_grid(low, high) if is_live else high + 0.01 * (high - low)]


def _next_on_grid(low: float, high: float) -> float:
    length = high - low
    return low + LIVE_GRID ** math.ceil(math.log(length * 1.01) / math.log(LIVE_GRID))


def tick_step(ends: Sequence[float], at_most: int) -> float:
    """The shortest of 1, 2, 2.5, 5 times a power of ten that gives at most so many ticks."""
    length = abs(ends[1] - ends[0])
    scale = 10.0 ** math.floor(math.log10(length / at_most))
    return next(k * scale for k in (1, 2, 2.5, 5, 10, 20) if length / (k * scale) < at_most)


def quantiles(values: Iterable[float | None], low: float = 0.005, high: float = 0.995) -> tuple[float, float] | None:
    """The range from quantile `low` to `high` of the positive values; None when there are none."""
    positive = _positive(values)
    return _between(positive, low, high) if positive else None


def full_range(values: Iterable[float | None]) -> tuple[float, float] | None:
    """Least and most of the positive values; None when there are none."""
    return quantiles(values, 0, 1)


def typical_range(values: Iterable[float | None]) -> tuple[float, float] | None:
    """The 0.5 to 99.5 % range of the positive values, or all of them where that is at most half as long again."""
    positive = _positive(values)
    if not positive:
        return None
    most, all_of_them = _between(positive, 0.005, 0.995), (positive[0], positive[-1])
    is_near = math.log(all_of_them[1] / all_of_them[0]) <= 1.5 * math.log(most[1] / most[0])
    return all_of_them if is_near else most


def _positive(values: Iterable[float | None]) -> list[float]:
    return sorted([v for v in values if v is not None and v > 0])


def _between(ordered: Sequence[float], low: float, high: float) -> tuple[float, float]:
    last = len(ordered) - 1
    return ordered[math.floor(low * last)], ordered[math.ceil(high * last)]


def log_range(low: float, high: float, *, room: float = 0.06) -> tuple[float, float]:
    """A range around [low, high], ends on a 1-1.5-2-3-5-7 grid so that it only moves when data leave it."""
    spare = max(room * math.log10(high / low), 0.04)
    bottom, top = low * 10**-spare, high * 10**spare
    return ENDS[bisect_right(ENDS, bottom) - 1], ENDS[bisect_left(ENDS, top)]


def set_log_axis(figure: go.Figure, low: float, high: float) -> None:
    """Give `figure` a logarithmic y axis from `low` to `high`."""
    ticks = log_ticks(low, high)
    figure.update_yaxes(
        type="log",
        range=[math.log10(low), math.log10(high)],
        tickvals=ticks,
        ticktext=[power_of_ten(t) if t < 1e-3 else si(t) for t in ticks],
    )


def set_log_x_axis(figure: go.Figure, low: float, high: float, *, narrow: bool) -> None:
    """Give `figure` a logarithmic x axis from `low` to `high`, with ticks that have room."""
    ticks = log_ticks(low, high)
    ticks = ticks[:: math.ceil(len(ticks) / (NARROW_TICKS if narrow else MAX_TICKS))]
    words = [power_of_ten(tick) if tick < 1e-3 else si(tick) for tick in ticks]
    _set_x(figure, low, high, ticks, words)


def set_batch_axis(figure: go.Figure, low: float, high: float, *, at_most: int) -> None:
    """Give `figure` an x axis of batch sizes from `low` to `high`, with at most so many ticks at powers of two."""
    ticks, words = power_of_two_ticks(low, high, at_most=at_most)
    _set_x(figure, low, high, ticks, words)


def _set_x(figure: go.Figure, low: float, high: float, ticks: list[float], words: list[str]) -> None:
    figure.update_xaxes(
        type="log", range=[math.log10(low), math.log10(high)], tickvals=ticks, ticktext=words, showspikes=False
    )  # fmt: skip


def log_ticks(low: float, high: float) -> list[float]:
    """Ticks at 1, 2, 5 (or 1, 3, or decades) so that between two and eight are shown."""
    decades = math.log10(high / low)
    steps: Sequence[float] = (1, 2, 5) if decades <= 2.4 else (1, 3) if decades <= 3.4 else (1,)
    if decades < 0.75:
        steps = (1, 1.5, 2, 3, 5, 7) if decades > 0.45 else (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
    every = max(1, math.ceil(decades / 6))
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = (k * 10.0**e for e in exponents for k in steps if len(steps) > 1 or e % every == 0)
    return [float(f"{t:.6g}") for t in ticks if low * 0.999 <= t <= high * 1.001]


def power_of_ten(value: float) -> str:
    """1e-5 → "10⁻⁵"; 3e-5 → "3×10⁻⁵"."""
    exponent = math.floor(math.log10(value) + 1e-9)
    mantissa = round(value / 10.0**exponent, 1)
    power = "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if mantissa == 1 else f"{mantissa:g}×{power}"


def power_of_two_ticks(low: float, high: float, *, at_most: int = 6) -> tuple[list[float], list[str]]:
    """Ticks and labels of a batch axis: 256, 512, 1k, 2k; every second, third one where many."""
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    every = max(1, math.ceil((last - first + 1) / at_most))
    exponents = [e for e in range(first, last + 1) if (e - first) % every == 0]
    return [2.0**e for e in exponents], [_binary(e) for e in exponents]


def _binary(exponent: int) -> str:
    if exponent < 0:
        return f"{2.0**exponent:g}"
    prefix = exponent // 10
    return f"{2 ** (exponent % 10)}{('', 'k', 'M', 'G', 'T')[min(prefix, 4)]}"
