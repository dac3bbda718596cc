"""GET /api/v1/runs: sort and pages."""

import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from noisescale_server.api.platform import cursor
from noisescale_server.storage.runs.listing import SORT_COLUMNS, Sort
from problems import assert_problem
from stored_runs import names, names_of_all_pages, store_run

SOME_ID = "9d0e7b5c-3b1f-4a59-8f0e-6a2c1d4e5f60"


class TestSort:
    @pytest.mark.parametrize("column", sorted(SORT_COLUMNS))
    @pytest.mark.parametrize("direction", ["", "-"])
    async def test_pages_follow_the_sort_with_nulls_last_and_ties_by_id(
        self, shared_client: httpx.AsyncClient, shared_app: FastAPI, column: str, direction: str
    ) -> None:
        project, ids = f"sorted by {direction}{column}", sorted(uuid4() for _ in range(5))
        moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
        by_type = {str: ["k", "k", "l"], datetime: [moment, moment, moment + timedelta(microseconds=1)]}
        key = SORT_COLUMNS[column].key
        values = by_type.get(SORT_COLUMNS[column].type.python_type, [7, 7, 8])
        for run_id, value in zip(ids[:3], values, strict=True):
            await store_run(shared_app, project=project, id=run_id, **{"name": str(run_id), key: value})
        is_nullable = SORT_COLUMNS[column].property.columns[0].nullable
        if is_nullable:
            for run_id in ids[3:]:
                await store_run(shared_app, project=project, id=run_id, name=str(run_id))

        found: list[str] = []
        next_cursor = ""
        while next_cursor is not None:
            query = {"project": project, "sort": direction + column, "limit": 1} | (
                {"cursor": next_cursor} if next_cursor else {}
            )
            page = (await shared_client.get("/api/v1/runs", params=query)).json()
            found += [run["id"] for run in page["runs"]]
            next_cursor = page["next_cursor"]

        tied, other = [str(ids[0]), str(ids[1])], [str(ids[2])]
        nulls = [str(run_id) for run_id in ids[3:]] if is_nullable else []
        assert found == (other + tied if direction else tied + other) + nulls


class TestPages:
    async def test_pages_stay_stable_while_runs_are_added(self, client: httpx.AsyncClient, app: FastAPI) -> None:
        for name in "bdfhj":
            await store_run(app, name=name)
        first = await client.get("/api/v1/runs", params={"sort": "name", "limit": 2})
        for name in "ack":
            await store_run(app, name=name)

        rest = await client.get("/api/v1/runs", params={"sort": "name", "cursor": first.json()["next_cursor"]})

        assert names(first) == ["b", "d"]
        assert names(rest) == ["f", "h", "j", "k"]

    async def test_every_run_is_on_exactly_one_page(self, client: httpx.AsyncClient, app: FastAPI) -> None:
        for number in range(7):
            await store_run(app, name=f"run {number}", latest_loss=0.1 + number / 3)

        found = await names_of_all_pages(client, limit=3, sort="-loss")

        assert found == [f"run {number}" for number in reversed(range(7))]

    async def test_the_last_page_has_no_cursor(self, client: httpx.AsyncClient, app: FastAPI) -> None:
        for _ in range(2):
            await store_run(app)

        page = await client.get("/api/v1/runs", params={"limit": 2})

        assert page.json()["next_cursor"] is None
        assert page.json()["total"] == 2

    @pytest.mark.parametrize(
        "bad",
        [
            "x",
            "AAAA",
            "====",
            "é",
            "W10",
            cursor._packed(json.dumps(["-name", "a", SOME_ID]).encode()),
            cursor._packed(json.dumps(["name", 3, SOME_ID]).encode()),
            cursor._packed(json.dumps(["name", "a", "no uuid"]).encode()),
            cursor._packed(json.dumps(["name", "a\0", SOME_ID]).encode()),
            cursor._packed(b"[" * 1_000),
            cursor._packed(b"\xff\xfe"),
        ],
    )
    async def test_a_cursor_that_we_did_not_make_is_422(self, shared_client: httpx.AsyncClient, bad: str) -> None:
        answer = await shared_client.get("/api/v1/runs", params={"sort": "name", "cursor": bad})

        assert_problem(answer, 422, "invalid-input", field="cursor")

    @pytest.mark.parametrize(
        ("column", "value"),
        [
            ("loss", '"x"'),
            ("last_step", str(2**70)),
            ("created_at", "3"),
            ("updated_at", '"9999-12-31T23:59:59-23:59"'),
        ],
    )
    async def test_a_cursor_with_another_type_of_value_is_422(
        self, shared_client: httpx.AsyncClient, column: str, value: str
    ) -> None:
        bad = cursor._packed(f'["{column}", {value}, "{uuid4()}"]'.encode())

        answer = await shared_client.get("/api/v1/runs", params={"sort": column, "cursor": bad})

        assert_problem(answer, 422, "invalid-input", field="cursor")

    def test_a_cursor_comes_back_as_it_was_made(self) -> None:
        sort, run_id, moment = Sort("updated_at", is_descending=True), uuid4(), datetime.now(UTC)

        after = cursor.decode(cursor.encode(sort, moment, run_id), sort)

        assert (after.value, after.run_id) == (moment, run_id)


async def test_the_total_counts_all_pages_also_where_none_is_left(client: httpx.AsyncClient, app: FastAPI) -> None:
    stored = [await store_run(app, name=name) for name in "abc"]
    first = (await client.get("/api/v1/runs", params={"sort": "name", "limit": 2})).json()
    last = (await client.get("/api/v1/runs", params={"sort": "name", "cursor": first["next_cursor"]})).json()
    behind = cursor.encode(Sort("name", is_descending=False), "z", stored[-1])

    nothing_left = (await client.get("/api/v1/runs", params={"sort": "name", "cursor": behind})).json()

    assert (first["total"], last["total"]) == (3, 3)
    assert (nothing_left["runs"], nothing_left["total"]) == ([], 3)
