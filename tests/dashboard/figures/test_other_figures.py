"""Signal and noise, loss, layers, and the bullet of the recommendation."""

from dataclasses import replace

import plotly.graph_objects as go
import pytest

from fakes_advice import recommendation_json
from fakes_runs import HOSTILE, RUNS, groups_json, metrics_json, series_json
from noisescale_dashboard.answers.advice import recommendation
from noisescale_dashboard.answers.plans import Limit
from noisescale_dashboard.answers.series import Metric, groups, metrics, noise_scale_series
from noisescale_dashboard.figures.over_training.layers import color_range, layer_heat_map, layer_ranking
from noisescale_dashboard.figures.over_training.loss_over_training import loss_over_training
from noisescale_dashboard.figures.over_training.noise_scale_over_training import SeriesView
from noisescale_dashboard.figures.over_training.signal_and_noise import num_not_positive, signal_and_noise
from noisescale_dashboard.figures.parts.theme import LIGHT, translucent
from noisescale_dashboard.figures.planning.batch_bullet import batch_bullet

SERIES = noise_scale_series(series_json(RUNS[0], points=120))
METRICS = metrics(metrics_json(RUNS[0]))


def trace(figure: go.Figure, name: str) -> go.Scatter:
    return next(t for t in figure.data if t.name == name)


def test_signal_and_noise_have_bands_of_two_standard_errors() -> None:
    figure = signal_and_noise(SERIES, SeriesView())

    assert figure.layout.yaxis.type == "log"
    band, value = trace(figure, "tr Σ interval").y, SERIES.points.trace_cov[0]
    assert band[0] == value + 1.96 * SERIES.points.trace_cov_se[0]  # type: ignore[operator]
    assert trace(figure, "|G|²").line.color != "#2A6BD4"


def test_a_signal_at_or_below_zero_leaves_a_gap_and_is_counted() -> None:
    signal = list(SERIES.points.grad_sq_norm)
    signal[5] = -0.1
    series = replace(SERIES, points=replace(SERIES.points, grad_sq_norm=tuple(signal)))

    figure = signal_and_noise(series, SeriesView())

    assert trace(figure, "|G|²").y[5] is None
    assert num_not_positive(series) == 1


def test_loss_has_an_envelope_and_is_linear_within_a_decade() -> None:
    figure = loss_over_training(SERIES, SeriesView())

    assert figure.layout.yaxis.type is None
    assert list(trace(figure, "min–max").y[:2]) == list(SERIES.points.loss_max[:2])
    assert "loss <b>" in trace(figure, "loss").hovertemplate


def test_loss_over_more_than_a_decade_is_logarithmic() -> None:
    small = tuple(x / 100 if i > 60 else x for i, x in enumerate(SERIES.points.loss) if x is not None)
    series = replace(SERIES, points=replace(SERIES.points, loss=small, loss_min=small, loss_max=small))

    assert loss_over_training(series, SeriesView()).layout.yaxis.type == "log"


def test_a_small_last_loss_has_the_room_that_its_digits_need() -> None:
    usual, wide = (
        loss_over_training(
            replace(SERIES, points=replace(SERIES.points, loss=(last,) * len(SERIES.points.step))), SeriesView()
        )
        for last in (2.5, 0.09032)
    )

    assert "<b>0.09032</b>" in [a.text for a in wide.layout.annotations]
    # 50 pixels in Inter, 8 away from the line
    assert wide.layout.margin.r > 58 > usual.layout.margin.r


def test_a_logged_loss_is_drawn_as_labelled_points_and_other_metrics_are_not() -> None:
    figure = loss_over_training(SERIES, SeriesView(), METRICS)

    drawn = [t for t in figure.data if t.name.startswith("metric ")]
    assert [(t.name, t.mode, t.x[0]) for t in drawn] == [("metric eval_loss", "lines+markers", 7675.0)]
    assert list(drawn[0].y) == list(METRICS[0].value)
    words = [a.text for a in figure.layout.annotations]
    assert words[1:] == ["loss", "<b>3.062</b>", "eval_loss", "optimizer step"]


def test_a_logged_loss_stands_at_its_own_time() -> None:
    metric = METRICS[0]

    figure = loss_over_training(SERIES, SeriesView(kind="time"), METRICS)

    start = SERIES.points.wall_time[0]
    assert list(trace(figure, "metric eval_loss").x) == [(t - start) / 3600 for t in metric.wall_time]  # type: ignore[operator]


