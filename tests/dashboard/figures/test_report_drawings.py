"""Figures as SVG without a browser: the same places and words, and nothing left out silently."""

import re
from xml.etree import ElementTree

import plotly.graph_objects as go
import pytest

from fakes_advice import recommendation_json
from fakes_runs import HOSTILE, RUNS, series_json
from noisescale_dashboard.answers import advice
from noisescale_dashboard.answers import series as series_answers
from noisescale_dashboard.figures.over_training.noise_scale_over_training import SeriesView, noise_scale_over_training
from noisescale_dashboard.figures.parts import labels
from noisescale_dashboard.figures.parts.marks import whiskers
from noisescale_dashboard.figures.parts.theme import blank_figure
from noisescale_dashboard.figures.planning.trade_off_position import trade_off_position
from noisescale_dashboard.figures.svg import as_svg

WIDTH = 400.0
"""Of which 50 pixels are the margin at either side, so that the plot is 300 wide."""


def plot(*, is_log: bool = False) -> go.Figure:
    """An empty plot of 300 × 100 pixels, x from 0 to 10, y from 1 to 100."""
    figure = blank_figure(height=150, left=50, right=50, top=10, bottom=40)
    figure.update_xaxes(range=[0, 10], dtick=5)
    ends = [0, 2] if is_log else [1, 100]
    figure.update_yaxes(
        type="log" if is_log else "linear", range=ends, tickvals=[1, 10, 100], ticktext=["1", "ten", "c"]
    )
    return figure


def drawn(figure: go.Figure) -> ElementTree.Element:
    return ElementTree.fromstring(as_svg(figure, width=WIDTH, name="one", description="what it shows"))


def data(figure: go.Figure) -> list[str]:
    """The data of the paths of all traces."""
    return [path.get("d") or "" for path in drawn(figure).iter("path")]


def texts(figure: go.Figure) -> list[str]:
    return ["".join(one.itertext()) for one in drawn(figure).iter("text")]


def test_a_line_goes_through_its_points_at_their_pixels() -> None:
    figure = plot(is_log=True).add_scatter(x=[0, 5, 10], y=[1, 10, 100], line={"color": "#000"})

    assert data(figure) == ["M50 110L200 60L350 10"]


def test_a_line_has_a_gap_where_a_value_is_unknown_or_has_no_place_on_a_log_axis() -> None:
    figure = plot(is_log=True).add_scatter(x=[0, 1, 2, 3, 4, 5, 6, 7], y=[10, 10, None, 10, 10, -1, 10, 10])

    assert data(figure)[0].count("M") == 3


def test_a_step_line_keeps_its_value_until_the_next_point() -> None:
    figure = plot().add_scatter(x=[0, 10], y=[1, 100], line={"shape": "hv"})

    assert data(figure) == ["M50 110L350 110L350 10"]


def test_whiskers_reach_along_both_axes() -> None:
    across, up = (whiskers([1], [1], [1], color) for color in ("#111", "#222"))
    figure = plot(is_log=True).add_scatter(x=[5, 6], y=[10, None], mode="markers")
    figure.update_traces(error_x={**across, "array": [3, 1], "arrayminus": [1, 1]}, marker={"color": "#000"})
    figure.update_traces(error_y={**up, "array": [90, 1], "arrayminus": [9, 1]})

    lines = [one.attrib for one in drawn(figure).iter("line") if one.get("stroke") in ("#111", "#222")]

    ends = [tuple(float(one[name]) for name in ("x1", "y1", "x2", "y2")) for one in lines]
    assert ends == [(200, 110, 200, 10), (170, 60, 290, 60)]


def test_axes_have_the_ticks_of_the_figure() -> None:
    assert texts(plot()) == ["0", "5", "10", "1", "ten", "c"]


def test_words_are_literal_but_for_bold() -> None:
    figure = plot()
    figure.add_annotation(x=5, y=50, text=f"<b>{labels.plain(HOSTILE, 200)}</b><br><i>below</i>", font={"size": 12})

    svg = as_svg(figure, width=WIDTH, name="one", description=HOSTILE)

    assert HOSTILE.replace("$", "$\u2060") + "<i>below</i>" in texts(figure)
    assert "<img" not in svg
    assert 'font-weight="600"' in svg


@pytest.mark.parametrize(
    ("trace", "complaint"),
    [
        (go.Heatmap(z=[[1]]), "a trace of type 'heatmap' is not drawn"),
        (go.Scatter(x=[1], y=[1], mode="markers", marker={"symbol": "star"}), "marker symbol 'star' is not drawn"),
        (go.Scatter(x=[1], y=[1], fill="tozeroy"), "fill='tozeroy' is not drawn"),
        (go.Scatter(x=[1], y=[1], line={"shape": "spline"}), "line shape 'spline' is not drawn"),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(trace: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        drawn(plot().add_trace(trace))


def test_axes_whose_range_or_ticks_only_a_browser_would_choose_are_refused() -> None:
    without_range = blank_figure(height=150, right=0, top=0, bottom=0)
    without_ticks = plot().update_xaxes(type="log", range=[0, 1])

    with pytest.raises(ValueError, match="the x axis has no range"):
        drawn(without_range)
    with pytest.raises(ValueError, match="neither tickvals nor, where it is linear, dtick"):
        drawn(without_ticks)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: str(run.number))
@pytest.mark.parametrize("narrow", [False, True])
def test_the_figures_of_every_run_become_whole_drawings(run, narrow: bool) -> None:
    series = series_answers.noise_scale_series(series_json(run, points=60))
    figure = noise_scale_over_training(series, SeriesView(narrow=narrow, height=227))
    position = trade_off_position(advice.recommendation(recommendation_json(run, 0.5)), narrow=narrow)

    for one in (figure, position):
        svg = drawn(one)
        assert svg.get("height") == str(one.layout.height)
        assert not re.search(r"nan|None|inf\b", ElementTree.tostring(svg, encoding="unicode"))
    assert len(list(drawn(figure).iter("text"))) > len(figure.layout.annotations)


def test_marks_differ_in_shape_so_that_a_print_without_colours_can_be_read() -> None:
    run = RUNS[0]
    figure = trade_off_position(advice.recommendation(recommendation_json(run, 0.5)), narrow=True)

    marks = [one.tag for one in drawn(figure).iter() if one.get("fill") in ("#C8590A", "#06664F") and one.tag != "text"]

    assert sorted(marks) == ["circle", "path"]
