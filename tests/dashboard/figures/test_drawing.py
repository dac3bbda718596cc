"""Figures that plotly does not check are the figures that it would have made."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.io.json import to_json_plotly

from checked_figures import figures_of_plotly
from fakes_runs import RUNS, groups_json, run_json, series_json
from noisescale_dashboard.answers import common as answers
from noisescale_dashboard.answers import series as series_answers
from noisescale_dashboard.figures.comparison import misfit, small_multiples
from noisescale_dashboard.figures.over_training import (
    layers,
    loss_over_training,
    noise_scale_over_training,
    signal_and_noise,
)
from noisescale_dashboard.figures.over_training.noise_scale_over_training import SeriesView
from noisescale_dashboard.figures.parts.drawing import Drawing

RUN = answers.run(run_json(RUNS[0]))
SERIES = series_answers.noise_scale_series(series_json(RUNS[0], points=90, first=0, last=RUNS[0].steps - 1))
GROUPS = series_answers.groups(groups_json(RUNS[0], 20))
MISFITS = [
    misfit.MisfitRow("1", "first", "images", 256, "increase", best=500, low=300, high=900),
    misfit.MisfitRow("2", "second", "images", 256, "insufficient_evidence", bound=90),
]
SHORT = series_answers.ShortSeries(SERIES.points)
PANELS = [small_multiples.Panel(str(n), f"run {n}", "images", SHORT, SERIES.latest) for n in range(3)]
FIGURES = {
    "over training": lambda: noise_scale_over_training.noise_scale_over_training(SERIES, SeriesView()),
    "against loss": lambda: noise_scale_over_training.noise_scale_over_training(SERIES, SeriesView(kind="loss")),
    "narrow": lambda: noise_scale_over_training.noise_scale_over_training(
        SERIES, SeriesView(narrow=True, is_live=True)
    ),
    "loss": lambda: loss_over_training.loss_over_training(SERIES, SeriesView()),
    "terms": lambda: signal_and_noise.signal_and_noise(SERIES, SeriesView()),
    "layers": lambda: layers.layer_heat_map(GROUPS, noun="tokens", narrow=False),
    "ranking": lambda: layers.layer_ranking(GROUPS, noun="tokens", narrow=False),
    "misfit": lambda: misfit.misfit(MISFITS, narrow=False),
    "small multiples": lambda: small_multiples.small_multiples(PANELS, narrow=False),
}


@pytest.mark.parametrize("name", FIGURES)
def test_unchecked_figures_reach_the_browser_as_checked_ones_do(name: str) -> None:
    with figures_of_plotly():
        checked = to_json_plotly(FIGURES[name]().to_dict())

    unchecked = json.loads(to_json_plotly(FIGURES[name]()))["json"]

    assert json.loads(unchecked) == json.loads(checked)


@pytest.mark.parametrize("unknown", [float("nan"), float("inf"), np.float64("nan")])
def test_a_number_that_is_none_reaches_the_browser_as_null(unknown: float) -> None:
    figure = Drawing().add_scatter(x=[1, 2], y=[unknown, np.float64(2.0)])

    assert json.loads(figure.to_plotly_json()["json"])["data"][0]["y"] == [None, 2.0]


def test_traces_of_an_unchecked_figure_are_read_as_plotlys_own() -> None:
    figure = Drawing()

    figure.add_scatter(x=[1, 2], y=[3, 4], name="first", line={"color": "#123456"})
    figure.add_bar(x=[1], y=[2], name="second")
    figure.data[0].name = "renamed"

    assert [trace.name for trace in figure.data] == ["renamed", "second"]
    assert (figure.data[0].x, figure.data[0].line.color) == ((1, 2), "#123456")
    assert go.Figure(json.loads(figure.to_plotly_json()["json"])).data[1].y == (2,)


def test_annotations_and_shapes_of_an_unchecked_figure_are_read_as_plotlys_own() -> None:
    figure = Drawing()

    figure.add_annotation(x=1, y=2, text="first", font={"size": 12})
    assert [one.text for one in figure.layout.annotations] == ["first"]
    figure.add_annotation(x=3, y=2, text="second")
    figure.add_vline(x=4, line={"width": 1})
    figure.add_shape(type="line", x0=0, x1=1, y0=0, y1=1)
    figure.add_vline(x=5)

    assert [(one.text, one.x) for one in figure.layout.annotations] == [("first", 1), ("second", 3)]
    assert figure.layout.annotations[0].font.size == 12
    assert [one.x0 for one in figure.layout.shapes] == [4, 0, 5]
    assert json.loads(figure.to_plotly_json()["json"]) == json.loads(to_json_plotly(figure.to_dict()))


def test_axes_that_share_a_setting_are_changed_one_by_one() -> None:
    figure = Drawing(layout={"xaxis": {"type": "log"}, "yaxis": {}})

    figure.update_layout(xaxis2={"visible": True})
    figure.update_xaxes(tickfont={"size": 12}, visible=None)
    figure.update_layout(xaxis2={"tickfont": {"size": 9}})

    assert (figure.layout.xaxis.tickfont.size, figure.layout.xaxis.type) == (12, "log")
    assert json.loads(figure.to_plotly_json()["json"])["layout"]["xaxis2"] == {"tickfont": {"size": 9}}
    assert figure.layout.yaxis.tickfont.size is None


def test_checked_figures_refuse_what_plotly_does_not_know() -> None:
    with pytest.raises(ValueError, match="colour"):
        Drawing().add_scatter(x=[1], y=[1], line={"colour": "#123456"})
    with pytest.raises(ValueError, match="wide"):
        Drawing().update_layout(xaxis={"wide": True})
    with pytest.raises(ValueError, match="say"):
        Drawing().add_annotation(say="this")
    with pytest.raises(ValueError, match="tall"):
        Drawing().add_vline(x=1, line={"tall": 1})
