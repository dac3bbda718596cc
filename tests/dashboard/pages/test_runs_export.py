"""The list of runs as a file."""

import csv
import io

import httpx
import pytest

from fakes_api import FakeApi
from fakes_runs import HOSTILE, FakeRun
from noisescale_dashboard.runs import export as runs_export
from noisescale_dashboard.runs import view as runs_view


def rows_of(answer: httpx.Response) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(answer.text)))


@pytest.mark.thorough
async def test_every_run_of_the_view_is_a_line_in_full_precision(client: httpx.AsyncClient, fake_api: FakeApi) -> None:
    fake_api.runs = tuple(FakeRun(number, f"run {number}", 700 + number, 64) for number in range(1, 1202))

    answer = await client.get(f"{runs_export.ADDRESS}?since=any&cols=config.hidden,task")

    rows = rows_of(answer)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert 'filename="noisescale-runs.csv"' in answer.headers["content-disposition"]
    assert len(rows) == 1201
    assert (rows[0]["name"], rows[0]["noise scale (examples)"], rows[0]["config.hidden"]) == ("run 1", "701.0", "64")
    assert len({row["id"] for row in rows}) == 1201
    assert [request.query_params.get("cursor") for request in fake_api.requests] == [None, "500", "1000"]


async def test_the_file_is_filtered_as_the_list_is(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"{runs_export.ADDRESS}?decision=decrease&since=any&batch_min=1000")

    assert [row["name"] for row in rows_of(answer)] == ["ppo-arena-v3-s1"]


async def test_an_unresolved_run_has_its_bound_and_no_number(client: httpx.AsyncClient) -> None:
    (row,) = rows_of(await client.get(f"{runs_export.ADDRESS}?q=asr"))

    assert (row["noise scale (examples)"], row["noise scale, lower end 95 %"], row["state"]) == (
        "",
        "344.0",
        "unresolved",
    )


async def test_a_name_is_no_formula_in_a_spreadsheet(client: httpx.AsyncClient, fake_api: FakeApi) -> None:
    fake_api.runs = (FakeRun(1, "=HYPERLINK(1)", 700, 64, tags=(HOSTILE,)), FakeRun(2, '-1, "x"', 700, 64))

    rows = rows_of(await client.get(runs_export.ADDRESS))

    assert [row["name"] for row in rows] == ["'=HYPERLINK(1)", '\'-1, "x"']
    assert rows[0]["tags"] == HOSTILE


async def test_without_an_answer_of_the_api_the_file_is_an_error(client: httpx.AsyncClient, fake_api: FakeApi) -> None:
    fake_api.failing = True

    answer = await client.get(runs_export.ADDRESS)

    assert (answer.status_code, answer.text) == (503, "Service unavailable: the database does not answer\n")


def test_an_address_without_words_is_the_view_that_opens_first() -> None:
    assert runs_view.view_of({}) == dict(runs_view.NO_VIEW)
    assert runs_view.view_of({"noise_min": "1e3", "batch_max": "much"})["noise_min"] == 1000.0
    assert not runs_view.is_filtered(runs_view.view_of({"sort": "-loss", "batch_max": "much"}))
    assert runs_view.is_filtered(runs_view.view_of({"decision": "keep"}))
