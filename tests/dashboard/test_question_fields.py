"""Prices, limits and spot fields: declared once, for two pages and their scripts."""

import json

from noisescale_dashboard.api import question_fields
from noisescale_dashboard.planner import query as planner_query
from noisescale_dashboard.run import limits as plan_limits


def test_the_run_page_asks_for_every_field_in_its_group() -> None:
    groups = {**plan_limits.PRICES, **plan_limits.LIMITS, **plan_limits.SPOT}

    assert list(groups) == [one.asks for one in question_fields.FIELDS]


def test_the_planner_asks_for_every_field_that_names_a_word_of_its_address() -> None:
    words = {one.planner.word: one.asks for one in question_fields.FIELDS if one.planner is not None}

    assert words.items() <= {word: field.asks for word, field in planner_query.FIELDS.items()}.items()


def test_scripts_get_the_same_fields() -> None:
    said = json.loads(question_fields.for_scripts())

    assert said["fields"] == [one.asks for one in question_fields.FIELDS]
    assert said["switches"] == ["fixed_hardware"]
    assert "'" not in question_fields.for_scripts()
