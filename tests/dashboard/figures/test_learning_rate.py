"""The figure of a run's learning rate over training."""

from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from fakes_laws import learning_rate_json
from fakes_runs import RUNS
from noisescale_dashboard.answers.series import RateVerdict, rate_verdict
from noisescale_dashboard.figures.over_training.learning_rate_over_training import learning_rate_over_training
from noisescale_dashboard.figures.parts.data_table import attached_columns

FOUND = rate_verdict(learning_rate_json(next(run for run in RUNS if run.resolved)))


def trace(figure: go.Figure, name: str) -> Any:
    return next(one for one in figure.data if one.name == name)


def test_the_line_begins_where_something_is_said() -> None:
    figure = learning_rate_over_training(FOUND, narrow=False)

    line = trace(figure, "rate ÷ best rate")
    assert (line.x[0], line.x[-1]) == (100.0, 1000.0)
    assert line.y[-1] == pytest.approx(-2.02)
    assert line.customdata[-1][0] == "0.25 ×"
    assert line.customdata[-1][2] == "too low"
    assert {one.text for one in figure.layout.annotations} >= {"too low", "right", "too high"}


def test_the_band_goes_around_the_line() -> None:
    band = trace(learning_rate_over_training(FOUND, narrow=True), "interval")

    last = FOUND.points[-1]
    assert min(y for y in band.y if y is not None) <= last.low < last.high <= max(y for y in band.y if y is not None)


def test_the_scale_is_the_same_for_every_run_and_names_factors() -> None:
    axis = learning_rate_over_training(FOUND, narrow=False).layout.yaxis

    assert tuple(axis.range) == (-4, 4)
    assert "÷ 4" in axis.ticktext
    assert "best" in axis.ticktext


def test_a_factor_of_two_about_the_best_is_shaded() -> None:
    [shade] = learning_rate_over_training(FOUND, narrow=False).layout.shapes

    assert (shade.y0, shade.y1) == (-1, 1)


def test_the_table_holds_the_points_before_something_is_said_too() -> None:
    columns = attached_columns(learning_rate_over_training(FOUND, narrow=False))

    assert len(columns["step"]) == len(FOUND.points) == 50
    assert columns["rate ÷ best rate (octaves)"][0] is None
    assert columns["path ratio q (octaves)"][0] == -0.4


@pytest.mark.parametrize("found", [RateVerdict(), replace(FOUND, points=FOUND.points[:2])])
def test_a_run_without_a_verdict_has_an_empty_figure(found: RateVerdict) -> None:
    figure = learning_rate_over_training(found, narrow=False)

    assert len(trace(figure, "rate ÷ best rate").x) == 0
