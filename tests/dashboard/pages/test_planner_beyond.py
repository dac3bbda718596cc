"""The planner's card of what more devices buy: runs side by side, a search, a larger model, each with its interval."""

import json
from typing import Any

import pytest

from fakes_planner import tradeoff_json
from noisescale_dashboard.answers.plans import TradeOff, trade_off
from noisescale_dashboard.planner import beyond
from noisescale_dashboard.planner.scope import Scope

TASK = Scope("task", "vision & co", "digits")


def plan(**query: Any) -> TradeOff:
    return trade_off(tradeoff_json({name: str(value) for name, value in query.items()}))


def words(shown: Any) -> str:
    said = json.dumps(shown, ensure_ascii=False, default=lambda part: part.to_plotly_json())
    return said.replace("\u00a0", " ").replace("\u2060", "")


def test_the_subtitle_says_how_many_devices_there_are_and_how_many_the_batches_fill() -> None:
    assert beyond.subtitle(plan(max_devices=96)) == (
        "96 devices · the recommended batch fills 24, B_crit 23 [18 – 30] · in small: 95 %"
    )
    assert "96 devices, assumed: type your own under Limits" in beyond.subtitle(plan())


@pytest.mark.parametrize("narrow", [False, True])
def test_each_number_of_runs_has_its_time_cost_and_efficiency_with_intervals(narrow: bool) -> None:
    told = words(beyond.ways(plan(max_devices=100), narrow=narrow))

    for said in (
        "4 runs",
        "24 devices, batch 1,536",
        "the recommended batch",
        "4 idle",
        "49 %",
        "45 – 54 %",
        "+0.56 sd",
        "18 %",
    ):
        assert said in told, said
    hours = 30_500 * (1 + 1490 / 1536) * 0.62 / 3600
    assert f"{hours:.3g} h" in told
    assert f"${4 * hours * 24 * 2.4:,.0f}" in told


def test_without_a_price_no_column_of_dashes_is_shown() -> None:
    assert "Cost of all" in words(beyond.ways(plan(max_devices=96), narrow=False))
    assert "Cost of all" not in words(beyond.ways(plan(max_devices=96, task="free"), narrow=False))


def test_a_search_says_its_rounds_hours_and_cost_and_where_earlier_ones_are() -> None:
    told = words(beyond.other_uses(plan(max_devices=96), TASK))

    assert "59 random trials hold one of the best 5 % of all settings with 95 %: 15 rounds of 4 side by side" in told
    assert "/sweeps?project=vision+%26+co" in told
    assert "one after another" in words(beyond.other_uses(plan(max_devices=24), TASK))


def test_a_larger_model_has_its_intervals_or_says_why_it_is_not_known() -> None:
    told = words(beyond.other_uses(plan(max_devices=96), TASK))
    assert "4 × the parameters and tokens on all devices" in told
    assert "at least 3.1 × [2.6 – 3.7 ×] the time" in told

    data = tradeoff_json({"max_devices": "96"})
    data["beyond"] |= {"larger_model": None, "larger_model_text": "Not known: the published laws are of others."}
    assert "Not known: the published laws" in words(beyond.other_uses(trade_off(data), TASK))
    assert "planner" not in words(beyond.other_uses(trade_off(data), TASK))


def test_where_no_batch_meets_the_limits_the_card_says_what_it_needs() -> None:
    empty = plan(max_hours=6, max_usd=350)

    assert words(beyond.ways(empty, narrow=False)).count("Needs a batch.") == 1
    assert beyond.other_uses(empty, TASK) == []
    assert beyond.footer(empty) == []
