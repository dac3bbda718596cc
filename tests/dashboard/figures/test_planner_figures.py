"""Time against cost, and which limit binds: what is drawn of a plan, on trace data."""

import math
from typing import Any

import pytest

from fakes_planner import BATCHES, tradeoff_json
from noisescale_dashboard.answers.plans import TradeOff, trade_off
from noisescale_dashboard.figures.parts.data_table import attached_columns
from noisescale_dashboard.figures.parts.theme import LIGHT, translucent
from noisescale_dashboard.figures.planning import plan_quantities, time_against_cost, which_limit_binds
from noisescale_dashboard.figures.planning.time_against_cost import Beside, PlaneView, dots
from noisescale_dashboard.planner import cards as planner_cards

LIMITS = {"max_hours": "18", "max_usd": "700", "max_devices": "64"}


def plan(**query: Any) -> TradeOff:
    return trade_off(tradeoff_json({name: str(value) for name, value in query.items()}))


def view(**changes: Any) -> PlaneView:
    return PlaneView(**{"cost": "usd", "noun": "sequences"} | changes)


def trace(figure: Any, name: str) -> Any:
    return next(one for one in figure.data if one.name == name)


def words(figure: Any) -> list[str]:
    return [one.text for one in figure.layout.annotations]


def fills(figure: Any) -> list[str]:
    return [shape.fillcolor for shape in figure.layout.shapes if shape.type == "rect"]