def test_over_units_a_metric_stands_between_two_points_and_nowhere_outside() -> None:
    steps = SERIES.points.step
    at = (steps[0] - 1, steps[3], (steps[3] + steps[4]) // 2, steps[-1] + 1)
    metric = Metric("val_loss", at, (4.0, 3.5, 3.0, 2.9))

    figure = loss_over_training(SERIES, SeriesView(kind="units", unit="tokens"), [metric])

    tokens = trace(figure, "loss").x
    before, known, between, after = trace(figure, "metric val_loss").x
    assert (before, after) == (None, None)
    assert known == tokens[3]
    assert tokens[3] < between < tokens[4]


def test_a_logged_loss_far_from_the_training_loss_makes_the_axis_logarithmic() -> None:
    metric = Metric("eval_loss", (10,), (0.01,))

    assert loss_over_training(SERIES, SeriesView(), [metric]).layout.yaxis.type == "log"


def test_the_words_of_a_metric_are_shown_literally() -> None:
    figure = loss_over_training(SERIES, SeriesView(), metrics(metrics_json(RUNS[8])))

    assert "<img" not in figure.to_json()
    assert any("&lt;" in (a.text or "") for a in figure.layout.annotations)


def test_the_heat_map_has_network_order_and_hatches_what_is_not_resolved() -> None:
    layers = groups(groups_json(RUNS[0], 60))

    figure = layer_heat_map(layers, noun="sequences", narrow=False)

    heat = figure.data[0]
    assert list(figure.layout.yaxis.ticktext) == [layer.name for layer in layers]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    assert heat.showscale is False
    for row, layer in enumerate(layers):
        assert [z is None for z in heat.z[row]] == [v is None for v in layer.series.value]
    assert trace(figure, "not resolved").marker.pattern.shape == "/"


def test_the_ranking_is_sorted_and_an_unresolved_layer_shows_its_bound() -> None:
    layers = groups(groups_json(RUNS[0], 20))

    figure = layer_ranking(layers, noun="sequences", narrow=False)

    values = list(trace(figure, "noise scale").x)
    assert values == sorted(values, reverse=True)
    opened = next(layer for layer in layers if layer.estimate.value is None)
    assert trace(figure, "not resolved").x[0] == opened.estimate.low
    assert "not resolved" in trace(figure, "not resolved").hovertemplate
    assert figure.layout.xaxis.type == "log", "its range is given in decades"


def test_colours_of_layers_span_most_of_the_values() -> None:
    layers = groups(groups_json(RUNS[0], 60))

    low, high = color_range(layers)

    inside = [low <= v <= high for layer in layers for v in layer.series.value if v is not None]
    assert sum(inside) > 0.9 * len(inside)


def test_layer_names_are_shown_literally() -> None:
    figure = layer_heat_map(groups(groups_json(RUNS[8], 20)), noun="images", narrow=False)

    assert HOSTILE not in figure.to_json()
    assert any("&lt;img" in name for name in figure.layout.yaxis.ticktext)
    assert all("<img" not in cell for row in figure.data[0].customdata for column in row for cell in column)


def test_the_bullet_shows_both_batches_and_both_intervals() -> None:
    advice = recommendation(recommendation_json(RUNS[0], 0.5))

    figure = batch_bullet(advice)

    assert [t.x[0] for t in figure.data] == [512.0, 1536]
    assert [t.marker.symbol for t in figure.data] == ["square", "circle"]
    bars = [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert len(bars) == 2
    assert bars[0].x1 - bars[0].x0 > bars[1].x1 - bars[1].x0
    # far from both, and no third number in all
    assert figure.layout.xaxis.ticktext == ("8k",)


@pytest.mark.parametrize("decision", ["keep", "keep_for_now", "insufficient_evidence"])
def test_where_the_batch_stays_no_other_one_is_marked(decision: str) -> None:
    figure = batch_bullet(recommendation(recommendation_json(RUNS[0], 0.5) | {"decision": decision}))

    assert [t.x[0] for t in figure.data] == [512.0]
    assert [a.text for a in figure.layout.annotations] == ["<b>now 512</b>"]


@pytest.mark.parametrize(
    ("inside", "binding", "is_above"), [(700.0, "memory limit", True), (2100.0, "deadline", False)]
)
def test_what_a_limit_forbids_is_grey_and_named(inside: float, binding: str, is_above: bool) -> None:
    limited = {"batch_size": inside, "low": inside, "high": inside, "binding": ["…"], "text": "…"}
    limited["binding_names"] = [binding]
    advice = recommendation({**recommendation_json(RUNS[0], 0.5), "limited": limited})

    figure = batch_bullet(advice)

    grey = next(shape for shape in figure.layout.shapes if shape.type == "rect" and shape.layer == "below")
    assert (grey.x0 if is_above else grey.x1) == inside
    assert binding in [annotation.text for annotation in figure.layout.annotations]


def test_a_limit_that_does_not_bind_is_fainter_and_one_that_binds_is_drawn_once() -> None:
    advice = recommendation(recommendation_json(RUNS[0], 0.5))
    allowed = [
        Limit("seconds", "deadline", low=614.0),
        Limit("usd", "budget", high=2067.0, is_binding=True),
        Limit("memory", "memory limit", high=1e9),
    ]

    figure = batch_bullet(advice, allowed)

    (grey,) = [shape for shape in figure.layout.shapes if shape.name]
    assert (grey.name, grey.x1) == ("seconds", 614.0)
    assert grey.fillcolor == translucent(LIGHT.text_3, 0.1)
    assert "deadline" in [annotation.text for annotation in figure.layout.annotations]


def test_labels_of_near_batches_stand_on_two_sides() -> None:
    advice = recommendation(recommendation_json(RUNS[8], 0.5) | {"decision": "probably_increase"})

    figure = batch_bullet(advice)

    assert [a.xanchor for a in figure.layout.annotations] == ["right", "left"]
