"""The main figure: what is drawn where an estimate is resolved, tentative, or not resolved."""

import itertools
import math
from dataclasses import replace

import plotly.graph_objects as go
import pytest

from fakes_runs import HOSTILE, RUNS, FakeRun, series_json
from noisescale_dashboard.answers.series import Event, NoiseScaleSeries, noise_scale_series
from noisescale_dashboard.figures.over_training.noise_scale_over_training import (
    SeriesView,
    noise_scale_over_training,
    num_outside,
    visible_range,
)


def make_series(run: FakeRun = RUNS[0], points: int = 200) -> NoiseScaleSeries:
    return noise_scale_series(series_json(run, points=points))


def trace(figure: go.Figure, name: str) -> go.Scatter:
    return next(t for t in figure.data if t.name == name)


def known(values: object) -> list[float]:
    return [v for v in values if v is not None]  # type: ignore[attr-defined]


def texts(figure: go.Figure) -> list[str]:
    return [annotation.text for annotation in figure.layout.annotations]


def test_noise_scale_and_batch_share_one_logarithmic_axis() -> None:
    figure = noise_scale_over_training(make_series(), SeriesView())

    assert figure.layout.yaxis.type == "log"
    assert "yaxis2" not in figure.layout
    assert trace(figure, "batch").line.shape == "hv"
    assert trace(figure, "batch").line.color == "#C8590A"
    assert trace(figure, "resolved").line.color == "#2A6BD4"


def test_an_unresolved_point_has_a_bound_and_no_value() -> None:
    series = make_series()
    is_open = [state == "unresolved" for state in series.points.state]

    figure = noise_scale_over_training(series, SeriesView())

    assert any(is_open)
    for name in ("resolved", "noise scale"):
        drawn = trace(figure, name).y
        assert all(drawn[i] is None for i, unresolved in enumerate(is_open) if unresolved)
    bound = trace(figure, "lower bound").y
    assert [b is not None for b in bound] == is_open
    words = [row[0] for row in trace(figure, "noise scale in words").customdata]
    assert all("not resolved" in said for said, b in zip(words, bound, strict=True) if b is not None)


def test_the_interval_leaves_a_gap_where_nothing_is_resolved() -> None:
    series = make_series()

    figure = noise_scale_over_training(series, SeriesView())

    first, last = (next(s for s, st in points if st == "unresolved") for points in (
        zip(series.points.step, series.points.state, strict=True),
        reversed(list(zip(series.points.step, series.points.state, strict=True))),
    ))  # fmt: skip
    assert not [x for x in known(trace(figure, "interval").x) if first <= x <= last]


def test_the_band_reaches_from_the_lower_to_the_upper_end_of_each_interval() -> None:
    points = make_series().points

    band = trace(noise_scale_over_training(make_series(), SeriesView()), "interval")

    rows = zip(points.step, points.value, points.low, points.high, strict=True)
    ends = {(step, end) for step, value, low, high in rows if value is not None and low and high for end in (low, high)}
    assert len(ends) > 100
    assert {(x, y) for x, y in zip(band.x, band.y, strict=True) if x is not None} == ends


def test_tentative_points_are_drawn_at_half_opacity() -> None:
    series = make_series()

    figure = noise_scale_over_training(series, SeriesView())

    assert trace(figure, "noise scale").opacity == 0.5
    assert trace(figure, "resolved").opacity == 1
    drawn = [y is not None for y in trace(figure, "resolved").y]
    assert drawn == [state == "resolved" for state in series.points.state]


def test_at_each_point_one_line_alone_tells_the_noise_scale() -> None:
    series = make_series()

    figure = noise_scale_over_training(series, SeriesView())

    telling = [t for t in figure.data if "noise scale" in (t.hovertemplate or "")]
    assert [t.name for t in telling] == ["noise scale in words"]
    said = [row[0] for row in telling[0].customdata]
    assert said[0].endswith("  tentative")
    assert said[-1].endswith("]")
    states = ["not resolved" if state == "unresolved" else state for state in series.points.state]
    assert all(
        ("not resolved" in words) == (state == "not resolved") for words, state in zip(said, states, strict=True)
    )


def test_a_run_that_ends_unresolved_is_labelled_with_its_bound_only() -> None:
    series = make_series(RUNS[5])

    figure = noise_scale_over_training(series, SeriesView())

    assert [t.name for t in figure.data if t.name in ("resolved", "noise scale", "interval")] in ([], ["interval"])
    assert not known(trace(figure, "interval").x)
    labels = [text for text in texts(figure) if "noise scale" in text]
    assert labels
    assert all(label.startswith("> ") for label in labels)


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        ("step", "optimizer step"),
        ("units", "tokens"),
        ("time", "hours since start"),
        ("loss", "training loss (falling →)"),
    ],
)
def test_the_x_axis_says_what_it_measures(kind: str, title: str) -> None:
    figure = noise_scale_over_training(make_series(), SeriesView(kind=kind, unit="tokens"))

    assert title in texts(figure)


def test_units_are_examples_times_units_per_example() -> None:
    series = make_series()

    figure = noise_scale_over_training(series, SeriesView(kind="units", unit="tokens"))

    assert known(trace(figure, "batch").x)[-1] == series.points.examples[-1] * 1024  # type: ignore[operator]


