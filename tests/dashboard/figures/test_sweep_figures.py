"""Figures of sweeps and branches: what is drawn of fits, refusals, censored points, edges of grids."""

import math
from dataclasses import replace

import plotly.graph_objects as go
import pytest

from fakes_laws import forecast_json, learning_rates_json
from fakes_runs import HOSTILE
from fakes_sweeps import (
    SWEEPS,
    branch_details,
    critical_batch_json,
    published_json,
    quality_json,
)
from noisescale_dashboard.answers.branches import branch
from noisescale_dashboard.answers.common import Interval
from noisescale_dashboard.answers.laws import LearningRates, forecast, learning_rates
from noisescale_dashboard.answers.sweeps import TargetFit, critical_batch, published_sweeps, qualities
from noisescale_dashboard.figures.parts.data_table import attached_columns
from noisescale_dashboard.figures.parts.theme import LIGHT
from noisescale_dashboard.figures.sweeps.best_learning_rates import best_learning_rates
from noisescale_dashboard.figures.sweeps.branch_arms import OUT, branch_arms, num_far
from noisescale_dashboard.figures.sweeps.critical_batch_against_target import critical_batch_against_target
from noisescale_dashboard.figures.sweeps.large_batch_quality import large_batch_quality
from noisescale_dashboard.figures.sweeps.published_sweep import published_sweep
from noisescale_dashboard.figures.sweeps.steps_against_batch_size import regime_zones, steps_against_batch_size
from noisescale_dashboard.figures.sweeps.steps_against_examples import drawn_targets, steps_against_examples
from noisescale_dashboard.figures.sweeps.sweep_residuals import sweep_residuals
from noisescale_dashboard.sweeps.branch import figure_subtitle

LADDER = critical_batch(critical_batch_json(SWEEPS[0], []))
HARDEST = LADDER.targets[-1]
REFUSED = critical_batch(critical_batch_json(SWEEPS[1], [])).targets[0]
RATES = learning_rates(learning_rates_json(SWEEPS[0], 2.85))
QUALITY = qualities(quality_json(SWEEPS[0]))
PUBLISHED = published_sweeps(published_json()).sweeps


def trace(figure: go.Figure, name: str) -> go.Scatter:
    return next(one for one in figure.data if one.name == name)


def words(figure: go.Figure) -> str:
    return " | ".join(annotation.text for annotation in figure.layout.annotations)


def hyperbola(chosen: float = 2.85) -> go.Figure:
    return steps_against_examples(LADDER.targets, chosen, unit="sequences", narrow=False)


def steps_figure(target: TargetFit = HARDEST, **changes: object) -> go.Figure:
    settings = {"unit": "sequences", "narrow": False, **changes}
    return steps_against_batch_size(target, **settings)  # type: ignore[arg-type]


def test_the_hyperbola_shows_the_points_of_every_target_and_a_band_on_the_chosen_one_alone() -> None:
    figure = hyperbola(3.1)

    assert sum(one.name == "interval" for one in figure.data) == 1
    for target in LADDER.targets:
        drawn = trace(figure, f"target {target.target:g}, reached")
        assert list(drawn.x) == [point.steps for point in target.points]
        assert list(drawn.y) == [point.examples for point in target.points]


def test_the_cross_stands_at_twice_the_least_steps_and_examples() -> None:
    figure = hyperbola()

    crosses = [one for one in figure.data if one.name == "B_crit"]
    assert (crosses[-1].x[0], crosses[-1].y[0]) == (25_000, 24.8e6)
    assert "B_crit 992" in words(figure)


def test_of_many_targets_the_ends_and_the_chosen_one_are_drawn() -> None:
    many = [replace(HARDEST, target=t, points=()) for t in range(12)]

    drawn = [target.target for target in drawn_targets(many, 5)]

    assert len(drawn) == 4
    assert {0, 5, 11} <= set(drawn)


def test_steps_have_whiskers_between_evaluations_and_the_edge_of_the_grid_is_open() -> None:
    measured = trace(steps_figure(), "measured")

    assert measured.error_y.arrayminus[3] == pytest.approx(HARDEST.points[3].steps - HARDEST.points[3].low)
    assert measured.marker.color[:2] == (LIGHT.panel, LIGHT.noise)


def test_a_fit_has_its_guides_and_the_critical_batch_with_its_interval() -> None:
    figure = steps_figure()

    slope = trace(figure, "slope −1")
    assert math.log(slope.y[1] / slope.y[0]) / math.log(slope.x[1] / slope.x[0]) == pytest.approx(-1)
    for said in ("B_crit 992", "841 – 1,170", "S_min 12,500", "perfect scaling", "diminishing returns", "maximal"):
        assert said in words(figure)


