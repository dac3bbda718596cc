"""The page that compares: across tasks, runs and configurations; and what chosen runs lead to."""

import json
from dataclasses import replace
from typing import Any

import pytest

from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from fakes_compare import TASKS, comparison_json, model_sizes_json, statistics_json
from fakes_runs import HOSTILE, RUNS, run_json
from fakes_sweeps import SWEEPS
from noisescale_dashboard.answers.common import Interval, run
from noisescale_dashboard.answers.comparisons import Ratio, Rung, TaskOrder, comparison, model_sizes
from noisescale_dashboard.compare import runs as compare_runs
from noisescale_dashboard.compare import sizes as compare_sizes
from noisescale_dashboard.compare import tasks as compare_tasks
from noisescale_dashboard.compare import words as compare_sentences
from noisescale_dashboard.runs.selection import compare_address

UNKNOWN = "00000000-0000-4000-8000-999999999999"
WHOLE: dict[str, Any] = {
    "tab": "tasks",
    "runs": [],
    "colors": [],
    "x": "step",
    "y": "noise",
    "project": None,
    "task": None,
    "size": "num_parameters",
    "same": False,
}


def view(*run_ids: str, tab: str = "tasks", narrow: bool = False, **changes: Any) -> dict[str, Any]:
    colors = [place if place < 5 else None for place in range(len(run_ids))]
    shown = {**WHOLE, "tab": tab, "runs": list(run_ids), "colors": colors, **changes}
    return {"compare-view.data": shown, "narrow.data": narrow}


