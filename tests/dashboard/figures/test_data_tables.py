"""The columns behind the figures, for export and table."""

import pytest
from plotly import graph_objects as go

from fakes_runs import RUNS, groups_json, metrics_json, series_json
from noisescale_dashboard.answers.series import groups, metrics, noise_scale_series
from noisescale_dashboard.figures.over_training.layers import layer_heat_map, layer_ranking
from noisescale_dashboard.figures.over_training.loss_over_training import loss_over_training
from noisescale_dashboard.figures.over_training.noise_scale_over_training import SeriesView, noise_scale_over_training
from noisescale_dashboard.figures.over_training.signal_and_noise import signal_and_noise
from noisescale_dashboard.figures.parts.data_table import attach_table, attached_columns

SERIES = noise_scale_series(series_json(RUNS[0], points=60))
METRICS = metrics(metrics_json(RUNS[0]))
LAYERS = groups(groups_json(RUNS[0], 10))
VIEW = SeriesView(noun="sequences", unit="tokens")


def test_columns_of_several_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        attach_table(go.Figure(), {"step": [1, 2], "loss": [0.5]})


def test_the_noise_scale_is_exported_with_unit_interval_and_state() -> None:
    columns = attached_columns(noise_scale_over_training(SERIES, VIEW))

    assert columns["noise scale (sequences)"] == list(SERIES.points.value)
    assert columns["noise scale, lower end (sequences)"] == list(SERIES.points.low)
    assert columns["state"] == list(SERIES.points.state)


def test_the_two_terms_are_exported_with_their_errors_also_where_they_are_not_drawn() -> None:
    columns = attached_columns(signal_and_noise(SERIES, VIEW))

    assert columns["|G|²"] == list(SERIES.points.grad_sq_norm)
    assert columns["|G|², standard error"] == list(SERIES.points.grad_sq_norm_se)


def test_losses_logged_at_other_steps_get_rows_of_their_own() -> None:
    columns = attached_columns(loss_over_training(SERIES, VIEW, METRICS))

    logged = next(metric for metric in METRICS if metric.name == "eval_loss")
    assert set(logged.step) | set(SERIES.points.step) == set(columns["step"])
    assert [v for v in columns["eval_loss"] if v is not None] == [v for v in logged.value if v is not None]


def test_layers_are_exported_in_the_order_in_which_they_are_drawn() -> None:
    drawn = attached_columns(layer_heat_map(LAYERS, noun="sequences", narrow=False))
    ranked = attached_columns(layer_ranking(LAYERS, noun="sequences", narrow=False))

    assert drawn["layer"] == [layer.name for layer in LAYERS]
    assert ranked["noise scale"][0] == max(value for value in drawn["noise scale"] if value is not None)
    assert set(ranked["layer"]) == set(drawn["layer"])