def test_regimes_end_at_a_tenth_and_ten_times_the_critical_batch() -> None:
    zones = regime_zones(HARDEST, 10.0, 1e5)

    assert [name for name, _, _ in zones] == ["perfect", "diminishing", "maximal"]
    assert [end for _, _, end in zones] == pytest.approx([99.2, 9920, 1e5])


def test_without_a_fit_regimes_come_from_the_slopes_between_points() -> None:
    zones = regime_zones(REFUSED, 10.0, 1e4)

    assert zones == [("perfect", 16, 256)]


def test_a_refusal_draws_no_curve_and_no_number_but_the_bound() -> None:
    figure = steps_figure(REFUSED, diverged=(1024.0,))

    assert not [one for one in figure.data if one.name in ("fit", "slope −1", "interval")]
    assert "B_crit > 4,100" in words(figure)


def test_what_was_not_reached_and_what_diverged_have_marks_of_their_own() -> None:
    figure = steps_figure(REFUSED, diverged=(1024.0,))

    assert trace(figure, "not reached").marker.symbol == "triangle-up"
    assert list(trace(figure, "not reached").x) == [512]
    assert trace(figure, "diverged").marker.symbol == "x-thin"
    assert list(trace(figure, "diverged").x) == [1024]


def test_critical_batches_stand_over_their_targets_harder_ones_to_the_right() -> None:
    figure = critical_batch_against_target(LADDER.targets, goal="min", unit="sequences", metric="loss", narrow=False)

    assert list(trace(figure, "B_crit").y) == [target.critical_batch.value for target in LADDER.targets]
    assert figure.layout.xaxis.range[0] > figure.layout.xaxis.range[1]


@pytest.mark.parametrize(
    ("known", "symbol"), [(Interval(low=4100.0), "triangle-up-open"), (Interval(high=40.0), "triangle-down-open")]
)
def test_a_bound_is_an_open_arrow_and_no_dot(known: Interval, symbol: str) -> None:
    assert REFUSED.refusal
    bounded = replace(REFUSED, refusal=replace(REFUSED.refusal, critical_batch=known))

    figure = critical_batch_against_target([bounded], goal="min", unit="images", metric="loss", narrow=False)

    assert not trace(figure, "B_crit").x
    assert list(trace(figure, "bound").marker.symbol) == [symbol]


def test_whiskers_of_learning_rates_reach_half_way_to_the_next_and_stop_at_the_edge_of_the_grid() -> None:
    figure = best_learning_rates(RATES, narrow=False)

    drawn = trace(figure, "best learning rate")
    assert drawn.error_y.arrayminus[0] == 0
    assert drawn.error_y.array[1] == pytest.approx(RATES.rates[1].lr * (2**0.5 - 1))
    assert drawn.marker.color[:2] == (LIGHT.panel, LIGHT.text_1)


def test_a_curve_of_learning_rates_is_dotted_beyond_what_was_tuned_and_ends_at_the_critical_batch() -> None:
    figure = best_learning_rates(RATES, narrow=False)

    inside, whole = trace(figure, "saturating, solid"), trace(figure, "saturating, 2px,3px")
    sizes = [rate.batch_size for rate in RATES.rates]
    assert min(sizes) <= min(inside.x) <= max(inside.x) <= max(sizes)
    assert max(whole.x) <= max(sizes)
    assert min(whole.x) < min(sizes)
    assert not [one for one in figure.data if one.name.startswith("power")]


def test_the_law_of_critical_batches_is_dotted_where_it_forecasts() -> None:
    law = forecast(forecast_json(SWEEPS[0])).curve

    figure = critical_batch_against_target(
        LADDER.targets, goal="min", unit="sequences", metric="loss", narrow=False, law=law
    )

    assert min(trace(figure, "law, solid").x) >= 2.85 > min(trace(figure, "law, 3px,3px").x)
    assert figure.layout.xaxis.range[1] < 2.6


def test_residuals_are_percents_of_the_fit() -> None:
    assert HARDEST.fit

    figure = sweep_residuals(HARDEST, unit="sequences", narrow=False)

    expected = [100 * math.expm1(residual.log_ratio) for residual in HARDEST.fit.residuals]
    assert list(trace(figure, "steps over fit").y) == pytest.approx(expected)


