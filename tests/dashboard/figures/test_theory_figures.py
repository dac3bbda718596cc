"""Figures of a run that rest on theory: its place on the trade-off curve, its noise scale against the loss."""

from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from fakes_advice import recommendation_json
from fakes_laws import run_forecast_json
from fakes_runs import RUNS
from noisescale_dashboard.answers.advice import recommendation
from noisescale_dashboard.answers.common import Interval
from noisescale_dashboard.answers.laws import Forecast, forecast
from noisescale_dashboard.figures.comparison.noise_scale_against_loss import noise_scale_against_loss
from noisescale_dashboard.figures.parts.data_table import attached_columns
from noisescale_dashboard.figures.planning.trade_off_position import trade_off_position

LAW = forecast(run_forecast_json(RUNS[0]))
ADVICE = replace(
    recommendation(recommendation_json(RUNS[0], 0.5)),
    critical_batch=Interval(1500.0, 500.0, 4500.0),
    current_batch_size=500.0,
    recommended_batch_size=1500.0,
)


def trace(figure: go.Figure, name: str) -> Any:
    return next(one for one in figure.data if one.name == name)


def test_the_batch_in_use_stands_where_its_steps_and_examples_are() -> None:
    figure = trade_off_position(ADVICE, narrow=False)

    now, best = trace(figure, "now"), trace(figure, "recommended")
    assert (now.x[0], now.y[0]) == pytest.approx((4.0, 4 / 3))
    assert (best.x[0], best.y[0]) == pytest.approx((2.0, 2.0))
    assert (now.marker.symbol, best.marker.symbol) == ("square", "circle")


def test_every_point_of_the_curve_obeys_the_trade_off() -> None:
    figure = trade_off_position(ADVICE, narrow=False)

    for name in ("trade-off", "now, interval"):
        drawn = trace(figure, name)
        assert [(x - 1) * (y - 1) for x, y in zip(drawn.x, drawn.y, strict=True)] == pytest.approx([1.0] * len(drawn.x))


def test_the_interval_reaches_from_the_smallest_to_the_largest_critical_batch() -> None:
    drawn = trace(trade_off_position(ADVICE, narrow=False), "now, interval")

    assert (min(drawn.x), max(drawn.x)) == pytest.approx((2.0, 10.0))


def test_without_a_noise_scale_no_batch_stands_on_the_curve() -> None:
    figure = trade_off_position(replace(ADVICE, critical_batch=Interval()), narrow=True)

    assert [one.name for one in figure.data] == ["trade-off"]
    assert attached_columns(figure)["steps over S_min"] == [None, None]


def test_the_noise_scale_is_drawn_against_a_falling_loss_with_its_law_and_forecast() -> None:
    figure = noise_scale_against_loss(LAW, noun="sequences", narrow=False)

    assert list(trace(figure, "windows").y) == [point.value for point in LAW.observed]
    assert figure.layout.xaxis.range[0] > figure.layout.xaxis.range[1]
    assert min(trace(figure, "law, solid").x) >= 2.85 > min(trace(figure, "law, 3px,3px").x)
    assert trace(figure, "windows").error_y.array[0] == pytest.approx(LAW.observed[0].value * 0.2)
    assert "power <b>−6.1</b>, −7 to −5.3" in [annotation.text for annotation in figure.layout.annotations]


def test_without_a_law_there_are_points_and_no_line() -> None:
    figure = noise_scale_against_loss(Forecast(observed=LAW.observed), noun="sequences", narrow=True)

    assert [one.name for one in figure.data] == ["windows"]


def test_a_run_without_resolved_windows_is_drawn_empty() -> None:
    figure = noise_scale_against_loss(Forecast(), noun="sequences", narrow=True)

    assert not any(one.x for one in figure.data)
