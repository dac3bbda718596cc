"""Efficiency over training, terms of layers, and what else a run's page draws of the noise scale."""

from dataclasses import replace

import plotly.graph_objects as go
import pytest

from fakes_advice import recommendation_json
from fakes_runs import RUNS, FakeRun, groups_json, series_json
from noisescale_dashboard.answers.advice import recommendation
from noisescale_dashboard.answers.series import NoiseScaleSeries, groups, noise_scale_series
from noisescale_dashboard.figures.over_training.efficiency_over_training import efficiency_over_training
from noisescale_dashboard.figures.over_training.layers import QUANTITIES, layer_heat_map, layer_ranking, of_term
from noisescale_dashboard.figures.over_training.noise_scale_over_training import (
    SeriesView,
    noise_scale_over_training,
    num_outside,
    visible_range,
)
from noisescale_dashboard.figures.parts.data_table import attached_columns
from noisescale_dashboard.figures.planning.trade_off_position import trade_off_position


def make_series(run: FakeRun = RUNS[0], points: int = 200) -> NoiseScaleSeries:
    return noise_scale_series(series_json(run, points=points))


def trace(figure: go.Figure, name: str) -> go.Scatter:
    return next(t for t in figure.data if t.name == name)


def test_the_two_efficiencies_add_up_and_a_point_without_noise_scale_has_neither() -> None:
    series = make_series()

    figure = efficiency_over_training(series, SeriesView())

    used, rest = trace(figure, "example efficiency").y, trace(figure, "step efficiency").y
    for value, batch, e, w in zip(series.points.value, series.points.global_batch, used, rest, strict=True):
        if value is None:
            assert (e, w) == (None, None)
        else:
            assert e == pytest.approx(value / (value + batch))
            assert e + w == pytest.approx(1)
    assert any(value is None for value in series.points.value)


def test_the_band_of_the_efficiency_is_that_of_the_noise_scale() -> None:
    figure = efficiency_over_training(make_series(), SeriesView())
    columns = attached_columns(figure)

    for low, used, high in zip(
        columns["example efficiency, lower end"], columns["example efficiency"],
        columns["example efficiency, upper end"], strict=True,
    ):  # fmt: skip
        assert used is None or low < used < high
    ends = (columns["example efficiency, lower end"], columns["example efficiency, upper end"])
    drawn = [y for y in trace(figure, "interval").y if y is not None]
    assert sorted(drawn) == sorted(y for end in ends for y in end if y is not None)


def test_what_is_redundant_reaches_from_the_line_to_the_whole() -> None:
    figure = efficiency_over_training(make_series(), SeriesView())

    heights = [y for y in trace(figure, "redundant examples").y if y is not None]
    assert max(heights) == 1.0
    assert trace(figure, "redundant examples").fillcolor.startswith("rgba(200,89,10")


def test_the_envelope_is_drawn_behind_the_band_and_can_be_left_out() -> None:
    series = make_series()

    names = [t.name for t in noise_scale_over_training(series, SeriesView()).data]
    bare = [t.name for t in noise_scale_over_training(series, SeriesView(has_envelope=False)).data]

    assert names.index("min–max") < names.index("interval")
    assert "min–max" not in bare
    assert bare == [name for name in names if name != "min–max"]


def test_a_least_record_at_or_below_zero_draws_the_envelope_down_to_the_axis() -> None:
    series = make_series()
    points = replace(series.points, value_min=tuple(None if v is None else -5.0 for v in series.points.value))

    figure = noise_scale_over_training(replace(series, points=points), SeriesView())

    low, _ = visible_range(points)
    assert min(y for y in trace(figure, "min–max").y if y is not None) == low > 0


def test_an_answer_of_an_older_server_has_no_envelope() -> None:
    series = make_series()
    points = replace(series.points, value_min=(), value_max=())

    figure = noise_scale_over_training(replace(series, points=points), SeriesView())

    assert "min–max" not in [t.name for t in figure.data]


def test_the_axis_can_be_stretched_to_every_point() -> None:
    series = make_series(points=400)
    values = list(series.points.value)
    values[200], values[300] = 1e9, 2e9
    points = replace(series.points, value=tuple(values))

    assert num_outside(points) == 2
    assert num_outside(points, shows_all=True) == 0
    assert visible_range(points, shows_all=True)[1] >= 2e9


@pytest.mark.parametrize("term", ["trace_cov", "grad_sq_norm"])
def test_a_term_of_layers_is_ranked_by_its_value_with_an_interval_of_its_error(term: str) -> None:
    layers = of_term(groups(groups_json(RUNS[0], 12)), term)

    figure = layer_ranking(layers, noun="sequences", narrow=False, quantity=QUANTITIES[term])

    drawn = trace(figure, QUANTITIES[term].name)
    assert list(drawn.x) == sorted(drawn.x, reverse=True)
    assert drawn.marker.color == QUANTITIES[term].color
    assert all(reach > 0 for reach in drawn.error_x.array)
    # an interval that reaches zero leaves the logarithmic axis, and does not end at its value
    assert all(0 < value - down < value for value, down in zip(drawn.x, drawn.error_x.arrayminus, strict=True))


def test_a_term_that_is_not_above_zero_has_no_cell() -> None:
    layers = of_term(groups(groups_json(RUNS[0], 60)), "grad_sq_norm")

    figure = layer_heat_map(layers, noun="sequences", narrow=False, quantity=QUANTITIES["grad_sq_norm"])

    cells = [cell for row in figure.data[0].z for cell in row]
    assert None in cells
    assert "|G|²" in figure.data[0].hovertemplate
    assert "noise scale" not in figure.data[0].hovertemplate


def test_the_browser_can_put_any_moment_on_the_trade_off_curve() -> None:
    advice = recommendation(recommendation_json(RUNS[0], 0.5, {}))

    meta = trade_off_position(advice, narrow=False).layout.meta

    assert meta["kappa"] == pytest.approx(advice.critical_batch.value / advice.noise_scale.value)
    assert meta["columns"]
