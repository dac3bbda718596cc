"""Figures that compare: tasks, orders, model sizes, runs and configurations."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go
import pytest

from fakes_compare import compared_runs_json, comparison_json, model_sizes_json
from fakes_runs import HOSTILE, RUNS, run_json
from noisescale_dashboard.answers.common import Interval
from noisescale_dashboard.answers.common import run as run_of
from noisescale_dashboard.answers.comparisons import Rung, TaskOrder, compared_runs, comparison, model_sizes
from noisescale_dashboard.compare.config import settings_of
from noisescale_dashboard.figures.comparison.configurations import MAX_AXES, Line, Setting, configurations
from noisescale_dashboard.figures.comparison.noise_scale_against_critical_batch import (
    noise_scale_against_critical_batch,
)
from noisescale_dashboard.figures.comparison.noise_scale_by_model_size import noise_scale_by_model_size, shades_of
from noisescale_dashboard.figures.comparison.noise_scale_ratio import noise_scale_ratio
from noisescale_dashboard.figures.comparison.runs_side_by_side import Axes, RunMark, runs_side_by_side
from noisescale_dashboard.figures.comparison.task_order import task_order
from noisescale_dashboard.figures.parts.data_table import attached_columns
from noisescale_dashboard.figures.parts.free_places import Box, Ground
from noisescale_dashboard.figures.parts.theme import LIGHT, RUN_COLORS, color_of_slot

FOUND = comparison(comparison_json())
SIZES = model_sizes(model_sizes_json("num_parameters"))
TWO = (RUNS[0], RUNS[4])
UNRESOLVED = RUNS[5]


def trace(figure: go.Figure, name: str) -> go.Scatter:
    return next(one for one in figure.data if one.name == name)


def words(figure: go.Figure) -> str:
    return " | ".join(annotation.text for annotation in figure.layout.annotations)


def scatter(*, narrow: bool = False, **changes: Any) -> go.Figure:
    return noise_scale_against_critical_batch(replace(FOUND, **changes), narrow=narrow)


def side_by_side(*runs: Any, x: str = "step", y: str = "noise", narrow: bool = False) -> go.Figure:
    found = compared_runs(compared_runs_json(runs, [], x, 60))
    looks = [RunMark(run.name, place if place < 5 else None) for place, run in enumerate(runs)]
    return runs_side_by_side(found, looks, Axes(x, y, "images", "images", narrow))


class TestScatter:
    def test_own_tasks_are_filled_with_both_whiskers_in_the_unit_of_the_task(self) -> None:
        drawn = trace(scatter(), "own GPT-350M")

        assert (drawn.x[0], drawn.y[0]) == (pytest.approx(1.52e6), pytest.approx(1.41e6))
        assert drawn.x[0] - drawn.error_x.arrayminus[0] == pytest.approx(1.52e6 / 1.3)
        assert drawn.y[0] + drawn.error_y.array[0] == pytest.approx(1.41e6 * 1.15)
        assert drawn.marker.color == LIGHT.categories[1]

    def test_published_tasks_are_open_and_their_start_is_joined(self) -> None:
        figure = scatter()

        drawn = trace(figure, "published MNIST")
        assert (drawn.x[0], drawn.y[0], drawn.marker.color) == (900, 200, LIGHT.panel)
        assert ([50, 900], [20, 200]) in [
            (list(one.x), list(one.y)) for one in figure.data if one.name == "from start to average"
        ]

    def test_a_range_is_a_dashed_box_and_a_bound_points_upwards(self) -> None:
        figure = scatter()

        (box,) = [shape for shape in figure.layout.shapes if shape.type == "rect"]
        assert (box.x0, box.x1, box.y0, box.y1, box.line.dash) == (1000, 20_000, 400, 8000, "3px,3px")
        arrows = [one for one in figure.data if one.name == "open" and one.mode == "markers"]
        assert (arrows[0].x[0], arrows[0].marker.symbol) == (2.4e7, "triangle-up")
        assert "> 8M, a bound" in trace(figure, "published Dota 5v5 (PPO)").hovertemplate

    def test_decades_are_equally_long_and_the_band_is_the_spread_of_the_published_tasks(self) -> None:
        figure = scatter()

        assert (figure.layout.yaxis.scaleanchor, figure.layout.yaxis.scaleratio) == ("x", 1)
        band = trace(figure, "band")
        assert band.y[1] / band.x[1] == pytest.approx(7.2)
        assert band.y[2] / band.x[2] == pytest.approx(1 / 7.2)
        assert "× 7.2" in words(figure)

    def test_what_has_a_critical_batch_alone_is_a_tick_at_the_edge(self) -> None:
        ticks = trace(scatter(), "B_crit only")

        low, high = scatter().layout.xaxis.range
        # of the axis that keeps its range at every width: one of its own stood in the middle of a narrow page
        assert {round((math.log10(x) - low) / (high - low), 6) for x in ticks.x} == {0.99}
        assert list(ticks.y) == [2900, 5018, 21_000, 1.1e6]

    def test_a_task_without_both_numbers_is_not_drawn_and_one_left_out_is_pale(self) -> None:
        figure = scatter()

        names = [one.name for one in figure.data]
        assert "own speech" not in names
        assert f"own {HOSTILE}" not in names
        assert trace(figure, "own iris softmax").opacity < 1 == trace(figure, "own digits MLP").opacity

    def test_a_phone_names_own_tasks_alone(self) -> None:
        said = words(scatter(narrow=True))

        assert "GPT-350M" in said
        assert "MNIST" not in said
        assert "MNIST" in words(scatter())

    def test_names_of_a_hundred_tasks_neither_meet_nor_leave_the_figure(self) -> None:
        many = tuple(replace(FOUND.tasks[0], task=f"task {number}") for number in range(100))

        figure = scatter(tasks=many)

        assert sum("task " in annotation.text for annotation in figure.layout.annotations) < 10

    def test_without_own_tasks_the_published_ones_stand_alone(self) -> None:
        figure = scatter(tasks=(), statistics=None)

        assert not [one for one in figure.data if str(one.name).startswith("own")]
        assert trace(figure, "published SVHN")

    def test_the_data_have_all_tasks_with_source_and_unit(self) -> None:
        columns = attached_columns(scatter())

        assert len(columns["task"]) == len(FOUND.drawn) + len(FOUND.published) + 4
        assert columns["B_crit (unit)"][columns["task"].index("Dota 5v5 (PPO)")] is None
        assert columns["noise scale (unit)"][-1] is None


def test_a_name_takes_the_first_free_place_and_none_where_all_are_taken() -> None:
    ground = Ground(Box(0, 400, 0, 100))
    ground.take(Box(205, 400, 40, 60))

    first = ground.place(200, 50, 8)
    ground.take(Box(0, 400, 0, 100))

    assert first is not None
    assert first.x_anchor == "right"
    assert ground.place(200, 50, 8) is None


def test_an_order_shows_points_ranges_and_bounds_in_its_own_way() -> None:
    rungs = (Rung("easy (net)", 900, 900), Rung("some", 1000, 20_000), Rung("hard", 8e6, None))

    figure = task_order([TaskOrder("images", "noise_scale", rungs)], {"hard": "#06664F"})

    assert [one.marker.symbol for one in figure.data if one.mode == "markers"] == ["triangle-right", "circle", "circle"]
    assert list(trace(figure, "range").x) == [8e6, 8e6]
    for said in ("easy", "900", "1k – 20k", "> 8M"):
        assert said in words(figure)
    assert "(net)" not in words(figure)


class TestModelSizes:
    def test_larger_models_are_further_from_the_ground_and_cold_windows_are_pale(self) -> None:
        figure = noise_scale_by_model_size(SIZES, noun="sequences", narrow=False)

        assert [one.marker.color for one in figure.data] == list(LIGHT.sequential[3:])
        assert list(figure.data[0].marker.opacity)[-3:] == [0.35] * 3
        assert figure.layout.xaxis.range[0] > figure.layout.xaxis.range[1]

    def test_the_losses_that_all_have_seen_are_tinted(self) -> None:
        (tinted,) = noise_scale_by_model_size(SIZES, noun="sequences", narrow=False).layout.shapes

        assert (tinted.x0, tinted.x1) == (3.35, 4.6)
        alone = replace(SIZES, has_common_losses=False)
        assert not noise_scale_by_model_size(alone, noun="sequences", narrow=False).layout.shapes

    def test_many_sizes_share_the_shades_and_a_single_one_has_the_darkest(self) -> None:
        assert len(set(shades_of([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).values())) == 4
        assert shades_of([7.0]) == {7.0: LIGHT.sequential[-1]}

    def test_sizes_that_end_at_one_place_are_written_behind_it_and_apart(self) -> None:
        same = tuple(replace(run, loss=SIZES.runs[0].loss, noise_scale=SIZES.runs[0].noise_scale) for run in SIZES.runs)

        figure = noise_scale_by_model_size(replace(SIZES, runs=same), noun="sequences", narrow=False)

        written = [one for one in figure.layout.annotations if one.text.startswith("<b>")]
        heights = sorted(one.yshift for one in written)
        assert len(written) == len({run.size for run in same})
        assert all(high - low >= 13.9 for low, high in pairwise(heights))
        assert {one.xanchor for one in written} == {"left"}
        assert figure.layout.margin.r >= 40

    def test_without_runs_there_are_axes_alone(self) -> None:
        figure = noise_scale_by_model_size(replace(SIZES, runs=(), effect=None), noun="sequences", narrow=True)

        assert len(figure.data) == 0


class TestRuns:
    def test_each_run_has_a_colour_of_its_own_for_line_band_and_batch(self) -> None:
        figure = side_by_side(*TWO)

        for slot, run in enumerate(TWO):
            assert trace(figure, run.name).line.color == RUN_COLORS[slot]
            batch = trace(figure, f"{run.name}, batch")
            assert (batch.line.color, batch.line.shape) == (RUN_COLORS[slot], "hv")
        assert sum(one.name == "interval" for one in figure.data) == 2

    def test_a_sixth_run_is_grey_without_band_or_name(self) -> None:
        figure = side_by_side(*RUNS[:4], RUNS[4], RUNS[6])

        assert trace(figure, RUNS[6].name).line.color == color_of_slot(None)
        assert sum(one.name == "interval" for one in figure.data) == 5
        assert f"<b>{RUNS[6].name}</b>" not in words(figure)

    def test_an_unresolved_run_is_a_dotted_bound_and_never_a_number(self) -> None:
        figure = side_by_side(TWO[0], UNRESOLVED)

        bound = trace(figure, f"{UNRESOLVED.name}, at least")
        assert bound.line.dash == "2px,3px"
        assert all(y is None for y in trace(figure, UNRESOLVED.name).y)
        assert "> " in words(figure)

    @pytest.mark.parametrize(
        ("x", "title"),
        [
            ("step", "optimizer step"),
            ("units", "images seen"),
            ("time", "hours since each run's start"),
            ("loss", "training loss (falling →)"),
        ],
    )
    def test_every_axis_has_its_title_and_loss_runs_right_to_left(self, x: str, title: str) -> None:
        figure = side_by_side(*TWO, x=x)

        assert title in words(figure)
        left, right = figure.layout.xaxis.range
        assert (left > right) == (x == "loss")

    def test_over_the_loss_there_are_dots_since_a_loss_comes_again(self) -> None:
        figure = side_by_side(*TWO, x="loss")

        assert {one.mode for one in figure.data} == {"markers"}

    @pytest.mark.parametrize("y", ["noise", "loss", "batch", "efficiency"])
    def test_every_quantity_is_drawn_with_its_words_and_its_data(self, y: str) -> None:
        figure = side_by_side(*TWO, y=y)

        said = trace(figure, TWO[0].name).customdata[-1][0]
        assert {"noise": "noise scale", "loss": "loss", "batch": "batch", "efficiency": "of each example"}[y] in said
        assert "example efficiency" in attached_columns(figure)
        assert len(attached_columns(figure)["run"]) == 2 * 60

    def test_efficiency_has_an_axis_from_nothing_to_all(self) -> None:
        assert list(side_by_side(*TWO, y="efficiency").layout.yaxis.range) == [0, 1]

    def test_names_of_runs_are_text(self) -> None:
        figure = side_by_side(RUNS[8], TWO[0])

        assert "<img" not in words(figure)
        assert "<img" not in trace(figure, RUNS[8].name).customdata[0][0]


def test_the_label_of_a_run_says_what_the_table_beside_it_says() -> None:
    found = compared_runs(compared_runs_json(TWO, [], "step", 60))
    looks = [RunMark("a", 0, False, Interval(107.0, 57.0, 464.0)), RunMark("b", 1, False, Interval(None, 651.0, None))]

    said = words(runs_side_by_side(found, looks, Axes("step", "noise", "images", "images", False)))

    assert "107" in said
    assert "> 651" in said


class TestRatio:
    def ratio(self, x: str = "step") -> go.Figure:
        found = compared_runs(compared_runs_json(TWO, [], x, 60))
        looks = [RunMark(TWO[1].name, 1)]
        return noise_scale_ratio(found.ratios, looks, Axes(x, "noise", "images", "images", False), reference="a")

    def test_the_ratio_has_its_band_and_is_pale_where_it_is_not_resolved(self) -> None:
        figure = self.ratio()

        value = TWO[1].noise_scale / TWO[0].noise_scale
        assert set(trace(figure, TWO[1].name).y) == {value}
        sure = trace(figure, f"{TWO[1].name}, resolved")
        assert (sure.y[0], sure.y[-1]) == (None, value)
        assert trace(figure, "interval").fill == "toself"

    def test_the_axis_reaches_equally_far_to_both_sides_of_one(self) -> None:
        low, high = self.ratio().layout.yaxis.range

        assert low == pytest.approx(-high)
        assert high > math.log10(TWO[1].noise_scale / TWO[0].noise_scale)

    def test_without_a_ratio_the_figure_is_empty_but_whole(self) -> None:
        figure = noise_scale_ratio([], [], Axes("step", "noise", "images", "images", True), reference="a")

        assert not [one for one in figure.data if one.name != "interval"]


class TestConfigurations:
    SETTINGS = (
        Setting("batch", (16.0, 4096.0)),
        Setting("seed", (1.0, 1.0)),
        Setting("act", ("relu", "gelu")),
        Setting("dropout", (0.1, None)),
    )
    LINES = (Line("one", "increase", "raise to 32"), Line(HOSTILE, "decrease", "lower to 8"))

    def test_only_what_varies_has_an_axis_and_a_log_one_says_so(self) -> None:
        figure = configurations(self.SETTINGS, self.LINES, narrow=False)

        said = words(figure)
        assert "<b>batch</b>" in said
        assert "<b>seed</b>" not in said
        assert said.count("log") == 1
        assert [len(one.x) for one in figure.data] == [3, 3]

    def test_lines_have_the_colour_of_the_decision_and_its_word(self) -> None:
        figure = configurations(self.SETTINGS, self.LINES, narrow=False)

        assert [one.line.color for one in figure.data] == [LIGHT.noise, LIGHT.batch]
        assert "raise to 32" in words(figure)

    def test_what_a_run_does_not_say_stands_below_and_is_no_number(self) -> None:
        figure = configurations(self.SETTINGS, self.LINES, narrow=False)

        assert figure.data[1].y[-1] < 0
        assert "not set" in words(figure)
        assert "<img" not in words(figure)

    def test_eight_axes_have_room_and_on_a_phone_four(self) -> None:
        many = [Setting(f"key {number}", (1.0, 2.0)) for number in range(20)]

        assert len(configurations(many, self.LINES, narrow=False).data[0].x) == MAX_AXES
        assert len(configurations(many, self.LINES, narrow=True).data[0].x) == 4

    def test_numbers_beside_words_are_words_and_many_values_have_ends_and_middle(self) -> None:
        mixed, many = Setting("width", (64.0, "auto")), Setting("lr", tuple(10.0**-k for k in range(1, 8)))

        assert not mixed.numbers
        assert [said for _, said in mixed.ticks()] == ["64", "auto"]
        assert [height for height, _ in many.ticks()] == pytest.approx([0, 0.5, 1])


def test_values_on_the_axes_of_settings_stand_on_a_ground_of_their_own() -> None:
    settings = [Setting("lr", (0.05, 0.1)), Setting("optimizer", ("SGD", "Adam"))]

    figure = configurations(settings, [Line("a", "keep", "keep"), Line("b", "keep", "keep")], narrow=False)

    grounds = {a.text: a.bgcolor for a in figure.layout.annotations}
    assert {grounds[word] for word in ("0.05", "SGD", "Adam")} == {LIGHT.panel}


def test_what_a_config_repeats_is_no_setting_of_its_own() -> None:
    runs = [
        replace(run_of(run_json(one)), global_batch=batch, lr=0.1, config={"batch_size": batch, "lr": rate, "depth": 2})
        for one, batch, rate in ((RUNS[0], 64.0, 0.1), (RUNS[1], 128.0, 0.2))
    ]

    names = [one.name for one in settings_of(runs)]

    assert "batch" in names
    assert "batch_size" not in names
    # the rate has been lowered since: both are told
    assert {"learning rate", "lr", "depth"} <= set(names)
