"""The page of what `noisescale reproduce` found, and its place in the navigation."""

import json
from typing import Any

import pytest

from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from fakes_reproductions import REPRODUCTIONS
from fakes_runs import HOSTILE
from noisescale_dashboard.reproduce.page import NOTHING_SHOWN, ONLY_ADVICE
from reproduction_bodies import claim_summary

CLAIM, ADVICE, OLDER = (one["id"] for one in REPRODUCTIONS)
NOBODYS = "00000000-0000-4000-8000-00000000efff"


async def shown(callbacks: Callbacks, asked: str = "", *, narrow: bool = False) -> dict[str, Any]:
    changed = await callbacks.post("reproduce-head.children", {"reproduce-asked.data": asked, "narrow.data": narrow})
    return {f"{name}.{what}": value for name, changes in changed.items() for what, value in changes.items()}


def texts(part: Any) -> list[str]:
    """All that a reader sees in a part of the page."""
    if isinstance(part, list):
        return [text for one in part for text in texts(one)]
    if isinstance(part, dict):
        return texts(part["props"].get("children"))
    return [] if part is None else [str(part)]


def cells(page: dict[str, Any], card: str) -> str:
    """The text of one of the cards behind the headline."""

    def found(part: Any) -> Any:
        if isinstance(part, list):
            return next((one for one in map(found, part) if one is not None), None)
        if not isinstance(part, dict):
            return None
        props = part["props"]
        return part if props.get("aria-labelledby") == f"{card}-title" else found(props.get("children"))

    return " ".join(texts(found(page["reproduce-more.children"])))


async def test_the_newest_claim_and_the_newest_advice_are_shown_with_where_they_come_from(callbacks: Callbacks) -> None:
    page = await shown(callbacks)

    assert page["reproduce-head.children"].startswith("The noise scale predicts the critical batch here, to × or ÷ ")
    assert page["reproduce-lede.children"].startswith("7 tasks over 2.4 decades of B_crit: r² 0.98 [")
    assert "Claim: quick, seed 0, noisescale 0.1.0, stored 2026-11-22" in page["reproduce-lede.children"]
    assert "Advice: full, seed 3" in page["reproduce-lede.children"]
    assert page["reproduce-body.className"] == ""
    assert page["reproduce-missing.children"] is None


@pytest.mark.parametrize("narrow", [False, True])
async def test_the_figure_holds_own_and_published_points_and_the_key_their_units(
    callbacks: Callbacks, narrow: bool
) -> None:
    page = await shown(callbacks, narrow=narrow)

    names = [trace["name"] for trace in page["reproduce-figures.data"]["scatter"]["data"]]
    assert sum(name.startswith("own task_") for name in names) == 6
    assert sum(name.startswith("published ") for name in names) == 8
    assert {"examples", "images", "tokens", "published"} <= set(texts(page["reproduce-key.children"]))
    assert "task_6" in page["reproduce-scatter-sentence.children"]


async def test_every_table_of_the_claim_stands_in_its_card(callbacks: Callbacks) -> None:
    page = await shown(callbacks)

    targets = cells(page, "reproduce-targets-card")
    assert "task_3 0.1 sgd examples 20.0 27.0 13.5 – 54.0 15.6 13.0 – 18.8 1.73 yes" in targets
    assert "all tasks hardest nearest B_crit 7 0.98 [" in cells(page, "reproduce-series-card")
    assert "task_1 16 100 % 100 % 1.000" in cells(page, "reproduce-hooks-card")
    assert "isotropic 12 12 11 31.0 30.5 30.5" in cells(page, "reproduce-quadratics-card")
    assert "dips" not in cells(page, "reproduce-growth-card")
    assert "4 ×" in cells(page, "reproduce-growth-card")
    assert "r²" in cells(page, "reproduce-loss-card")
    assert "were not run" in cells(page, "reproduce-loss-card")
    assert "task_6 0.5 3 1.05" in cells(page, "reproduce-misfits-card")
    assert "task_1 sgd" in cells(page, "reproduce-rates-card")
    assert "task_1 16 to 128 0.97 1.02" in cells(page, "reproduce-adaptive-card")
    assert any("S_min 2.1 is below 5 steps" in line for line in texts(page["reproduce-exclusions.children"]))


async def test_the_tables_of_the_advice_stand_behind_those_of_the_claim(callbacks: Callbacks) -> None:
    page = await shown(callbacks)

    assert "ours held out constant 80 / 452 % 80 / 452 % 0.62 [0.51, 0.79] 10 %" in cells(
        page, "reproduce-policies-card"
    )
    assert "took 0.62 [0.51, 0.79] of the cost" in cells(page, "reproduce-policies-card")
    assert "50 % – 50 % [50 %, 50 %] –" in cells(page, "reproduce-recommendations-card")


