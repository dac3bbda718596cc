"""The page of time and cost: what its tables and sentences say of a board and of the growth of compute."""

import json
from dataclasses import replace
from typing import Any

from fakes_cost import growth_json, leaderboard_json, search_cost_json, submissions_json, time_json
from noisescale_dashboard.answers.cost import board, compute_growth, search_cost, time_of_run
from noisescale_dashboard.cost import page, tables
from noisescale_dashboard.figures.cost import compute_over_time, records_over_time, time_against_money
from noisescale_dashboard.figures.parts.data_table import attached_columns
from noisescale_dashboard.run import time as run_time
from noisescale_dashboard.sweeps import search

PUBLISHED, OWN, GROWTH = board(submissions_json()), board(leaderboard_json()), compute_growth(growth_json())


def words(part: Any) -> str:
    return json.dumps(part, default=lambda one: one.to_plotly_json(), ensure_ascii=False)


def test_the_first_sentence_names_the_fastest_and_the_cheapest_and_counts_those_without_a_price():
    assert page.sentence(PUBLISHED) == (
        "To 93 % top-5 accuracy: 30 min on ResNet50 · half of a pod, $358 on ResNet50 · p3.16xlarge. "
        "3 trainings, 1 of them without a price."
    )


def test_the_headline_says_how_fast_and_how_cheap():
    assert page.headline(PUBLISHED) == "Fastest 30 min, cheapest $358"
    assert page.headline(replace(PUBLISHED, rows=())) == page.TITLE


def test_every_training_has_a_row_and_who_is_not_on_the_front_for_want_of_a_price_says_so():
    said = words(tables.of_trainings(PUBLISHED.rows))

    assert all(one.name in said for one in PUBLISHED.rows)
    assert said.count("not on the front: no price is known") == 1
    assert "no price submitted" in said


def test_a_run_of_ones_own_says_its_pause_its_checklist_what_was_changed_and_what_interruptible_machines_cost():
    said = words(tables.of_trainings(OWN.rows))

    assert "90 min of it paused" in said
    assert "Techniques: 1 of 3 used" in said
    assert "✓ mixed precision: " in said
    assert "? progressive resizing: " in said
    assert "mixed precision, 6.00 h of engineering" in said
    assert "interruptible: $110" in said
    assert "/runs/00000000-0000-4000-8000-000000000001" in said


def test_own_prices_and_submitted_ones_never_stand_in_one_picture():
    own = page.of_board(OWN, narrow=False, is_own=True)
    submitted = page.of_board(PUBLISHED, narrow=False, is_own=False)

    for shown, whose, source in ((own, "own", "Prices of your runs"), (submitted, "dawnbench", "Prices as submitted")):
        columns = attached_columns(shown[0]["money-figure"])
        assert set(columns["whose"]) == {whose}
        assert shown[page_place("cost-source")].startswith(source)


def page_place(output: str) -> int:
    return next(place for place, one in enumerate(page.CHANGED) if one.component_id == output)


def test_published_and_computed_factors_stand_side_by_side():
    said = words(tables.of_factors(PUBLISHED.factors, PUBLISHED.same_hardware, PUBLISHED))

    assert said.count('"809 ×"') == 2
    assert "on 8 × V100 alone" in said


def test_the_parts_of_a_speed_up_stand_under_it_each_with_how_it_is_known():
    said = words(tables.of_steps(PUBLISHED.steps))

    assert "→ ResNet50 · p3.16xlarge" in said
    assert "107 → 81 passes" in said
    assert "no speed-up to explain" in words(tables.of_steps(()))


def test_the_front_and_the_records_are_drawn_as_lines():
    money = {trace.name: trace for trace in time_against_money(PUBLISHED, narrow=False).data}
    records = {trace.name: trace for trace in records_over_time(PUBLISHED, narrow=True).data}

    assert (list(money["front"].x), list(money["front"].y)) == ([14.6], [358.2])
    assert len(money["trainings"].x) == 2
    assert list(records["records"].y) == [244.0, 14.6, 0.5]
    assert list(records["trainings"].y) == [0.5, 14.6, 244.0]


def test_interruptible_machines_are_marks_of_their_own_where_somebody_asked():
    assert "on interruptible machines" in {trace.name for trace in time_against_money(OWN, narrow=False).data}
    assert "on interruptible machines" not in {trace.name for trace in time_against_money(PUBLISHED, narrow=False).data}


def test_growth_says_its_interval_and_what_part_is_money():
    assert page.growth_sentence(GROWTH) == (
        "Compute of a run doubles in 1.00 months, at the fastest in 0.923; it may also not grow at all. Of 12 "
        "doublings a year over runs with a price, spending makes 8.0 and compute per USD 4.0."
    )


def test_growth_is_drawn_with_both_published_lines_through_its_end():
    figure = {trace.name: trace for trace in compute_over_time(GROWTH, narrow=False).data}

    assert {"published, 3.4 months", "published, 3.5 months", "fit", "runs"} == set(figure)
    assert figure["fit"].y[1] == 0.32
    assert figure["published, 3.4 months"].y[1] == 0.32


def test_what_is_not_said_is_not_asked():
    view = {"tab": "own", "target": 0.9, "metric": None, "goal": "max", "price": 0, "spot": None, "project": None,
            "task": "digits"}  # fmt: skip

    assert page.own_query(view) == {"target": 0.9, "goal": "max", "task": "digits"}


def test_a_board_that_nobody_reached_says_how_many_were_looked_at():
    nobody = board({**leaderboard_json(), "rows": []})

    assert page.empty_words(nobody).startswith("None of 4 runs reached accuracy 0.9")


def test_a_search_is_counted_in_hours_and_usd_against_the_best_trial_alone():
    said = search.bill_words(search_cost(search_cost_json()).bill)

    assert said == (
        "9 trials, 1 of them diverged. They took 3 h (6 of them timed), 12.0 device-hours, $24 for 4 of them. The best "
        "alone took 15 min, $2.00. Prices: 2 USD a device-hour: the run says."
    )


def test_the_trials_that_each_way_to_search_needs_stand_side_by_side_and_fewer_trials_say_less_of_b_crit():
    found = search_cost(search_cost_json())

    sizes, fewer = search.tables(found)

    rows = [[cell.children for cell in row.children] for row in sizes.children[1].children]
    assert rows[0] == ["64", "3", "0.1", "2 × the steps", "3", "2", "1"]
    assert rows[1][2:] == ["–"] * 5
    rows = [[cell.children for cell in row.children] for row in fewer.children[1].children]
    assert rows == [["1", "no bend", "from 60.0"], ["2", "180", "90.0 – 400"], ["3", "256", "256 – 256"]]


def test_the_cheapest_lever_is_named_first_and_a_run_without_shares_is_told_what_to_log():
    found = time_of_run(time_json())
    silent = time_of_run({**time_json(), "shares": {}, "levers": [], "missing": ["time/accelerator"]})

    assert run_time.words(found).startswith(
        "The cheapest lever is data, a setting: more loader workers. It brings 1.3 × at most. A pass holds 32 "
        "examples on 80 GB of a A100."
    )
    assert "log_metrics({'time/accelerator': 0.6})" in run_time.words(silent)


def test_devices_stand_with_peak_memory_and_how_fast_both_double():
    said = tables.trend_words(GROWTH.device_trend)

    assert said.startswith("Peak of a device doubles in 15.0 months, at the fastest in 6.67")
    assert said.endswith("Memory of a device: too few kinds to say; six over thirty days are needed.")
    assert '"V100"' in words(tables.of_devices(GROWTH.devices))