def said(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


async def shown(callbacks: Callbacks, *run_ids: str, **changes: Any) -> dict[str, Any]:
    return await callbacks.post("compare-head.children", view(*run_ids, **changes))


def traces(changed: dict[str, Any], store: str, graph: str) -> list[str]:
    return [one.get("name") for one in changed[store]["data"][graph]["data"]]


class TestTasks:
    async def test_the_headline_answers_and_the_statistics_stand_beside_the_published_ones(
        self, callbacks: Callbacks
    ) -> None:
        changed = await shown(callbacks)

        head, table = changed["compare-head"]["children"], said(changed["compare-statistics"]["children"])
        assert head == "The noise scale predicts the critical batch here, to × or ÷ 1.5"
        for words in ("r² about the fit", "×/÷ 1.5", "1.2 – 1.7", "×/÷ 7.2", "Within × ÷ 3", "65 – 100 %"):
            assert words in table
        assert "B_noise" in changed["compare-lede"]["children"]
        assert changed["compare-body"]["className"] == ""

    async def test_what_the_statistics_leave_out_is_named_with_the_reason_and_its_sweep(
        self, callbacks: Callbacks
    ) -> None:
        footer = said((await shown(callbacks))["compare-scatter-card-footer"]["children"])

        assert "3 tasks are not in the statistics" in footer
        assert "iris softmax, AdamW: S_min is below 5 steps" in footer
        assert "B_crit is above 4,100 utterances." not in footer
        assert "B_crit of 4 published sweeps, whose noise scale is not" in footer

    async def test_without_sweeps_the_published_tasks_show_and_a_note_says_how_to_join_them(
        self, callbacks: Callbacks, fake_api: FakeApi
    ) -> None:
        fake_api.tasks = ()

        changed = await shown(callbacks)

        assert changed["compare-head"]["children"].startswith("Sweep 5 tasks to test the noise scale here (0 done)")
        assert "noisescale.sweep(train" in said(changed["compare-note"]["children"])
        assert "published MNIST" in traces(changed, "compare-task-figures", "scatter")

    async def test_fewer_than_five_tasks_are_drawn_and_not_judged(
        self, callbacks: Callbacks, fake_api: FakeApi
    ) -> None:
        fake_api.tasks = TASKS[:2]

        changed = await shown(callbacks)

        assert changed["compare-head"]["children"].endswith("(2 done)")
        assert "own digits MLP" in traces(changed, "compare-task-figures", "scatter")

    async def test_a_page_that_does_not_load_says_so_and_one_that_is_shown_stays(
        self, callbacks: Callbacks, fake_api: FakeApi
    ) -> None:
        fake_api.failing = True

        first = await shown(callbacks)
        later = await callbacks.post(
            "compare-head.children",
            {**view(), "compare-shown.data": {"tab": "tasks", "runs": [], "at": "12:00:00 UTC"}},
        )

        assert "Not loaded" in said(first["compare-missing"]["children"])
        assert first["compare-body"]["className"] == "nothing-shown"
        assert "Live updates paused" in said(later["compare-note"]["children"])
        assert "compare-body" not in later


class TestSizes:
    async def test_the_verdict_at_equal_loss_has_its_interval(self, callbacks: Callbacks) -> None:
        changed = await callbacks.post("compare-size-figures.data", view())

        assert "No: ×1.04 per 10 × size at equal loss, 0.93 – 1.17." in said(changed["compare-sizes-card-footer"])
        assert len(changed["compare-of"]["data"]) == 2
        assert changed["compare-of"]["placeholder"] == "demo · gpt-fineweb"

    async def test_another_task_may_be_chosen(self, callbacks: Callbacks, fake_api: FakeApi) -> None:
        await callbacks.post("compare-size-figures.data", view(project="demo", task=HOSTILE))

        asked = fake_api.requests[-1].query_params
        assert (asked["project"], asked["task"]) == ("demo", HOSTILE)

    async def test_without_sizes_the_card_says_where_they_come_from(self, callbacks: Callbacks) -> None:
        changed = await callbacks.post("compare-size-figures.data", view(size="width"))

        assert "num_parameters" in changed["compare-sizes-words"]["children"]
        assert changed["compare-sizes-box"]["hidden"]

    async def test_runs_and_configurations_do_not_ask_for_sizes(self, callbacks: Callbacks, fake_api: FakeApi) -> None:
        assert await callbacks.post("compare-size-figures.data", view(RUNS[0].id, tab="runs")) == {}
        assert fake_api.requests == []

    def test_a_sentence_says_when_equal_loss_is_extrapolated_or_one_factor_does_not_serve(self) -> None:
        found = model_sizes(model_sizes_json("num_parameters"))
        assert found.effect is not None
        bent = replace(found, effect=replace(found.effect, interaction=Interval(0.5, 0.2, 0.8)))

        assert "extrapolated" in compare_sentences.sizes_verdict(replace(found, has_common_losses=False))
        assert "not the same at every loss" in compare_sentences.sizes_verdict(bent)
        assert compare_sentences.sizes_verdict(replace(found, effect=None, reason="too few")) == "too few"

    def test_a_task_of_the_address_is_asked_for_even_without_sizes(self) -> None:
        assert compare_sizes.chosen_task((), "a", "b") == ("a", "b")
        assert compare_sizes.chosen_task((), "a", None) is None


class TestRuns:
    async def test_the_headline_says_how_far_two_noise_scales_lie_apart(self, callbacks: Callbacks) -> None:
        changed = await shown(callbacks, RUNS[0].id, RUNS[1].id, tab="runs")

        head = changed["compare-head"]["children"]
        assert head.startswith(f"At equal steps the noise scale of {RUNS[1].name} is on average 6.2 × larger than")
        assert f"{RUNS[1].name}" in said(changed["compare-ratio-card-footer"]["children"])
        assert "6.2 × [4.4 – 8.6]" in said(changed["compare-ratio-card-footer"]["children"])
        assert changed["compare-live"]["data"]["running"]

    async def test_runs_are_asked_for_together_along_the_axis_of_the_address(
        self, callbacks: Callbacks, fake_api: FakeApi
    ) -> None:
        changed = await shown(callbacks, RUNS[0].id, RUNS[1].id, tab="runs", x="loss", y="batch")

        (asked,) = [one.query_params for one in fake_api.requests if one.url.path.endswith("/comparison/runs")]
        assert (asked.getlist("run"), asked["x"]) == ([RUNS[0].id, RUNS[1].id], "loss")
        assert changed["compare-runs-card-title"]["children"] == "Batch in use over loss"
        assert "a dot each window" in changed["compare-runs-card-subtitle"]["children"]

    async def test_an_unknown_run_is_named_and_the_others_are_shown(self, callbacks: Callbacks) -> None:
        changed = await shown(callbacks, RUNS[0].id, UNKNOWN, "'; drop table run", RUNS[4].id, tab="runs")

        note = said(changed["compare-note"]["children"])
        assert UNKNOWN in note
        assert "drop table" in note
        assert RUNS[4].name in traces(changed, "compare-run-figures", "runs")

    async def test_with_nothing_but_unknown_runs_the_page_says_how_to_choose(self, callbacks: Callbacks) -> None:
        changed = await shown(callbacks, UNKNOWN, tab="runs")

        assert "None of these runs exists" in said(changed["compare-missing"]["children"])
        assert changed["compare-body"]["className"] == "nothing-shown"

    @pytest.mark.parametrize("tab", ["runs", "config"])
    async def test_without_runs_the_page_says_how_to_choose_them(self, callbacks: Callbacks, tab: str) -> None:
        changed = await shown(callbacks, tab=tab)

        assert "No runs chosen yet" in said(changed["compare-missing"]["children"])

    async def test_a_single_run_is_drawn_without_a_ratio(self, callbacks: Callbacks) -> None:
        changed = await shown(callbacks, RUNS[0].id, tab="runs")

        assert changed["compare-head"]["children"] == "Choose a second run to compare with"
        assert changed["compare-runs-only"]["className"].endswith("one-run")

    def test_more_runs_than_are_drawn_are_counted(self) -> None:
        note = compare_runs.unknown_note(compare_runs.Chosen((), (), ()), 25)

        assert note is not None
        assert "Of the 25 runs in the address the first 20 are shown." in str(note)

    async def test_runs_of_one_name_are_told_apart(self, callbacks: Callbacks, fake_api: FakeApi) -> None:
        fake_api.runs = (RUNS[9], replace(RUNS[9], number=77))

        changed = await shown(callbacks, *(run.id for run in fake_api.runs), tab="runs")

        drawn = traces(changed, "compare-run-figures", "runs")
        assert f"{RUNS[9].name} · 000010" in drawn
        assert f"{RUNS[9].name} · 000077" in drawn

    async def test_runs_of_other_units_are_compared_in_examples_and_that_is_said(self, callbacks: Callbacks) -> None:
        changed = await shown(callbacks, RUNS[0].id, RUNS[3].id, tab="runs")

        assert "They count different things (observations, sequences)" in changed["compare-lede"]["children"]
        assert changed["compare-runs-card-subtitle"]["children"].startswith("Examples, log")

    async def test_no_ratio_is_drawn_or_said_of_runs_that_count_other_things(self, callbacks: Callbacks) -> None:
        mixed = await shown(callbacks, RUNS[0].id, RUNS[1].id, RUNS[3].id, tab="runs")
        other = await shown(callbacks, RUNS[0].id, RUNS[3].id, tab="runs")

        footer = said(mixed["compare-ratio-card-footer"]["children"])
        assert "6.2 × [4.4 – 8.6]" in footer
        assert ": counts observations, not sequences" in footer
        assert RUNS[1].name in traces(mixed, "compare-run-figures", "ratio")
        assert RUNS[3].name not in traces(mixed, "compare-run-figures", "ratio")
        assert traces(other, "compare-run-figures", "ratio") == []
        assert other["compare-ratio-sentence"]["children"] == "No other run counts sequences."

    async def test_names_that_are_markup_stay_text(self, callbacks: Callbacks) -> None:
        changed = await shown(callbacks, RUNS[8].id, RUNS[9].id, tab="runs")

        figures = said(changed["compare-run-figures"]["data"])
        assert "&lt;img" in figures
        assert json.dumps(HOSTILE) in said(changed["compare-table"]["children"])

    async def test_on_a_phone_rows_have_two_lines_and_names_stand_below(self, callbacks: Callbacks) -> None:
        changed = await shown(callbacks, RUNS[0].id, RUNS[4].id, tab="runs", narrow=True)

        assert "Noise scale, batch" in said(changed["compare-table"]["children"])
        assert RUNS[0].name in said(changed["compare-runs-card-footer"]["children"])

    @pytest.mark.parametrize("colors", [[9, -1], ["x", None], [], None, [True, 2.5]])
    def test_slots_that_are_none_are_grey(self, colors: Any) -> None:
        slots = compare_runs.slots_of({"colors": colors}, 2)

        assert len(slots) == 2
        assert all(slot is None or 0 <= slot < 5 for slot in slots)

    async def test_what_can_be_chosen_holds_the_chosen_ones(self, callbacks: Callbacks) -> None:
        """An unknown one too: the control would drop it, and the address forget what the note names."""
        changed = await callbacks.post("compare-pick.data", view(RUNS[3].id, "nonsense", tab="runs"))

        first, unknown, *groups = changed["compare-pick"]["data"]
        assert (first["value"], unknown["label"]) == (RUNS[3].id, "nonsense · no such run")
        assert [group["group"] for group in groups] == ["Runs"]
        assert len(groups[0]["items"]) == len(RUNS) - 1

    async def test_trials_of_sweeps_are_not_offered_as_if_they_were_runs(
        self, callbacks: Callbacks, fake_api: FakeApi
    ) -> None:
        fake_api.folds = {run.id: {"kind": "sweep", "id": SWEEPS[0].id} for run in RUNS[:4]}

        newest = await callbacks.post("compare-pick.data", view(RUNS[5].id, tab="runs"))
        named = await callbacks.post(
            "compare-pick.data", view(RUNS[5].id, tab="runs") | {"compare-searched.data": RUNS[0].name[:6]}
        )

        [runs] = newest["compare-pick"]["data"][1:]
        assert {one["value"] for one in runs["items"]}.isdisjoint(fake_api.folds)
        trials = next(one for one in named["compare-pick"]["data"] if one.get("group") == "Trials of sweeps")
        assert RUNS[0].id in [one["value"] for one in trials["items"]]
        assert all(one["value"] in fake_api.folds for one in trials["items"])

    def test_a_run_without_a_clear_estimate_cannot_be_the_baseline(self) -> None:
        rows = [run(run_json(one)) for one in (RUNS[0], RUNS[5], RUNS[1])]
        chosen = compare_runs.Chosen(tuple(rows), ("a", "b", "c"), (0, 1, 2))

        assert compare_runs.baselines(chosen) == [
            {"value": RUNS[1].id, "label": "c"},
            {"value": RUNS[5].id, "label": "b · no clear estimate", "disabled": True},
        ]

    async def test_a_run_that_is_not_among_the_newest_is_found_by_its_name(
        self, callbacks: Callbacks, fake_api: FakeApi
    ) -> None:
        values = view(RUNS[3].id, tab="runs") | {"compare-searched.data": RUNS[0].name[:6]}

        changed = await callbacks.post("compare-pick.data", values)

        asked = next(one.query_params for one in fake_api.requests if one.query_params.get("q"))
        assert asked["q"] == RUNS[0].name[:6]
        first, runs = changed["compare-pick"]["data"]
        assert first["value"] == RUNS[3].id
        assert RUNS[0].id in [one["value"] for one in runs["items"]]


class TestConfig:
    async def test_what_differs_is_drawn_and_listed_and_what_is_equal_on_demand(self, callbacks: Callbacks) -> None:
        ids = (RUNS[0].id, RUNS[4].id)

        changed = await shown(callbacks, *ids, tab="config")
        whole = await shown(callbacks, *ids, tab="config", same=True)

        assert changed["compare-head"]["children"] == "Three of 8 settings differ between 2 runs"
        assert "AdamW" in said(changed["compare-config-table"]["children"])
        assert "hidden" not in said(changed["compare-config-table"]["children"])
        assert "hidden" in said(whole["compare-config-table"]["children"])
        assert whole["compare-differences-card-subtitle"]["children"] == "8 of 8 settings"

    async def test_runs_that_say_the_same_have_no_figure(self, callbacks: Callbacks, fake_api: FakeApi) -> None:
        fake_api.runs = (RUNS[9], replace(RUNS[9], number=77))

        changed = await shown(callbacks, RUNS[9].id, fake_api.runs[1].id, tab="config")

        assert changed["compare-head"]["children"] == "The 2 runs agree in all 8 settings"
        assert "nothing-differs" in changed["compare-config-box"]["className"]

    async def test_keys_and_values_that_are_markup_stay_text(self, callbacks: Callbacks) -> None:
        changed = await shown(callbacks, RUNS[8].id, RUNS[9].id, tab="config")

        assert json.dumps(HOSTILE[:60])[:-1] in said(changed["compare-config-table"]["children"])
        assert "<img" not in said(changed["compare-config-figures"]["data"]["config"]["layout"]["annotations"])


class TestSentences:
    OWN = comparison(comparison_json()).statistics

    @pytest.mark.parametrize(
        ("rms", "r_squared", "verdict"),
        [
            (Interval(1.5, 1.2, 2.0), Interval(0.95, 0.8, 0.99), "predicts"),
            (Interval(2.5, 1.2, 3.5), Interval(0.95, 0.8, 0.99), "roughly"),
            (Interval(2.5, 1.2, 3.5), Interval(0.6, 0.1, 0.9), "cannot_tell"),
            (Interval(9.0, 4.0, 20.0), Interval(0.1, 0.0, 0.4), "does_not"),
        ],
    )
    def test_the_verdict_rests_on_the_intervals(self, rms: Interval, r_squared: Interval, verdict: str) -> None:
        assert self.OWN is not None
        own = replace(self.OWN, rms_factor=rms, r_squared=r_squared)

        assert compare_sentences.verdict(own) == verdict
        assert "× or ÷" in compare_sentences.tasks_headline(replace(comparison(comparison_json()), statistics=own))

    def test_a_ratio_whose_interval_holds_one_is_no_difference(self) -> None:
        same = Ratio("b", mean=Interval(1.2, 0.9, 1.6))

        assert compare_sentences.runs_headline(["a", "b"], [same], "equal steps").startswith("No difference")

    def test_runs_that_count_different_things_are_not_compared(self) -> None:
        same = Ratio("b", mean=Interval(1.2, 0.9, 1.6))

        head = compare_sentences.runs_headline(["a", "b"], [same], "equal steps", are_alike=False)

        assert head == "These runs count in different units, so their noise scales cannot be compared"

    def test_the_furthest_of_several_runs_is_named(self) -> None:
        ratios = [Ratio("b", mean=Interval(0.2, 0.1, 0.4)), Ratio("c", mean=Interval(2.0, 1.5, 3.0))]

        head = compare_sentences.runs_headline(["a", "b", "c"], ratios, "equal loss")

        assert head == "At equal loss noise scales differ on average by up to 5.0 ×: b from a"

    def test_without_a_resolved_window_in_common_nothing_is_said_of_the_ratio(self) -> None:
        head = compare_sentences.runs_headline(["a", "b"], [Ratio("b")], "equal steps")

        assert head == "No clear noise scale at equal steps yet: pick a baseline with one"
        assert compare_sentences.ratio_words(Interval()) == "not resolved"

    def test_a_chain_that_falls_or_overlaps_is_no_yes(self) -> None:
        order = TaskOrder("images", "noise_scale", (Rung("a", 1, 2), Rung("b", 2, 3)), None, 1.0, 3.0)

        assert compare_sentences.order_words(order) == "Images: cannot tell, intervals overlap"
        assert compare_sentences.order_words(replace(order, holds=False)) == "Images: no"
        yes = replace(order, holds=True, quantity="run_average")
        assert compare_sentences.order_words(yes) == "Images, yours: yes, at least 1.0 ×"

    def test_of_many_own_tasks_eight_are_drawn_from_the_first_to_the_last(self) -> None:
        rungs = tuple(Rung(f"task {number}", number + 1.0, number + 1.5) for number in range(50))
        found = replace(comparison(comparison_json()), orders=(TaskOrder("images", "run_average", rungs, True),))

        drawn = compare_tasks.shown_orders(found)[0].rungs

        assert len(drawn) == 8
        assert (drawn[0], drawn[-1]) == (rungs[0], rungs[-1])

    def test_statistics_of_the_published_tasks_are_those_of_points(self) -> None:
        assert (
            comparison(comparison_json()).published_statistics.num_tasks
            == statistics_json(8, is_published=True)["num_tasks"]
        )


def test_chosen_runs_lead_to_their_comparison_as_many_as_it_draws() -> None:
    rows = [{"id": run.id} for run in RUNS] * 3

    assert compare_address(rows[:2]) == f"/compare?runs={RUNS[0].id},{RUNS[1].id}"
    assert compare_address(rows).count(",") == 19