class TestTimeAgainstCost:
    def test_a_dot_stands_for_each_whole_batch_and_is_filled_where_it_meets_all_limits(self) -> None:
        known = plan(**LIMITS)

        drawn = trace(time_against_cost.time_against_cost(known, view()), "batch sizes")

        assert len(dots(known)) == 11
        assert list(drawn.x) == [row.hours.value for row in dots(known)]
        assert list(drawn.y) == [row.usd.value for row in dots(known)]
        filled = [
            row.batch_size for row, color in zip(dots(known), drawn.marker.color, strict=True) if color == LIGHT.text_1
        ]
        assert filled == [1024, 2048]

    def test_the_curve_goes_through_all_rows_inside_its_band(self) -> None:
        known = plan()
        figure = time_against_cost.time_against_cost(known, view())

        curve, band = trace(figure, "all batches"), trace(figure, "interval")

        assert len(curve.x) == len(BATCHES)
        assert list(band.x[: len(BATCHES)]) == [row.hours.low for row in known.rows]
        assert list(band.y[len(BATCHES) :]) == [row.usd.high for row in reversed(known.rows)]
        assert band.fill == "toself"

    def test_the_batch_in_use_is_a_square_and_the_recommended_one_a_green_dot(self) -> None:
        figure = time_against_cost.time_against_cost(plan(), view())

        assert trace(figure, "now").marker.symbol == "square"
        assert trace(figure, "recommended").marker.color == LIGHT.recommended
        assert {"<b>now 512</b>", "<b>1,536</b>"} <= set(words(figure))

    def test_regions_are_blue_left_of_the_deadline_orange_below_the_budget_and_green_where_both_hold(self) -> None:
        both = time_against_cost.time_against_cost(plan(**LIMITS), view(deadline=18.0, budget=700.0))
        neither = time_against_cost.time_against_cost(plan(), view())

        assert fills(both) == [
            translucent(LIGHT.noise, 0.07), translucent(LIGHT.batch, 0.07), translucent(LIGHT.recommended, 0.13)
        ]  # fmt: skip
        told = {"technically feasible", "deadline 18 h", "budget $700", "economically feasible"}
        assert told <= set(words(both))
        green = both.layout.shapes[2]
        assert (green.x1, green.y1) == (18.0, 700.0)
        assert fills(neither) == []

    def test_a_deadline_alone_tints_the_whole_height_and_a_limit_beyond_the_axis_has_no_line(self) -> None:
        alone = time_against_cost.time_against_cost(plan(max_hours=18), view(deadline=18.0))
        beyond = time_against_cost.time_against_cost(plan(), view(deadline=1e7))

        (region,) = [shape for shape in alone.layout.shapes if shape.type == "rect"]
        assert math.log10(region.y0) == pytest.approx(alone.layout.yaxis.range[0])
        assert [shape for shape in beyond.layout.shapes if shape.type == "line"] == []
        assert not any("deadline" in word for word in words(beyond))

    def test_both_axes_are_logarithmic_with_units_at_their_ticks(self) -> None:
        figure = time_against_cost.time_against_cost(plan(), view())

        assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")
        assert "20 h" in figure.layout.xaxis.ticktext
        assert "$500" in figure.layout.yaxis.ticktext
        assert "wall-clock time to target" in words(figure)

    def test_the_axis_of_costs_can_show_examples_or_device_hours(self) -> None:
        known = plan()

        for name in ("examples", "device_hours"):
            drawn = trace(time_against_cost.time_against_cost(known, view(cost=name)), "batch sizes")
            assert list(drawn.y) == [getattr(row, name).value for row in dots(known)]

    def test_without_a_plan_both_axes_are_relative_to_the_fewest(self) -> None:
        figure = time_against_cost.time_against_cost(plan(task="without plan"), view())

        assert trace(figure, "batch sizes").x[0] == pytest.approx(1 + 1490 / 64)
        assert "steps ÷ fewest possible" in words(figure)
        assert "10 ×" in figure.layout.xaxis.ticktext

    def test_without_a_price_examples_stand_upwards(self) -> None:
        known = plan(task="free")

        assert [one.name for one in plan_quantities.choices(known, "sequences")] == ["examples", "device_hours"]
        assert trace(time_against_cost.time_against_cost(known, view()), "batch sizes").y[0] == pytest.approx(
            known.rows[0].examples.value
        )

    def test_on_spot_the_plan_is_dotted_and_on_demand_a_grey_line(self) -> None:
        spot, demand = plan(spot_price_share=0.3), plan()

        figure = time_against_cost.time_against_cost(spot, view(), Beside(demand, "on demand", is_dotted=False))

        assert trace(figure, "all batches").line.dash == "1px,4px"
        assert trace(figure, "on demand").line.color == LIGHT.text_3
        assert "on demand" in words(figure)

    def test_the_hover_says_devices_intervals_and_what_a_batch_breaks(self) -> None:
        said = trace(time_against_cost.time_against_cost(plan(**LIMITS), view()), "batch sizes").customdata

        assert said[0].startswith("batch <b>64</b> on 1 device<br>5.3 days [")
        assert "misses the deadline" in said[0]
        assert "exceeds the budget; does not fit the devices" in said[-1]

    def test_on_a_phone_fewer_labels_are_written(self) -> None:
        wide, narrow = (
            time_against_cost.time_against_cost(plan(**LIMITS), view(narrow=is_narrow, deadline=18.0, budget=700.0))
            for is_narrow in (False, True)
        )

        assert narrow.layout.height < wide.layout.height
        assert len(words(narrow)) < len(words(wide)) - 4
        assert len(narrow.layout.xaxis.tickvals) <= 4

    def test_its_data_are_the_rows_with_both_ends(self) -> None:
        columns = attached_columns(time_against_cost.time_against_cost(plan(**LIMITS), view()))

        assert columns["batch size (sequences)"][0] == 64
        assert columns["USD, lower end"][0] < columns["USD"][0] < columns["USD, upper end"][0]
        assert columns["limits not met"][0] == "deadline"

    def test_an_interval_that_is_open_makes_no_broken_band(self) -> None:
        data = tradeoff_json()
        data["rows"][3]["hours"] = {**data["rows"][3]["hours"], "high": None}

        band = trace(time_against_cost.time_against_cost(trade_off(data), view()), "interval")

        assert len(band.x) == 2 * (len(BATCHES) - 1)
        assert None not in band.x

    def test_intervals_over_more_than_a_decade_have_no_band(self) -> None:
        data = tradeoff_json()
        data["rows"][3]["hours"] |= {"low": 0.1, "high": 9.0}

        known = trade_off(data)

        assert not trace(time_against_cost.time_against_cost(known, view()), "interval").x
        assert "band" not in planner_cards.pareto_subtitle(known, "usd")
        assert "band: 95 %" in planner_cards.pareto_subtitle(plan(), "usd")

    def test_money_below_a_cent_has_no_axis(self) -> None:
        data = tradeoff_json()
        for row in data["rows"]:
            row["usd"] = {"value": 2e-4, "low": 1e-4, "high": 3e-4, "level": 0.95}
        cheap = plan_quantities.ticks(plan_quantities.upwards(plan(), "usd", "sequences"), 2e-4, 0.2, at_most=8)

        assert plan_quantities.upwards(trade_off(data), "usd", "sequences").name == "examples"
        assert min(cheap[0]) >= 0.01
        assert "⁻" not in "".join(cheap[1])