async def test_an_address_shows_one_reproduction_and_links_to_the_others(callbacks: Callbacks) -> None:
    page = await shown(callbacks, OLDER)

    assert page["reproduce-head.children"].endswith("(4 done)")
    assert page["reproduce-lede.children"].startswith("No figures over tasks: fewer than five tasks.")
    assert "reproduce-policies-card" not in json.dumps(page["reproduce-more.children"])
    addresses = json.dumps(page["reproduce-more.children"])
    assert all(f"/reproduce/{one}" in addresses for one in (CLAIM, ADVICE, OLDER))


async def test_advice_alone_has_no_figure(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.reproductions = REPRODUCTIONS[1:2]

    page = await shown(callbacks)

    assert page["reproduce-head.children"] == "What was the advice worth?"
    assert page["reproduce-body.className"] == ONLY_ADVICE
    assert "reproduce-figures.data" not in page
    assert "reproduce-stored-card" not in json.dumps(page["reproduce-more.children"])


async def test_a_server_without_any_says_which_command_makes_one(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.reproductions = ()

    page = await shown(callbacks)

    assert page["reproduce-body.className"] == NOTHING_SHOWN
    assert "noisescale reproduce --quick" in " ".join(texts(page["reproduce-missing.children"]))


async def test_an_unknown_one_and_a_silent_api_are_told_apart(callbacks: Callbacks, fake_api: FakeApi) -> None:
    unknown = await shown(callbacks, NOBODYS)
    fake_api.failing = True
    silent = await shown(callbacks)

    assert "No such reproduction" in texts(unknown["reproduce-missing.children"])
    assert "Not loaded" in texts(silent["reproduce-missing.children"])
    assert unknown["reproduce-body.className"] == silent["reproduce-body.className"] == NOTHING_SHOWN


async def test_figures_that_are_no_numbers_are_dashes(callbacks: Callbacks, fake_api: FakeApi) -> None:
    found = claim_summary()
    for one in found["series"]:
        if one["agreement"] is not None and one["average"] != "published":
            one["agreement"]["slope"] = {"value": None, "low": None, "high": None}
    found["targets"][1].update(near_critical_low=0.0, critical_batch_high=None)
    fake_api.reproductions = ({**REPRODUCTIONS[0], "claim": found},)

    page = await shown(callbacks)

    assert "– [–, –]" in cells(page, "reproduce-series-card")
    assert "task_1 0.1 sgd examples 20.0 3.00 open 2.50 open 1.20 yes" in cells(page, "reproduce-targets-card")


async def test_names_that_would_be_markup_stay_text(callbacks: Callbacks) -> None:
    page = await shown(callbacks)

    assert HOSTILE in texts(page["reproduce-exclusions.children"])
    assert HOSTILE in cells(page, "reproduce-hooks-card")


async def test_the_page_stands_in_the_navigation_where_a_reproduction_is_stored(
    callbacks: Callbacks, fake_api: FakeApi
) -> None:
    async def look() -> bool:
        changed = await callbacks.post("reproduced.data", {"reproduced.id": "reproduced"})
        found: bool = changed["reproduced"]["data"]
        return found

    async def links(has_reproduction: bool) -> list[str]:
        values = {"address.pathname": "/", "narrow.data": False, "reproduced.data": has_reproduction}
        changed = await callbacks.post("page.children", values)
        return [link["props"]["title"] for link in changed["nav"]["children"]]

    there = await look()
    fake_api.reproductions = ()
    empty = await look()
    fake_api.failing = True
    silent = await look()

    assert (there, empty, silent) == (True, False, False)
    assert "Reproduce" in await links(True)
    assert "Reproduce" not in await links(False)


async def test_a_table_that_would_hold_dashes_alone_is_left_out(callbacks: Callbacks, fake_api: FakeApi) -> None:
    first = fake_api.reproductions[0]
    series = [
        {**one, "agreement": one["agreement"] if one["average"] == "published" else None}
        for one in first["claim"]["series"]
    ]
    fake_api.reproductions = ({**first, "claim": {**first["claim"], "series": series}},)

    page = await shown(callbacks)

    assert "Every choice of tasks" not in json.dumps(page, ensure_ascii=False)
    assert "Targets" in json.dumps(page, ensure_ascii=False)
