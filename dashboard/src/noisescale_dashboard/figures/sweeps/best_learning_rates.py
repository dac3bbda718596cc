"""The learning rate that reached the target first, at each batch size, and the curves through them."""

from collections.abc import Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.laws import BestRate, LearningRates, RateAtBatch, RateCurve
from noisescale_dashboard.figures.parts import axes, labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import LIGHT, blank_figure
from noisescale_dashboard.words.number_format import count, rate

HEIGHT = 226
BAND_OPACITY = 0.1
MAX_CURVES = 2
"""Further curves that the data speak for lie between or beside them and are named in words."""


def best_learning_rates(found: LearningRates, *, narrow: bool) -> go.Figure:
    """Best learning rate over the batch size (examples), both log; whiskers: half way to the next rates tried."""
    figure = blank_figure(height=HEIGHT, right=16, top=12, bottom=40)
    figure.update_layout(hovermode="closest", hoverdistance=14)
    sizes = [best.batch_size for best in found.rates] or [1.0]
    low, high = min(sizes) / 1.6, max(sizes) * 1.6
    axes.set_batch_axis(figure, low, high, at_most=4 if narrow else 6)
    ends = axes.quantiles([end for best in found.rates for end in (best.lr, best.low, best.high)], 0, 1)
    axes.set_log_axis(figure, *axes.log_range(*(ends or (1e-3, 1e-1)), room=0.1))
    for place, curve in enumerate(found.supported[:MAX_CURVES]):
        _add_curve(figure, curve, ends=(low, high), is_best=place == 0)
    _add_rates(figure, found.rates)
    labels.write_x_title(figure, f"batch size, {labels.plain(found.unit)}")
    if not found.rates:
        labels.say_nothing(figure, "Each batch size was tried at one rate")
    attach_table(figure, _columns(found))
    return figure


def _add_curve(figure: go.Figure, curve: RateCurve, *, ends: tuple[float, float], is_best: bool) -> None:
    """Full where rates were tuned, dotted where it reaches beyond them; nothing past B_crit."""
    drawn = [p for p in curve.points if not p.is_past_critical and ends[0] <= p.batch_size <= ends[1]]
    if is_best:
        marks.add_band(
            figure, [p.batch_size for p in drawn], [p.lr.low for p in drawn], [p.lr.high for p in drawn],
            LIGHT.text_2, BAND_OPACITY, name="curve interval",
        )  # fmt: skip
    for dash, points in (("solid", _inside(drawn)), ("2px,3px", drawn)):
        figure.add_scatter(
            x=[p.batch_size for p in points], y=[p.lr.value for p in points], name=f"{curve.name}, {dash}",
            mode="lines", line={"color": LIGHT.text_2 if is_best else LIGHT.text_3, "width": 1.5, "dash": dash},
            opacity=1.0 if is_best else 0.7,
            hovertemplate=f"{labels.plain(curve.formula)}<extra></extra>",
        )  # fmt: skip


def _inside(points: Sequence[RateAtBatch]) -> list[RateAtBatch]:
    return [point for point in points if not point.is_extrapolated]


def _add_rates(figure: go.Figure, rates: Sequence[BestRate]) -> None:
    figure.add_scatter(
        x=[best.batch_size for best in rates], y=[best.lr for best in rates], name="best learning rate", mode="markers",
        error_y=marks.whiskers(
            [best.lr for best in rates], [best.low for best in rates], [best.high for best in rates], LIGHT.text_2
        ),
        marker=marks.ringed(LIGHT.text_1, is_open=[best.is_at_grid_edge for best in rates]),
        customdata=[_words(best) for best in rates],
        hovertemplate="batch <b>%{customdata[0]}</b><br>best LR <b>%{customdata[1]}</b>, %{customdata[2]}"
        "<extra></extra>",
    )  # fmt: skip


def _words(best: BestRate) -> list[str]:
    size, lr = count(best.batch_size), rate(best.lr)
    if best.num_rates == 1:
        return [size, lr, "the only one tried"]
    if best.is_at_grid_edge:
        return [size, lr, f"the last of {best.num_rates} tried: a better one may lie beyond"]
    return [size, lr, f"best of {best.num_rates}, between {rate(best.low)} and {rate(best.high)}"]


def _columns(found: LearningRates) -> dict[str, Sequence[float | str | bool | None]]:
    """A row a batch size."""
    return {
        f"batch size ({found.unit})": [best.batch_size for best in found.rates],
        "best learning rate": [best.lr for best in found.rates],
        "lower end": [best.low for best in found.rates],
        "upper end": [best.high for best in found.rates],
        "learning rates tried": [best.num_rates for best in found.rates],
        "as good": [best.num_as_good for best in found.rates],
        "at the edge of the grid": [best.is_at_grid_edge for best in found.rates],
    }
