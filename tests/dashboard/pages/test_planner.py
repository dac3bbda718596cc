"""The planner's page: what the API is asked for a view, and what its answers become."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from fakes_planner import tradeoff_json
from fakes_runs import HOSTILE, RUNS, run_json
from noisescale_dashboard.answers.common import run
from noisescale_dashboard.answers.plans import TradeOff, trade_off
from noisescale_dashboard.api.question_fields import for_scripts
from noisescale_dashboard.figures.planning import time_against_cost
from noisescale_dashboard.planner import cards as planner_cards
from noisescale_dashboard.planner import panel as planner_panel
from noisescale_dashboard.planner import query as planner_query
from noisescale_dashboard.planner import scope as planner_scope
from noisescale_dashboard.planner import words as sentences
from noisescale_dashboard.planner.query import FIELDS

RUN = RUNS[0]
EMPTY = dict.fromkeys((*FIELDS, *planner_query.FLAGS, "project", "task", "run", "target")) | {"pref": 0.5, "y": "usd"}
LIMITS = {"max_hours": "18", "max_usd": "700", "max_devices": "64"}


def wanted(**said: Any) -> dict[str, Any]:
    """What the browser sends for a scope, and then with it for a plan."""
    view = EMPTY | {"run": RUN.id} | said
    named = ["typed"] if view["bcrit"] is not None else [view["project"], view["task"], view["run"]]
    return {"named": named, "view": view, "at": 1.0}


def plan(**query: Any) -> TradeOff:
    return trade_off(tradeoff_json({name: str(value) for name, value in query.items()}))


def words(shown: Any) -> str:
    said = json.dumps(shown, ensure_ascii=False, default=lambda part: part.to_plotly_json())
    return said.replace("\u00a0", " ").replace("\u2060", "")


async def scope_of(callbacks: Callbacks, **said: Any) -> dict[str, Any]:
    return await callbacks.post("planner-scope.data", {"planner-wanted.data": wanted(**said)})


async def of_scope(callbacks: Callbacks, scope: Any, *, narrow: bool = False, **said: Any) -> dict[str, Any]:
    """The plan of a scope that the browser has."""
    values = {"planner-asked.data": {"view": wanted(**said)["view"], "scope": scope}, "narrow.data": narrow}
    return await callbacks.post("planner-figures.data", values)


async def shown(callbacks: Callbacks, *, narrow: bool = False, **said: Any) -> dict[str, Any]:
    """What the page has after both answers."""
    first = await scope_of(callbacks, **said)
    return {**first, **await of_scope(callbacks, first["planner-scope"]["data"], narrow=narrow, **said)}


def asked(fake_api: FakeApi) -> dict[str, str]:
    return dict(next(r for r in reversed(fake_api.requests) if r.url.path.endswith("/tradeoff")).query_params)


class TestWhatIsAsked:
    async def test_a_plan_of_a_scope_that_the_browser_has_asks_for_the_plan_alone(
        self, callbacks: Callbacks, fake_api: FakeApi
    ) -> None:
        scope = (await scope_of(callbacks))["planner-scope"]["data"]
        fake_api.requests.clear()

        changed = await of_scope(callbacks, scope, deadline_h=18)

        assert fake_api.paths() == ["/api/v1/tradeoff"]
        assert asked(fake_api)["run_id"] == RUN.id
        assert changed["planner-crumb"]["children"] == RUN.name

    async def test_limits_are_asked_by_the_apis_words(self, callbacks: Callbacks, fake_api: FakeApi) -> None:
        await shown(callbacks, deadline_h=18, budget_usd=700, devices=64, mem=128, accum=2, price=3, pref=0.8)

        assert asked(fake_api) == {
            "run_id": RUN.id, "rows_per_doubling": "2", "preference": "0.8", "max_hours": "18", "max_usd": "700",
            "max_devices": "64", "examples_per_device": "128", "max_micro_batches": "2", "usd_per_device_hour": "3",
        }  # fmt: skip

    async def test_devices_that_stay_are_asked_as_such_and_a_price_takes_the_place_of_the_preference(
        self, callbacks: Callbacks, fake_api: FakeApi
    ) -> None:
        await shown(callbacks, devices=8, stay=1, worth=500, pref=0.9)

        assert asked(fake_api) == {
            "run_id": RUN.id, "rows_per_doubling": "2", "num_devices": "8", "examples_per_step": "500"
        }  # fmt: skip

    async def test_spot_is_asked_with_what_is_assumed_and_beside_it_on_demand(
        self, callbacks: Callbacks, fake_api: FakeApi
    ) -> None:
        changed = await shown(callbacks, spot=1, stops=0.1)

        questions = [dict(r.query_params) for r in fake_api.requests if r.url.path.endswith("/tradeoff")]
        (spot,) = [one for one in questions if "spot_price_share" in one]
        assert len(questions) == 2
        assert (spot["spot_price_share"], spot["interruptions_per_device_hour"]) == ("0.3", "0.1")
        assert "assumed until you say otherwise" in changed["planner-spot-words"]["children"]
        assert "for the devices of the batch in use" in changed["planner-spot-words"]["children"]
        assert changed["planner-figures"]["data"]["pareto"]["data"][0]["name"] == "on demand"

    async def test_typed_numbers_ask_about_no_run_and_no_task(self, callbacks: Callbacks, fake_api: FakeApi) -> None:
        changed = await shown(callbacks, run=None, bcrit=1000, bcrit_low=800, steps=2000, at=500, at_devices=4)

        question = asked(fake_api)
        assert (question["critical_batch"], question["critical_batch_low"]) == ("1000", "800")
        assert (question["num_devices"], question["at_batch"]) == ("4", "500")
        assert not {"run_id", "project", "task"} & set(question)
        assert changed["planner-crumb"]["children"] == "typed numbers"

    async def test_without_anything_the_task_of_the_newest_run_is_planned(
        self, callbacks: Callbacks, fake_api: FakeApi
    ) -> None:
        changed = await shown(callbacks, run=None)

        assert asked(fake_api) == {"project": RUN.project, "task": RUN.task, "rows_per_doubling": "2"}
        scope = changed["planner-scope"]["data"]
        assert (scope["kind"], scope["chosen"]) == ("task", {"task": "demo/char-lm", "run": ""})
        assert changed["planner-task"]["data"] == [
            {"group": "demo", "items": [{"value": "demo/digits", "label": "digits"}]}
        ]

    async def test_another_target_is_asked_of_the_tasks_sweep_and_never_of_a_run(
        self, callbacks: Callbacks, fake_api: FakeApi
    ) -> None:
        changed = await shown(callbacks, run=None, project="demo", task="char-lm", target=3.0)
        asked_of_task = asked(fake_api)
        of_run = await shown(callbacks, target=3.0)

        assert asked_of_task["sweep_target"] == "3.0"
        assert "sweep_target" not in asked(fake_api)
        choices = [one["value"] for one in changed["planner-target"]["data"]]
        assert choices == ["", "2.75", "3.0"]
        assert (changed["planner-target-box"]["hidden"], of_run["planner-target-box"]["hidden"]) == (False, True)

    async def test_a_hostile_name_of_a_task_is_asked_as_it_is_and_shown_as_text(
        self, callbacks: Callbacks, fake_api: FakeApi
    ) -> None:
        changed = await shown(callbacks, run=None, project="../../x", task=HOSTILE)

        assert (asked(fake_api)["project"], asked(fake_api)["task"]) == ("../../x", HOSTILE)
        assert changed["planner-crumb"]["children"] == HOSTILE
        assert changed["planner-scope"]["data"]["chosen"]["task"] == planner_scope.task_value("../../x", HOSTILE)


class TestWhatIsShown:
    async def test_the_sentence_says_batch_devices_time_and_cost_and_their_intervals(
        self, callbacks: Callbacks
    ) -> None:
        changed = await shown(callbacks, deadline_h=18, budget_usd=700)

        assert changed["planner-head"]["children"] == "Batch 1,536 on 24 devices: 10.3 h for $596"
        lede = words(changed["planner-lede"])
        assert "95 %: 9 – 11.9 h, $518 – 685." in lede
        assert "Any batch from 614 to 2,063 meets both limits." in lede
        assert "The batch in use, 512, misses the deadline by 2.54 h." in lede

    async def test_limits_that_exclude_each_other_say_what_is_possible(self, callbacks: Callbacks) -> None:
        changed = await shown(callbacks, deadline_h=18, budget_usd=350)

        assert changed["planner-head"]["children"] == "No batch meets both limits: deadline and budget"
        lede = words(changed["planner-lede"])
        assert "18 h need 614 or more." in lede
        assert "The cheapest within the deadline: batch 614 on 9.6 devices, 18 h for $414 (" in lede
        assert "The fastest within the budget: batch 286 on 4.5 devices, 32.6 h for $350 (" in lede
        assert changed["planner-cards"]["hidden"] is False

    async def test_the_tightest_limit_is_named(self, callbacks: Callbacks) -> None:
        free = await shown(callbacks, deadline_h=18, budget_usd=700)
        bound = await shown(callbacks, devices=16)

        assert words(free["planner-binds-card-footer"]["children"]).startswith(
            '"No limit binds; the nearest is budget $700: ≤ 2,06'
        )
        assert "Number of devices 16 binds" in words(bound["planner-binds-card-footer"]["children"])

    async def test_sliders_go_over_what_the_batches_take_and_fields_show_what_counts_without_them(
        self, callbacks: Callbacks
    ) -> None:
        changed = await shown(callbacks)

        ranges = changed["planner-ranges"]["data"]
        assert ranges["devices"] == [1.0, 1024.0]
        assert ranges["deadline_h"][0] < 10.3 < ranges["deadline_h"][1]
        assert changed["planner-f-price"]["placeholder"] == "2.4"
        assert changed["planner-f-step_s"]["placeholder"] == "0.62"

    @pytest.mark.parametrize(
        ("y", "values"), [("usd", ["usd", "device_hours"]), ("examples", ["examples", "device_hours"])]
    )
    async def test_an_axis_of_costs_that_is_not_known_is_no_choice_and_what_is_shown_is_chosen(
        self, callbacks: Callbacks, y: str, values: list[str]
    ) -> None:
        changed = await shown(callbacks, run=None, project="demo", task="free", y=y)

        assert [one["value"] for one in changed["planner-y"]["data"]] == values
        assert changed["planner-y"]["data"][0]["label"] == "Sequences"
        assert "A price of a device-hour is not known: type it under Limits." in words(changed["planner-note"])

    async def test_without_a_plan_everything_is_relative_and_the_page_says_why(self, callbacks: Callbacks) -> None:
        changed = await shown(callbacks, run=None, project="demo", task="without plan")

        assert changed["planner-head"]["children"] == (
            "Batch 1,536 on 24 devices: 2 × the fewest steps, 2 × the fewest sequences"
        )
        assert "relative to the fewest" in words(changed["planner-note"])
        assert "Needs a plan: choose a task's next run" in words(changed["planner-policies"])
        assert "at_batch" not in words(changed["planner-policies"])
        assert not changed["planner-policies-card-footer"]["children"]


class TestTables:
    @pytest.mark.parametrize(("devices", "shown"), [(3640.9, "3,641"), (24.0, "24"), (1.5, "1.5")])
    def test_the_table_counts_devices_as_the_sentence_does(self, devices: float, shown: str) -> None:
        (row,) = planner_cards.table_rows(replace(plan(), rows=(replace(plan().rows[0], num_devices=devices),)))[:1]
        drawn = words(planner_cards.table(replace(plan(), rows=(row,)), narrow=False))

        assert f'"{shown}"' in drawn
        assert time_against_cost.devices_words(devices).startswith(shown)

    def test_without_a_plan_the_card_of_what_ifs_says_what_it_needs(self) -> None:
        bare = trade_off(tradeoff_json() | {"what_ifs": []})

        assert "Needs a plan: choose a task's next run" in words(planner_cards.what_ifs(bare))
        assert "Needs a plan" not in words(planner_cards.what_ifs(plan()))

    def test_a_row_has_devices_time_cost_and_examples_each_above_its_interval(self) -> None:
        said = words(planner_cards.table(plan(**LIMITS), narrow=False))

        for part in ("Devices", "10.3 h", "9 – 11.9 h", "$596", "$518 – 685", "92.3M", "80.3M – 106M"):
            assert part in said

    def test_rows_are_the_batches_near_the_marked_ones_and_those_that_break_a_limit_are_grey(self) -> None:
        known = plan(**LIMITS)

        batches = [row.batch_size for row in planner_cards.table_rows(known)]

        assert batches == [64, 128, 256, 512, 1024, 1536, 2048, 4096, 8192]
        said = words(planner_cards.table(known, narrow=False))
        assert said.count('"className": "off"') == 6
        assert "misses the deadline" in said

    def test_a_number_that_the_plan_itself_says_has_no_made_up_interval(self) -> None:
        data = tradeoff_json()
        data["present"]["hours"] = {"value": 20.5, "low": 20.5, "high": 20.5, "level": 0.95}

        assert "as planned" in words(planner_cards.table(trade_off(data), narrow=False))

    def test_a_schedule_has_its_predictions_its_bill_and_its_measured_regret_or_none(self) -> None:
        said = words(planner_cards.policies(plan(), narrow=False))

        for part in (
            "Constant batch", "234 %", "1 in 10 misses the target", "not measured", "+8.0 %",
            "11 % where batch and rate start right, 1 in 10 above 41 %",
        ):  # fmt: skip
            assert part in said
        assert "93 → 1.49k" in said

    def test_the_products_own_policy_is_measured_and_predicts_nothing(self) -> None:
        own = [row for row in plan().policies if row.name == "noisescale"]

        said = words(planner_cards.policies(trade_off(tradeoff_json() | {"policies": []}), narrow=False))

        assert own[0].steps.value is None
        drawn = words(planner_cards.policies(plan(), narrow=False))
        assert drawn.index("noisescale's own policy") < drawn.index("Constant batch")
        assert "decides by what the run shows" in drawn
        assert "80 %" in words(planner_cards.policies(plan(), narrow=True))
        assert (
            said == '{"props": {"children": "", "className": "t2"}, "type": "P", "namespace": "dash_html_components"}'
        )

    def test_on_a_phone_each_batch_is_a_row_of_two_parts(self) -> None:
        said = words(planner_cards.table(plan(), narrow=True))

        assert "Th" in said
        assert "24 devices" in said
        assert "10.3 h" in said
        assert "[9 – 11.9 h]" in said
        assert "thead" not in said.lower()


def on_one_device() -> TradeOff:
    """One device that has timed the batch of 512."""
    data = tradeoff_json()
    data["step"] |= {"num_devices": 1, "are_devices_added": False}
    data["assumes"] = "Time at another batch is not known: this device has timed one batch."
    for row in (*data["rows"], data["recommended"], data["present"], *(one["row"] or {} for one in data["what_ifs"])):
        is_timed = row.get("batch_size") == 512
        row |= {"num_devices": 1, "device_hours": None} | ({} if is_timed else {"hours": None, "usd": None})
    return trade_off(data)


class TestOneDevice:
    def test_it_is_said_nowhere_and_what_is_compared_are_steps(self) -> None:
        known = on_one_device()

        assert sentences.headline(known) == "Batch 1,536: 60.1k steps, 92.3M sequences"
        assert "takes 119k steps, 61.1M sequences" in sentences.lede(known, "in use")
        assert "device" not in words(planner_cards.table(known, narrow=False)).lower().replace("this device", "")
        assert [title for title, _ in (sentences.what_if(one, known) for one in known.what_ifs)][2:] == [
            "Fewest sequences", "Fewest steps"
        ]  # fmt: skip

    def test_a_column_of_dashes_is_left_out(self) -> None:
        said = words(planner_cards.table(on_one_device(), narrow=False))

        assert '"Steps"' in said
        assert '"Time"' not in said
        assert '"Cost"' not in said

    def test_its_figure_shows_steps_against_examples(self) -> None:
        known = on_one_device()

        assert planner_cards.pareto_title(known, "usd") == "Steps against sequences"
        assert [one["value"] for one in planner_cards.cost_choices(known, "usd")] == ["usd"]

    async def test_why_the_time_is_not_known_is_said_once(self, callbacks: Callbacks) -> None:
        known = on_one_device()

        assert planner_cards.table_footer(known) == []
        assert planner_cards.table_footer(plan()) != []
        assert planner_panel.placeholders(known, is_on_spot=False)["devices"] == "1"


class TestSentences:
    def test_a_plan_beside_the_recommended_one_says_what_it_gains_and_costs(self) -> None:
        told = dict(sentences.what_if(one, plan(**LIMITS)) for one in plan(**LIMITS).what_ifs)

        twice = told["Twice the devices"]
        assert twice.startswith("batch 3,072 on 48 devices: 7.8 h for $899 (")
        assert "2.55 h sooner for $303 more; exceeds the budget" in twice.replace("2.54", "2.55")
        assert told["Half the budget"] == "No batch of a whole device costs 200 USD or less."

    def test_what_is_the_recommended_batch_itself_is_not_compared_with_it(self) -> None:
        data = tradeoff_json(LIMITS)
        fastest = {"name": "fastest", "row": data["recommended"], "text": "The fastest within the budget."}

        told = sentences.what_if(trade_off(data | {"what_ifs": [fastest]}).what_ifs[0], plan(**LIMITS))

        assert told == ("Fastest", "The recommended batch. The fastest within the budget.")

    def test_a_critical_batch_without_an_interval_is_said_to_be_taken_as_exact(self) -> None:
        data = tradeoff_json()
        data["critical_batch"] |= {"low": 1490.0, "high": 1490.0}

        assert "taken as exact" in sentences.basis(trade_off(data))

    def test_the_best_batch_says_where_an_end_of_b_crit_leaves_none(self) -> None:
        data = tradeoff_json(LIMITS)
        data["limited_interval"]["high"] = None

        said = sentences.lede(trade_off(data), "in use")

        assert "at an end of B_crit's interval none meets the deadline" in said


class TestRefusals:
    async def test_a_bad_number_is_said_beside_its_field_in_the_apis_words_and_what_is_shown_stays(
        self, callbacks: Callbacks
    ) -> None:
        changed = await shown(callbacks, deadline_h=-1)

        assert changed["planner-f-deadline_h"]["error"] == "Input should be greater than 1e-09"
        assert changed["planner-f-budget_usd"]["error"] is None
        assert "planner-figures" not in changed
        assert changed["planner-head"]["children"] == "Not planned: see the limits"
        assert "Deadline: Input should be" in words(changed["planner-lede"])

    async def test_a_task_of_which_too_little_is_known_says_what_is_missing(self, callbacks: Callbacks) -> None:
        changed = await shown(callbacks, run=None, project="demo", task="young")

        assert changed["planner-cards"]["hidden"] is True
        assert "nothing is known of its critical batch" in words(changed["planner-missing"])
        assert "type a critical batch" in words(changed["planner-missing"])

    async def test_a_run_that_does_not_exist_has_its_page(self, callbacks: Callbacks) -> None:
        for run_id in ("00000000-0000-4000-8000-999999999999", "../projects", HOSTILE):
            changed = await shown(callbacks, run=run_id)

            assert "No such run" in words(changed["planner-missing"])
            assert changed["planner-crumb"]["children"] == "not found"

    async def test_a_run_that_is_deleted_while_its_plan_is_open_has_its_page(
        self, callbacks: Callbacks, fake_api: FakeApi
    ) -> None:
        scope = (await scope_of(callbacks))["planner-scope"]["data"]
        fake_api.runs = [one for one in fake_api.runs if one.id != RUN.id]

        changed = await of_scope(callbacks, scope, price=3)

        assert "No such run" in words(changed["planner-missing"])

    async def test_an_api_that_fails_shows_the_error_or_leaves_what_is_shown(
        self, callbacks: Callbacks, fake_api: FakeApi
    ) -> None:
        scope = (await scope_of(callbacks))["planner-scope"]["data"]
        fake_api.failing = True

        first = await shown(callbacks)
        lost = (await scope_of(callbacks))["planner-scope"]["data"]
        moved = [
            await callbacks.post(
                "planner-figures.data",
                {"planner-asked.data": {"view": wanted(price=3)["view"], "scope": one}, "planner-cards.hidden": False},
            )
            for one in (scope, lost)
        ]

        assert "Not loaded" in words(first["planner-missing"])
        for changed in moved:
            assert not {"planner-figures", "planner-cards", "planner-table", "planner-head"} & set(changed)
            assert "paused" in words(changed["planner-note"])

    async def test_without_any_run_there_are_the_lines_to_paste(self, callbacks: Callbacks, fake_api: FakeApi) -> None:
        fake_api.runs = ()

        changed = await shown(callbacks, run=None)

        assert changed["planner-head"]["children"] == "Nothing to plan yet"
        assert "noisescale.init" in words(changed["planner-missing"])


def test_every_number_of_a_view_has_a_field_and_every_field_its_word_of_the_api() -> None:
    layout = words(planner_panel.layout())

    assert all(f'"planner-f-{name}"' in layout for name in FIELDS)
    assert len({field.asks for field in FIELDS.values()}) == len(FIELDS)


def test_the_browser_reads_from_the_address_exactly_the_fields_that_the_page_has() -> None:
    script = (Path(planner_query.__file__).parents[1] / "assets" / "modules" / "address" / "address.js").read_text()

    known, flags = (
        re.findall(r'"(\w+)"', re.search(rf"{name} = \[(.*?)\]", script, re.DOTALL).group(1))  # type: ignore[union-attr]
        for name in ("const KNOWN", "const FLAGS")
    )
    folds = json.loads(for_scripts())["planner"]

    assert [*folds.pop("main"), "devices", *(name for fold in folds.values() for name in fold), *known] == list(FIELDS)
    assert sorted(flags) == sorted(planner_query.FLAGS)


@pytest.mark.parametrize(("planned", "last", "left"), [(None, 5, 0), (10, None, 10), (10, 3, 6), (10, 9, 0)])
def test_steps_left_are_those_of_the_plan_beyond_the_last_one(planned: int | None, last: int | None, left: int) -> None:
    one = replace(run(run_json(RUN)), planned_steps=planned, last_step=last)

    assert planner_scope.steps_left(one) == left