def test_quality_is_the_difference_from_the_smallest_batch_size() -> None:
    figure = large_batch_quality(QUALITY, unit="sequences", narrow=False)

    drawn = trace(figure, "equal examples")
    assert drawn.y[0] == 0
    assert drawn.y[3] == QUALITY[1].points[3].difference.value


def test_a_branch_has_a_row_an_arm_the_margin_and_the_verdicts() -> None:
    figure = branch_arms(branch(branch_details()), narrow=False)

    assert list(trace(figure, "arm").x) == pytest.approx([0.001, 0.008, 0.031])
    for said in ("margin 0.01", "present", "as good", "open", "worse", "diverged"):
        assert said in words(figure)


def test_a_published_sweep_shows_points_fit_and_bound() -> None:
    fitted, bounded, refused = [published_sweep(one, narrow=False) for one in PUBLISHED[:3]]

    assert "B_crit 9,000" in words(fitted)
    assert "B_crit > 210,000" not in words(fitted)
    assert "B_crit > 210,000" in words(bounded)
    assert "B_crit" not in words(refused)
    assert not [one for one in refused.data if one.name == "fit"]


def test_the_curve_of_a_published_sweep_that_turns_rises_again_at_small_batches() -> None:
    figure = published_sweep(PUBLISHED[3], narrow=False)

    (fit,) = [one for one in figure.data if one.name == "fit"]
    lowest = fit.y.index(min(fit.y))
    assert 0 < lowest < len(fit.y) - 1
    assert 100 < fit.x[lowest] < 300
    assert "sequences of 512 tokens" in words(figure)


@pytest.mark.parametrize("narrow", [False, True])
def test_every_figure_carries_its_data(narrow: bool) -> None:
    figures = (
        steps_against_examples(LADDER.targets, 2.85, unit="sequences", narrow=narrow),
        steps_figure(narrow=narrow),
        critical_batch_against_target(LADDER.targets, goal="min", unit="sequences", metric="loss", narrow=narrow),
        best_learning_rates(RATES, narrow=narrow),
        sweep_residuals(HARDEST, unit="sequences", narrow=narrow),
        large_batch_quality(QUALITY, unit="sequences", narrow=narrow),
        branch_arms(branch(branch_details()), narrow=narrow),
        published_sweep(PUBLISHED[0], narrow=narrow),
    )

    for figure in figures:
        columns = attached_columns(figure)
        assert len(columns) >= 3
        assert all(len(column) == len(columns[next(iter(columns))]) > 0 for column in columns.values())


def test_a_sweep_without_points_is_drawn_empty() -> None:
    nothing = TargetFit(0.5, ())

    for figure in (
        steps_figure(nothing),
        steps_against_examples([nothing], 0.5, unit="images", narrow=True),
        sweep_residuals(nothing, unit="images", narrow=True),
        best_learning_rates(LearningRates(()), narrow=True),
        critical_batch_against_target([nothing], goal="max", unit="images", metric="accuracy", narrow=True),
    ):
        assert not any(one.x for one in figure.data)


def test_hostile_units_are_never_markup() -> None:
    target = critical_batch(critical_batch_json(SWEEPS[3], [])).targets[0]

    for figure in (
        steps_figure(target, unit=HOSTILE),
        steps_against_examples([target], 0.5, unit=HOSTILE, narrow=False),
        critical_batch_against_target([target], goal="min", unit=HOSTILE, metric=HOSTILE, narrow=False),
    ):
        figure.layout.meta = None
        assert "<img" not in figure.to_json()


def test_an_arm_far_off_stands_at_the_edge_with_its_number_and_those_that_matter_fill_the_axis() -> None:
    details = branch_details()
    for arm in details["arms"]:
        if arm["batch_size"] == 4096:
            arm |= {"difference": 1.8, "low": 1.2, "high": 2.4}
    known = branch(details)

    figure = branch_arms(known, narrow=False)

    low, high = figure.layout.xaxis.range
    near, far = (next(t for t in figure.data if t.name == name) for name in ("arm", OUT))
    assert -0.02 < low < 0 < 0.01 < high < 0.02
    assert max(near.x) - min(near.x) >= 0.25 * (high - low)
    assert (far.x, far.y) == ((high,), (3,))
    assert "+1.8" in [a.text for a in figure.layout.annotations]
    assert num_far(known) == 1
    assert attached_columns(figure)["difference"][3] == 1.8


def test_without_an_arm_far_off_none_is_said_to_be() -> None:
    known = branch(branch_details())

    assert num_far(known) == 0
    assert "beyond" not in figure_subtitle(known)
