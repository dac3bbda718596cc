"""What `noisescale reproduce` found, drawn by the dashboard's own figure into one file."""

import re

import pytest

from noisescale_dashboard.answers.reproductions import comparison
from noisescale_dashboard.report.reproduced import document
from reproduction_bodies import claim_summary


def test_every_scored_task_is_a_point_with_both_intervals_and_the_published_ones_stand_beside() -> None:
    compared = comparison(claim_summary("6, all count"))

    assert [task.task for task in compared.drawn] == [f"task_{place}" for place in range(1, 7)]
    assert all(task.noise_scale.low and task.critical_batch.high for task in compared.drawn)
    assert len(compared.published) == 8
    assert compared.statistics is not None
    assert compared.statistics.num_tasks == 6


def test_the_file_loads_nothing_shows_the_figure_twice_and_escapes_the_tables() -> None:
    text = document(claim_summary("6, all count"), "a < b & c" + " " * 5_000 + "the last table")

    assert text.count("<svg") == 2
    assert "task_4" in text
    assert "a &lt; b &amp; c" in text
    assert "the last table" in text
    assert not re.search(r"<script|<link|src=\"http|url\(http", text)
    assert "6 tasks over" in text


def test_colours_and_marks_are_explained_with_the_colours_that_the_figure_has() -> None:
    content = claim_summary("6, all count")
    content["targets"][-1]["unit"] = content["targets"][-2]["unit"] = "sequences"

    text = document(content, "")

    (key,) = re.findall(r'<div class="key">(.*?)</div>', text)
    classes = dict(re.findall(r'<span><span class="sw round (\w+)"></span>([^<]*)</span>', key))
    assert set(classes.values()) == {"images", "tokens", "observations", "examples", "sequences", "published"}
    colors = {name: re.findall(rf"\.sw\.{name}\{{background:(#\w+)\}}", text)[0] for name in set(classes) - {"open"}}
    assert len(set(colors.values())) == 5
    assert all(f'stroke="{color}"' in text for color in colors.values())
    assert "open: 8 published" in text
    assert "95 % whiskers" in text


def test_too_few_tasks_have_a_figure_and_no_statistics() -> None:
    text = document(claim_summary("3, all count"), "")

    assert "No figures over tasks: fewer than five tasks." in text
    assert text.count("<svg") == 2


def test_units_of_many_to_an_example_are_what_is_drawn() -> None:
    content = claim_summary("6, all count")
    content["targets"][-1]["units_per_example"] = 32

    (*_, last) = comparison(content).drawn

    assert last.critical_batch.value == pytest.approx(32 * 3.0**6)