class TestWhichLimitBinds:
    def draw(self, known: TradeOff) -> Any:
        return which_limit_binds.which_limit_binds(known, noun="sequences")

    def bars(self, figure: Any) -> list[Any]:
        return [shape for shape in figure.layout.shapes if shape.type == "rect"]

    def test_each_limit_has_a_bar_over_the_batches_that_it_allows_below_that_of_b_crit(self) -> None:
        known = plan(**LIMITS)

        columns = attached_columns(self.draw(known))

        assert columns["limit"] == ["Statistics (B_crit)", "Deadline 18 h", "Budget $700", "Number of devices 64"]
        assert columns["smallest batch"][0] == pytest.approx(1490 / 1.3)
        assert columns["smallest batch"][1] == pytest.approx(614, rel=0.01)
        assert columns["largest batch"][1] is None
        assert columns["largest batch"][3] == 4096

    def test_what_does_not_bind_is_grey_and_what_binds_has_its_colour_and_bold_words(self) -> None:
        free, bound = self.draw(plan(**LIMITS)), self.draw(plan(max_hours=18, max_usd=500))

        assert {bar.fillcolor for bar in self.bars(free)} == {
            translucent(LIGHT.recommended, 0.3), translucent(LIGHT.text_3, 0.22)
        }  # fmt: skip
        assert translucent(LIGHT.batch, 0.3) in {bar.fillcolor for bar in self.bars(bound)}
        assert any(word.startswith("<b>≤ ") for word in words(bound))

    def test_the_recommended_batch_is_a_line_across_all_rows(self) -> None:
        (line,) = [
            shape
            for shape in self.draw(plan(**LIMITS)).layout.shapes
            if shape.line.color == LIGHT.recommended and shape.yref == "y domain"
        ]

        assert line.x0 == line.x1 == 1536

    def test_a_limit_that_allows_nothing_has_no_bar_and_says_none(self) -> None:
        data = tradeoff_json(LIMITS)
        data["limits"][0] |= {"low": None, "high": None, "is_possible": False}

        figure = self.draw(trade_off(data))

        assert len(self.bars(figure)) == 3
        assert "none" in words(figure)

    def test_the_tightest_is_the_one_that_binds_else_the_one_with_the_least_room(self) -> None:
        nearest, bound = which_limit_binds.tightest(plan(**LIMITS)), which_limit_binds.tightest(plan(max_usd=500))

        assert nearest is not None
        assert nearest.kind == "usd"
        assert bound is not None
        assert bound.is_binding
        assert which_limit_binds.tightest(plan()) is None

    def test_the_axis_stays_near_the_batch_however_far_a_limit_lies(self) -> None:
        figure = self.draw(plan(max_devices=10**9))

        low, high = figure.layout.xaxis.range
        assert high - low < 20 * math.log10(2)
        assert 10**low < 1490 / 1.3


def test_an_interval_says_its_unit_once() -> None:
    hours = plan_quantities.hours_words

    assert plan_quantities.between(9.1, 12.0, hours) == "9.1 – 12 h"
    assert plan_quantities.between(0.5, 12.0, hours) == "30 min – 12 h"
    assert plan_quantities.between(520.0, 690.0, lambda usd: f"${usd:.0f}") == "$520 – 690"
    assert plan_quantities.between(2.0, 2.0, hours) == "2 h"
