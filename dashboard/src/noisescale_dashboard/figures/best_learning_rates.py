"""The learning rate that reached the target first, at each batch size, between its neighbours on the grid."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from noisescale_dashboard.figures import axes, labels, marks
from noisescale_dashboard.figures.data_table import attach_table
from noisescale_dashboard.figures.theme import LIGHT, blank_figure
from noisescale_dashboard.number_format import count, rate
from noisescale_dashboard.sweep_answers import StepsPoint, SweepRun

HEIGHT = 226


@dataclass(frozen=True, slots=True)
class BestRate:
    """The best learning rate of a batch size.

    Attributes:
        batch_size: In examples.
        lr: The best of those tried.
        below: The next smaller one that was tried; None where the best was the smallest.
        above: The next larger one; None where the best was the largest.
        num_tried: How many were tried.
    """

    batch_size: float
    lr: float
    below: float | None
    above: float | None
    num_tried: int

    @property
    def is_at_edge(self) -> bool:
        """Whether a better one may lie beyond the grid."""
        return self.num_tried > 1 and (self.below is None or self.above is None)


def best_rates(points: Sequence[StepsPoint], runs: Sequence[SweepRun]) -> tuple[BestRate, ...]:
    """The best rate of each batch size with its neighbours among the rates that were tried there."""
    found = []
    for point in points:
        tried = sorted({run.lr for run in runs if run.batch_size == point.batch_size} | {point.lr})
        place = tried.index(point.lr)
        below = tried[place - 1] if place else None
        above = tried[place + 1] if place + 1 < len(tried) else None
        found.append(BestRate(point.batch_size, point.lr, below, above, len(tried)))
    return tuple(found)


def best_learning_rates(rates: Sequence[BestRate], *, unit: str, narrow: bool) -> go.Figure:
    """Best learning rate over the batch size (`unit`), both log; whiskers reach to the next rates of the grid."""
    figure = blank_figure(height=HEIGHT, right=16, top=12, bottom=40)
    figure.update_layout(hovermode="closest", hoverdistance=14)
    sizes = [best.batch_size for best in rates] or [1.0]
    axes.set_batch_axis(figure, min(sizes) / 1.6, max(sizes) * 1.6, at_most=4 if narrow else 6)
    ends = axes.quantiles([end for best in rates for end in (best.lr, best.below, best.above)], 0, 1)
    axes.set_log_axis(figure, *axes.log_range(*(ends or (1e-3, 1e-1)), room=0.1))
    _add_rates(figure, rates)
    labels.write_x_title(figure, f"batch size, {labels.plain(unit)}")
    attach_table(
        figure,
        {
            f"batch size ({unit})": [best.batch_size for best in rates],
            "best learning rate": [best.lr for best in rates],
            "next smaller rate tried": [best.below for best in rates],
            "next larger rate tried": [best.above for best in rates],
            "learning rates tried": [best.num_tried for best in rates],
        },
    )
    return figure


def _add_rates(figure: go.Figure, rates: Sequence[BestRate]) -> None:
    figure.add_scatter(
        x=[best.batch_size for best in rates], y=[best.lr for best in rates], name="best learning rate", mode="markers",
        error_y=marks.whiskers(
            [best.lr for best in rates], [best.below for best in rates], [best.above for best in rates], LIGHT.text_2
        ),
        marker=marks.ringed(LIGHT.text_1, is_open=[best.is_at_edge for best in rates]),
        customdata=[_words(best) for best in rates],
        hovertemplate="batch <b>%{customdata[0]}</b><br>best LR <b>%{customdata[1]}</b>, %{customdata[2]}"
        "<extra></extra>",
    )  # fmt: skip


def _words(best: BestRate) -> list[str]:
    if best.num_tried == 1:
        return [count(best.batch_size), rate(best.lr), "the only one tried"]
    if best.is_at_edge:
        side = "smallest" if best.below is None else "largest"
        return [count(best.batch_size), rate(best.lr), f"the {side} of {best.num_tried}: a better one may lie beyond"]
    return [count(best.batch_size), rate(best.lr), f"between {rate(best.below)} and {rate(best.above)}"]