def test_loss_falls_rightwards_and_is_not_joined_by_a_line() -> None:
    figure = noise_scale_over_training(make_series(), SeriesView(kind="loss"))

    left, right = figure.layout.xaxis.range
    assert left > right
    assert {t.mode for t in figure.data} == {"markers"}


def test_events_are_drawn_with_their_words() -> None:
    figure = noise_scale_over_training(make_series(), SeriesView())

    assert {"batch ×2", "LR ÷3", "branch"} <= set(texts(figure))
    assert len(figure.layout.shapes) == 3


def test_more_than_six_events_keep_words_of_learning_rate_and_batch_only() -> None:
    events = tuple(Event(step, "resumed") for step in range(20_000, 180_000, 20_000))
    series = replace(make_series(), events=(*events, Event(90_000, "lr", 0.1, 0.05)))

    figure = noise_scale_over_training(series, SeriesView())

    assert "resumed" not in texts(figure)
    assert "LR ÷2" in texts(figure)
    assert len(figure.layout.shapes) == 9


def test_values_outside_the_axis_are_counted_and_marked() -> None:
    series = make_series(points=600)
    values = list(series.points.value)
    values[300] = 1e9
    series = replace(series, points=replace(series.points, value=tuple(values)))

    figure = noise_scale_over_training(series, SeriesView())

    assert num_outside(series.points) == 1
    assert known(trace(figure, "outside the axis").x) == [float(series.points.step[300])]
    assert trace(figure, "outside the axis").y[0] == visible_range(series.points)[1]


@pytest.mark.parametrize(
    ("changes", "is_latest"), [({}, True), ({"is_zoomed": True}, False), ({"ends_in_latest": False}, False)]
)
def test_the_end_of_the_line_says_what_the_key_figures_say_unless_another_window_was_chosen(
    changes: dict[str, bool], is_latest: bool
) -> None:
    series = make_series()
    series = replace(series, latest=replace(series.latest, value=777.0, low=700.0, high=800.0))

    figure = noise_scale_over_training(series, SeriesView(**changes))

    assert any("777" in text for text in texts(figure)) is is_latest
    assert any(list(one.y) == [777.0] for one in figure.data if one.name == "last value") is is_latest


def test_end_labels_do_not_overlap() -> None:
    run = replace(RUNS[9], noise_scale=256.0, batch=256)

    figure = noise_scale_over_training(make_series(run), SeriesView())

    heights = sorted(a.yshift for a in figure.layout.annotations if a.xanchor == "left")
    assert len(heights) == 3
    assert all(above - below >= 13.9 for below, above in itertools.pairwise(heights))


def test_a_zoomed_view_is_another_revision_and_a_refreshed_one_is_not() -> None:
    figures = [noise_scale_over_training(make_series(), SeriesView(revision=r)) for r in ("all", "all", "10 20")]

    assert figures[0].layout.uirevision == figures[1].layout.uirevision != figures[2].layout.uirevision


def test_the_live_axis_grows_in_steps_of_five_percent() -> None:
    ends = []
    for steps in range(100_000, 104_000, 500):
        run = replace(RUNS[0], steps=steps)
        ends.append(noise_scale_over_training(make_series(run, 100), SeriesView(is_live=True)).layout.xaxis.range[1])

    assert len(set(ends)) <= 2
    assert all(end >= steps - 1 for end, steps in zip(ends, range(100_000, 104_000, 500), strict=True))


def test_a_long_bound_has_the_room_that_its_words_need() -> None:
    series = make_series()
    end = replace(series.latest, value=None, low=26_336.0, high=None, state="unresolved")
    at_end = SeriesView(ends_in_latest=True)

    usual, wide = (noise_scale_over_training(one, at_end) for one in (series, replace(series, latest=end)))

    assert "> 26,300 noise scale" in texts(wide)
    # about 118 pixels in Inter, 8 away from the line
    assert wide.layout.margin.r > max(126, usual.layout.margin.r)


def test_narrow_figures_are_lower_and_have_their_labels_inside() -> None:
    wide, narrow = (noise_scale_over_training(make_series(), SeriesView(narrow=n)) for n in (False, True))

    assert narrow.layout.height == 300
    assert narrow.layout.margin.r < 30 < wide.layout.margin.r
    assert narrow.layout.xaxis.dtick > wide.layout.xaxis.dtick


def test_user_text_reaches_hover_as_data_and_never_as_template() -> None:
    figure = noise_scale_over_training(make_series(RUNS[8]), SeriesView())

    assert HOSTILE not in figure.to_json()
    assert "<img" not in figure.to_json()


def test_an_empty_series_draws_empty_axes() -> None:
    empty = noise_scale_series({"points": {}, "latest": None, "run_average": None})

    figure = noise_scale_over_training(empty, SeriesView())

    assert all(not known(t.y) for t in figure.data)
    assert math.isfinite(figure.layout.yaxis.range[0])


def test_an_interval_that_runs_off_does_not_press_the_rest_flat() -> None:
    series = make_series()
    high = tuple(h if h is None or i % 4 else 1e9 for i, h in enumerate(series.points.high))

    _, top = visible_range(replace(series.points, high=high))

    assert 1500 < top < 20_000
