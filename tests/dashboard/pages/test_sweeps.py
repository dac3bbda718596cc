"""The list of sweeps, published sweeps, and the page of a sweep or a branch."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from plotly.utils import PlotlyJSONEncoder

import fakes_api
from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from fakes_runs import HOSTILE, RUNS
from fakes_sweeps import SWEEPS, published_json
from noisescale_dashboard.answers.common import UNKNOWN, Interval
from noisescale_dashboard.answers.sweeps import LackOfFit, Proposal, StepsPoint, SweepPlan, TargetFit
from noisescale_dashboard.answers.sweeps import published_sweeps as published_sweeps_of
from noisescale_dashboard.sweeps.branch import ARM_COLUMNS
from noisescale_dashboard.sweeps.cards import FIT_COLUMNS, plan_table
from noisescale_dashboard.sweeps.published import footer
from noisescale_dashboard.sweeps.words import bounds_words, headline, lack_of_fit_words

OWN = {"sweeps-view.data": {"tab": "own", "workload": None}, "narrow.data": False}
SHOWN = {"kind": "sweep", "target": 2.85, "first": 2.85, "unit": "sequences", "num_targets": 4}
WHOLE = {"target": None, "regimes": "fit"}


def sweep_view(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {"sweep-view.data": {**WHOLE, **changes}, "sweep-id.data": SWEEPS[number - 1].id, "narrow.data": False}


def published_view(workload: str | None = None) -> dict[str, Any]:
    return {"sweeps-view.data": {"tab": "published", "workload": workload}, "narrow.data": False}


def said(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


async def test_the_list_says_what_there_is_before_any_fit_is_asked_for(callbacks: Callbacks, fake_api: FakeApi) -> None:
    changed = await callbacks.post("sweeps-rows.data", OWN)

    table = said(changed["sweeps-table"]["children"])
    for words in (
        "gpt-125m-fineweb, AdamW",
        "demo · char-lm",
        "val_loss 2.85",
        "branch",
        "2026-11-19",
        "1,024 – 4,096",
    ):
        assert words in table
    assert changed["sweeps-sentence"]["children"].startswith("3 trained from the start")
    assert fake_api.paths() == ["/api/v1/sweeps"]


async def test_the_sweeps_are_asked_together_for_their_hardest_targets(callbacks: Callbacks, fake_api: FakeApi) -> None:
    rows = (await callbacks.post("sweeps-rows.data", OWN))["sweeps-rows"]["data"]

    second = next(d["output"] for d in callbacks.server_side() if d["output"].startswith("sweeps-table.children@"))
    changed = await callbacks.post(second, {"sweeps-rows.data": rows})

    (asked,) = [request.query_params["ids"] for request in fake_api.requests if "critical-batch" in request.url.path]
    assert asked.split(",") == [sweep.id for sweep in SWEEPS if sweep.ladder]
    (table,) = (value["children"] for value in changed.values())
    for words in ("992", "841 – 1,170", "16 – 32,768, 12 sizes", "> 4,100", "all batch sizes below B_crit"):
        assert words in said(table)


async def test_fits_that_cannot_be_read_leave_the_rows_and_say_so(callbacks: Callbacks, fake_api: FakeApi) -> None:
    rows = (await callbacks.post("sweeps-rows.data", OWN))["sweeps-rows"]["data"]
    fake_api.app.router.routes = [
        one for one in fake_api.app.router.routes if "critical-batches" not in getattr(one, "path", "")
    ]
    second = next(d["output"] for d in callbacks.server_side() if d["output"].startswith("sweeps-table.children@"))

    changed = await callbacks.post(second, {"sweeps-rows.data": rows})

    (table,) = (value["children"] for value in changed.values())
    assert said(table).count("not loaded") == sum(bool(sweep.ladder) for sweep in SWEEPS)
    assert "gpt-125m-fineweb, AdamW" in said(table)


async def test_without_sweeps_the_page_has_the_lines_to_paste(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.sweeps = ()

    changed = await callbacks.post("sweeps-rows.data", OWN)

    assert "noisescale.sweep(train" in said(changed["sweeps-empty"]["children"])
    assert changed["sweeps-own"]["hidden"]


async def test_a_list_that_does_not_load_says_so(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.failing = True

    changed = await callbacks.post("sweeps-rows.data", OWN)

    assert "Not loaded" in said(changed["sweeps-empty"]["children"])


async def test_published_sweeps_show_their_fits_and_refusals_with_the_source(callbacks: Callbacks) -> None:
    changed = await callbacks.post("published-figures.data", published_view())

    table = said(changed["published-table"]["children"])
    for words in ("bert", "9,000", "> 210,000", "all batch sizes below B_crit", "the curve does not fit"):
        assert words in table
    assert "Apache-2.0" in changed["published-source"]["children"]
    assert changed["published-card-title"]["children"] == "Data to the target: bert"


async def test_a_language_model_is_shown_in_sequences_with_its_own_source_and_turn(callbacks: Callbacks) -> None:
    changed = await callbacks.post("published-figures.data", published_view("C4 language modelling, 302M"))

    assert changed["published-source"]["children"] == "Zhang et al. 2024, arXiv:2410.21676"
    assert "Sequences of 512 tokens" in changed["published-card-subtitle"]["children"]
    footer = changed["published-card-footer"]["children"]
    assert footer.startswith("Best batch by examples 192 (below the sweep – 263). Examples to the target are fewest")
    assert "turns up below 192" in said(changed["published-table"]["children"])


def test_a_published_sweep_without_a_turn_says_so_where_that_was_looked_for() -> None:
    sweep = published_sweeps_of(published_json()).sweeps[0]
    longer = replace(sweep, has_room_for_turn=True)

    assert footer(longer).startswith("Data to the target do not rise towards small batches beyond their scatter.")
    assert "small batches" not in footer(sweep)


async def test_verified_critical_batches_of_language_models_have_source_and_definition(callbacks: Callbacks) -> None:
    changed = await callbacks.post("published-figures.data", published_view())

    table = said(changed["published-batches"]["children"])
    for words in (
        "215M",
        "17.6G",
        "2.58M",
        "arXiv:2503.04715",
        "E_min / S_min",
        "Computed from the authors' published table of runs.",
    ):
        assert words in table


async def test_a_sweep_that_turns_says_its_best_batch_and_what_was_left_out(
    callbacks: Callbacks, fake_api: FakeApi
) -> None:
    fake_api.sweeps = (replace(SWEEPS[0], turns=True),)

    changed = await callbacks.post("sweep-figures.data", sweep_view())

    for place in ("sweep-lede", "sweep-fit-card-footer"):
        words = said(changed[place]["children"])
        assert "Best batch by examples 192 (below the sweep – 263)." in words
        assert "Left out of B_crit." in words
    assert "turns up below 192" in said(changed["sweep-fit"]["children"])


async def test_a_workload_of_the_address_is_the_one_that_is_drawn(callbacks: Callbacks) -> None:
    changed = await callbacks.post("published-figures.data", published_view("dlrm"))

    assert changed["published-card-title"]["children"] == "Data to the target: dlrm"
    assert changed["published-card-footer"]["children"] == "B_crit is above 210,000: only a bound is known."


async def test_a_sweep_opens_with_the_critical_batch_of_its_hardest_target_and_how_sure_it_is(
    callbacks: Callbacks,
) -> None:
    changed = await callbacks.post("sweep-figures.data", sweep_view())

    assert changed["sweep-head"]["children"] == "Critical batch 992 sequences at val_loss 2.85"
    assert changed["sweep-lede"]["children"].startswith(
        "Interval 841 – 1,170 (95 %). 12 batch sizes, learning rate tuned at each, 72 runs. At batch 16 the best"
    )
    assert set(changed["sweep-figures"]["data"]) == {"hyperbola", "steps", "residuals"}


async def test_a_sweep_that_names_no_target_is_shown_at_those_that_its_runs_reached(
    callbacks: Callbacks, fake_api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = fakes_api.sweep_json
    monkeypatch.setattr(fakes_api, "sweep_json", lambda sweep, **how: named(sweep, **how) | {"targets": []})

    changed = await callbacks.post("sweep-figures.data", sweep_view())
    rows = (await callbacks.post("sweeps-rows.data", OWN))["sweeps-rows"]["data"]

    assert changed["sweep-head"]["children"] == "Critical batch 992 sequences at val_loss 2.85"
    assert "It names no target: five that all of its runs reached stand in." in changed["sweep-lede"]["children"]
    assert rows["fitted"] == [sweep.id for sweep in SWEEPS if sweep.kind == "sweep"]
    for chosen, num_targets in (("3.1", 4), ("2.5", 5)):
        changed = await callbacks.post("sweep-figures.data", sweep_view(target=chosen))
        assert changed["sweep-shown"]["data"]["target"] == float(chosen)
        assert len(changed["sweep-target"]["data"]) == num_targets


async def test_a_sweep_that_reached_nothing_says_what_to_do(
    callbacks: Callbacks, fake_api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = fakes_api.critical_batch_json
    monkeypatch.setattr(fakes_api, "critical_batch_json", lambda *asked: fitted(*asked) | {"targets": []})

    changed = await callbacks.post("sweep-figures.data", sweep_view())

    assert changed["sweep-cards"]["hidden"]
    assert "its runs did not improve" in changed["sweep-lede"]["children"]


@pytest.mark.parametrize(
    ("point", "said_of_it"),
    [
        (
            StepsPoint(64.0, 0.1, 20.0, 3, steps=21.0),
            "Best learning rate 0.1 at batch 64 images, of the 3 that were tried",
        ),
        (
            StepsPoint(64.0, 0.1, 20.0, 3, steps=21.0, is_at_grid_edge=True),
            "Best learning rate 0.1 at batch 64 images, at the edge of the 3 that were tried",
        ),
        (StepsPoint(64.0, 0.1, 20.0, 1, steps=21.0), "No critical batch at val_loss 0.5 yet"),
        (StepsPoint(64.0, 0.1, 20.0, 3), "No critical batch at val_loss 0.5 yet"),
    ],
)
def test_at_a_single_batch_size_the_answer_is_the_best_learning_rate(point: StepsPoint, said_of_it: str) -> None:
    assert headline(TargetFit(0.5, (point,)), unit="images", metric="val_loss") == said_of_it


async def test_a_target_of_the_address_is_the_one_that_is_answered(callbacks: Callbacks) -> None:
    changed = await callbacks.post("sweep-figures.data", sweep_view(target="3.10"))

    assert changed["sweep-head"]["children"] == "Critical batch 397 sequences at val_loss 3.1"
    assert changed["sweep-shown"]["data"] == {
        "kind": "sweep",
        "target": 3.1,
        "first": 2.85,
        "unit": "sequences",
        "num_targets": 4,
        "num_runs": 72,
    }
    assert [choice["value"] for choice in changed["sweep-target"]["data"]] == ["3.3", "3.1", "2.95", "2.85"]


async def test_a_sweep_without_runs_says_how_they_come(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.sweeps = (replace(SWEEPS[0], batch_sizes=()),)

    changed = await callbacks.post("sweep-figures.data", sweep_view())

    assert changed["sweep-lede"]["children"].startswith("No runs are attached to this sweep yet.")
    assert changed["sweep-cards"]["hidden"]


async def test_an_address_may_name_a_target_that_the_sweep_has_not(callbacks: Callbacks, fake_api: FakeApi) -> None:
    changed = await callbacks.post("sweep-figures.data", sweep_view(target="3.2"))

    asked = next(request for request in fake_api.requests if request.url.path.endswith("critical-batch"))
    assert asked.query_params.getlist("target") == ["3.3", "3.1", "2.95", "2.85", "3.2"]
    assert changed["sweep-head"]["children"] == "Critical batch 219 sequences at val_loss 3.2"


async def test_the_table_of_fits_has_intervals_and_the_footer_says_what_speaks_against(callbacks: Callbacks) -> None:
    changed = await callbacks.post("sweep-figures.data", sweep_view())

    table = said(changed["sweep-fit"]["children"])
    for words in ("12.5k", "12.4M", "992", "841 – 1,170", "4 %"):
        assert words in table
    assert "At batch 16 the best learning rate was the last one tried" in said(changed["sweep-fit-card-footer"])


async def test_every_cell_of_a_fit_and_of_an_arm_carries_the_word_of_its_column_for_a_phone(
    callbacks: Callbacks,
) -> None:
    fits = [
        re.findall(
            r'"data-word": "([^"]+)"', said((await callbacks.post("sweep-figures.data", sweep_view(n)))["sweep-fit"])
        )
        for n in (1, 2)
    ]
    arms = said(await callbacks.post("sweep-figures.data", sweep_view(3)))

    assert fits[0][: len(FIT_COLUMNS)] == list(FIT_COLUMNS)
    assert fits[1][:6] == ["Target", "S_min", "E_min", "B_crit", "no fit:", "n"]
    assert re.findall(r'"data-word": "([^"]+)"', arms)[: len(ARM_COLUMNS)] == list(ARM_COLUMNS)


async def test_a_refused_sweep_says_why_and_gives_no_number_but_the_bound(callbacks: Callbacks) -> None:
    changed = await callbacks.post("sweep-figures.data", sweep_view(2))

    assert changed["sweep-head"]["children"] == "Critical batch above 4,100 images at training loss 0.3"
    assert changed["sweep-lede"]["children"].startswith("Steps fall in proportion")
    assert "all batch sizes below B_crit" in said(changed["sweep-fit"]["children"])
    assert changed["sweep-cards"]["className"] == "sweep-grid one-target no-fit"
    footer = changed["sweep-steps-card-footer"]["children"]
    assert "▲ target not reached" in footer
    assert "× diverged" in footer


async def test_next_runs_have_their_cost_and_what_they_would_bring(callbacks: Callbacks, fake_api: FakeApi) -> None:
    values = {**sweep_view(), "sweep-shown.data": SHOWN, "sweep-ratio.value": "1.2"}

    changed = await callbacks.post("sweep-plan.children", values)

    asked = next(request for request in fake_api.requests if request.url.path.endswith("/plan"))
    assert dict(asked.query_params) == {"target": "2.85", "ratio": "1.2"}
    assert changed["sweep-plan-card-subtitle"]["children"].startswith("The interval's ends are now × 1.39 apart")
    for words in ("512", "58M", "92M sequences", "near the bend"):
        assert words in said(changed["sweep-plan"]["children"])
    assert "Equal examples (640k): worse." in said(changed["sweep-quality-words"]["children"])


async def test_learning_rates_say_what_theory_claims_and_the_law_where_it_leads(callbacks: Callbacks) -> None:
    changed = await callbacks.post("sweep-law-figures.data", {**sweep_view(), "sweep-shown.data": SHOWN})

    assert set(changed["sweep-law-figures"]["data"]) == {"rates", "targets"}
    footer = said(changed["sweep-rates-card-footer"]["children"])
    for words in (
        "saturates",
        "α about 0.4 to 0.8: holds: 0.500, 0.417 – 0.600.",
        "cannot be told here",
        "tune it",
    ):
        assert words in footer
    assert changed["sweep-targets-card-footer"]["children"].startswith("B_crit goes as the target to the power −10.3 (")


async def test_without_a_law_the_critical_batches_are_drawn_and_the_reason_is_said(callbacks: Callbacks) -> None:
    changed = await callbacks.post(
        "sweep-law-figures.data", {**sweep_view(2), "sweep-shown.data": {**SHOWN, "target": 0.3}}
    )

    assert "targets" in changed["sweep-law-figures"]["data"]
    assert changed["sweep-targets-card-footer"]["children"] == "A law needs three targets with a fit."


def test_steps_of_a_plan_are_whole_and_enough() -> None:
    one = Proposal(64.0, (0.1,), 3, 77.7, 4972.8, "near the bend")

    table = plan_table(SweepPlan(2.85, 1.5, 4972.8, "", proposals=(one,)), "images")

    shown = json.dumps(table, cls=PlotlyJSONEncoder)
    assert '"78"' in shown
    assert "77.7" not in shown


async def test_plan_and_quality_that_do_not_load_say_so_in_their_cards(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.failing = True

    changed = await callbacks.post("sweep-plan.children", {**sweep_view(), "sweep-shown.data": SHOWN})

    assert changed["sweep-plan-card-subtitle"]["children"] == "not loaded: Service unavailable"
    assert changed["sweep-quality-words"]["children"] == "not loaded: Service unavailable"


async def test_a_branch_has_its_arms_verdicts_limits_and_cost(callbacks: Callbacks, fake_api: FakeApi) -> None:
    changed = await callbacks.post("sweep-figures.data", sweep_view(3))

    assert changed["sweep-head"]["children"] == "Local critical batch between 1,024 and 4,096"
    assert f"/runs/{RUNS[0].id}" in said(changed["sweep-lede"]["children"])
    for words in ("as good", "worse", "open", "diverged", "+0.0250 to +0.0370", "$0.57", "328k sequences"):
        assert words in said(changed["sweep-branch"]["children"])
    for words in ("1,490", "1,150 – 1,940, at step 12,000", "0.690 – 2.75"):
        assert words in said(changed["sweep-branch"]["children"])
    assert set(changed["sweep-branch-figures"]["data"]) == {"arms"}
    assert changed["sweep-cards"]["hidden"]
    assert not [path for path in fake_api.paths() if path.endswith("critical-batch")]


async def test_a_missing_sweep_has_a_page(callbacks: Callbacks) -> None:
    values = {**sweep_view(), "sweep-id.data": "00000000-0000-4000-9000-999999999999"}

    changed = await callbacks.post("sweep-figures.data", values)

    assert "No such sweep" in said(changed["sweep-missing"]["children"])
    assert changed["sweep-body"]["className"] == "hidden"


async def test_what_is_shown_stays_when_the_server_does_not_answer(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.failing = True

    changed = await callbacks.post("sweep-figures.data", {**sweep_view(), "sweep-shown.data": SHOWN})

    assert set(changed) == {"sweep-note"}
    assert "Live updates paused" in said(changed["sweep-note"]["children"])


@pytest.mark.parametrize(("num_runs", "asked"), [(72, 0), (70, 1)])
async def test_fits_are_asked_for_again_only_when_runs_have_come(
    callbacks: Callbacks, fake_api: FakeApi, num_runs: int, asked: int
) -> None:
    values = {**sweep_view(), "sweep-shown.data": {**SHOWN, "num_runs": num_runs}, "sweep-pulse.data": 1.0}
    call = callbacks.payload("sweep-figures.data", values) | {"changedPropIds": ["sweep-pulse.data"]}

    answer = await callbacks.client.post("/_dash-update-component", json=call)

    changed = answer.json()["response"]
    assert ("sweep-figures" in changed) == bool(asked)
    assert changed["sweep-note"] == {"children": None}
    assert sum(path.endswith("critical-batch") for path in fake_api.paths()) == asked


async def test_hostile_names_are_text(callbacks: Callbacks) -> None:
    changed = await callbacks.post("sweep-figures.data", sweep_view(4))

    figures = changed["sweep-figures"]["data"].values()
    drawn = [{**figure, "layout": {**figure["layout"], "meta": None}} for figure in figures]
    assert "<img" not in json.dumps(drawn)
    assert changed["sweep-crumb"]["children"] == HOSTILE


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Interval(value=992.0, low=840.0, high=1170.0), "992"),
        (Interval(low=4100.0), "above 4,100"),
        (Interval(high=40.0), "below 40.0"),
        (Interval(low=40.0, high=900.0), "between 40.0 and 900"),
        (UNKNOWN, ""),
    ],
)
def test_what_is_known_of_a_critical_batch_in_words(found: Interval, words: str) -> None:
    assert bounds_words(found) == words


@pytest.mark.parametrize("finding", ["exponent", "misfit", "unequal_noise", "grid_edge", "few_steps", "of_the_future"])
def test_every_finding_is_a_sentence(finding: str) -> None:
    (sentence,) = lack_of_fit_words(LackOfFit((finding,), Interval(1.4, 1.2, None), 0.004, 0.002, (16.0,)))

    assert sentence[0].isupper()
    assert sentence.endswith(".")


class TestRenaming:
    async def rename(self, callbacks: Callbacks, name: str | None, sweep_id: str = SWEEPS[0].id) -> dict[str, Any]:
        values = {"sweep-name-save.n_clicks": 1, "sweep-name.value": name, "sweep-id.data": sweep_id}
        return await callbacks.post("sweep-name-said.children", values)

    async def test_a_new_name_stands_in_the_path_of_the_page(self, callbacks: Callbacks) -> None:
        changed = await self.rename(callbacks, "  tried twice ")

        assert changed["sweep-name-said"]["children"] == "Saved."
        assert changed["sweep-crumb"]["children"] == "tried twice"

    @pytest.mark.parametrize(
        ("name", "sweep_id", "words"),
        [(" ", SWEEPS[0].id, "Type a name."), ("x", RUNS[0].id, "Not saved. no sweep")],
    )
    async def test_what_is_not_saved_says_why(self, callbacks: Callbacks, name: str, sweep_id: str, words: str) -> None:
        changed = await self.rename(callbacks, name, sweep_id)

        assert changed["sweep-name-said"]["children"].startswith(words)
        assert "sweep-crumb" not in changed


BETWEEN = {
    "kind": "between_runs",
    "flag": "different_parameters",
    "losses": [
        {
            "loss": 1.25,
            "batch_sizes": [16, 256],
            "value": 410.0,
            "low": 205.0,
            "high": 900.0,
            "level": 0.95,
            "spread": 0.2,
        },
        {
            "loss": 0.5,
            "batch_sizes": [16, 64],
            "value": None,
            "low": 1200.0,
            "high": None,
            "level": 0.95,
            "spread": 0.2,
        },
    ],
    "missing": None,
}


async def test_a_noise_scale_between_runs_is_shown_with_its_flag_interval_and_batches(
    callbacks: Callbacks, fake_api: FakeApi
) -> None:
    fake_api.sweeps = (replace(SWEEPS[0], between=BETWEEN),)

    card = said((await callbacks.post("sweep-head.children", sweep_view(1)))["sweep-between"]["children"])

    assert "different parameters" in card
    for words in ("1.25", "410", "205 – 900", "not resolved", "above 1.2k", "16, 256", "20 %", "No advice rests on it"):
        assert words in card, words


async def test_where_nothing_follows_between_runs_the_page_says_what_is_missing(
    callbacks: Callbacks, fake_api: FakeApi
) -> None:
    missing = {**BETWEEN, "losses": [], "missing": f"no run has {HOSTILE}"}
    fake_api.sweeps = (replace(SWEEPS[0], between=missing, ladder={}, batch_sizes=()),)

    card = (await callbacks.post("sweep-head.children", sweep_view(1)))["sweep-between"]["children"]

    assert json.dumps(f"Nothing follows: no run has {HOSTILE}.", ensure_ascii=False) in said(card)


async def test_a_sweep_of_which_nobody_has_said_anything_between_runs_has_no_such_card(callbacks: Callbacks) -> None:
    assert (await callbacks.post("sweep-head.children", sweep_view(1)))["sweep-between"]["children"] is None
