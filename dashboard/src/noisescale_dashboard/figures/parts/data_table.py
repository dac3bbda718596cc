"""The data behind a figure as named columns, for the export and the table of its card's menu."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.series import Group, Metric, NoiseScaleSeries

Cell = float | str | bool | None


def attach_table(figure: go.Figure, columns: Mapping[str, Sequence[Cell]]) -> None:
    """Give `figure` the columns that its card exports, all of one length; names carry the unit.

    Raises:
        ValueError: Where columns differ in length.
    """
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns must have one length, got {lengths}: fill what is not known with None")
    figure.update_layout(meta={"columns": [[name, list(values)] for name, values in columns.items()]})


def attached_columns(figure: go.Figure) -> dict[str, list[Cell]]:
    """The columns that were attached; none where nothing was."""
    return dict((figure.layout.meta or {}).get("columns", ()))


# The columns behind a run's figures over training.

Columns = dict[str, Sequence[Cell]]


def noise_scale_columns(series: NoiseScaleSeries, noun: str) -> Columns:
    """A row a point: noise scale with its interval and state, batch, loss, learning rate."""
    points = series.points
    return {
        "step": points.step,
        "examples seen": points.examples,
        "time (seconds since 1970)": points.wall_time,
        f"noise scale ({noun})": points.value,
        f"noise scale, lower end ({noun})": points.low,
        f"noise scale, upper end ({noun})": points.high,
        f"least of single records ({noun})": points.value_min or (None,) * len(points.step),
        f"most of single records ({noun})": points.value_max or (None,) * len(points.step),
        "state": points.state,
        "reason": points.reason,
        f"batch ({noun})": points.global_batch,
        "training loss": points.loss,
        "learning rate": points.lr,
    }


def term_columns(series: NoiseScaleSeries, terms: tuple[str, str]) -> Columns:
    """A row a point: noise and signal with their standard errors."""
    points = series.points
    noise, signal = terms
    return {
        "step": points.step,
        noise: points.trace_cov,
        f"{noise}, standard error": points.trace_cov_se,
        signal: points.grad_sq_norm,
        f"{signal}, standard error": points.grad_sq_norm_se,
    }


def loss_columns(series: NoiseScaleSeries, metrics: Sequence[Metric]) -> Columns:
    """A row a step at which a training loss or a logged loss is known."""
    points = series.points
    named: dict[str, dict[int, Cell]] = {
        name: dict(zip(points.step, column, strict=True))
        for name, column in (
            ("training loss", points.loss),
            ("training loss, least", points.loss_min),
            ("training loss, most", points.loss_max),
        )
    }
    for metric in metrics:
        named.setdefault(metric.name, dict(zip(metric.step, metric.value, strict=True)))
    steps = sorted({step for column in named.values() for step in column})
    return {"step": steps, **{name: [column.get(step) for step in steps] for name, column in named.items()}}


def layer_columns(groups: Sequence[Group], quantity: str) -> Columns:
    """A row a layer: what is shown of it over the range, with its interval, state and the two terms."""
    estimates = [group.estimate for group in groups]
    return {
        "layer": [group.name for group in groups],
        quantity: [estimate.value for estimate in estimates],
        "lower end": [estimate.low for estimate in estimates],
        "upper end": [estimate.high for estimate in estimates],
        "state": [estimate.state for estimate in estimates],
        "tr Σ": [group.trace_cov for group in groups],
        "|G|²": [group.grad_sq_norm for group in groups],
    }
