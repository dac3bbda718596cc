"""POST /api/v1/runs/changes, and what the list of runs is sorted and filtered by for it."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import httpx
from fastapi import FastAPI

from problems import assert_problem
from stored_runs import names, names_of_all_pages, resolved, store_run

CHANGES = "/api/v1/runs/changes"


class TestChanges:
    async def test_many_runs_get_and_lose_tags_and_are_archived_at_once(
        self, client: httpx.AsyncClient, app: FastAPI
    ) -> None:
        first = await store_run(app, name="a", tags=["keep", "old"])
        second = await store_run(app, name="b", tags=["new"])
        other = await store_run(app, name="c", tags=["old"])

        answer = await client.post(
            CHANGES,
            json={"ids": [str(first), str(second)], "add_tags": ["new"], "remove_tags": ["old"], "archived": True},
        )

        archived = (await client.get("/api/v1/runs", params={"archived": True, "sort": "name"})).json()["runs"]
        untouched = (await client.get(f"/api/v1/runs/{other}")).json()
        assert answer.status_code == 200
        assert set(answer.json()["changed"]) == {str(first), str(second)}
        assert [(run["name"], run["tags"]) for run in archived] == [("a", ["keep", "new"]), ("b", ["new"])]
        assert (untouched["tags"], untouched["archived"]) == (["old"], False)

    async def test_what_was_archived_comes_back_with_its_tags(self, client: httpx.AsyncClient, app: FastAPI) -> None:
        run_id = await store_run(app, name="a", tags=["x"])
        await client.post(CHANGES, json={"ids": [str(run_id)], "archived": True})

        await client.post(CHANGES, json={"ids": [str(run_id)], "archived": False})

        run = (await client.get(f"/api/v1/runs/{run_id}")).json()
        assert (run["archived"], run["tags"]) == (False, ["x"])

    async def test_ids_without_a_run_and_runs_with_too_many_tags_are_named(
        self, client: httpx.AsyncClient, app: FastAPI
    ) -> None:
        full = await store_run(app, name="full", tags=[f"tag {n}" for n in range(32)])
        free, nobody = await store_run(app, name="free"), uuid4()

        answer = await client.post(CHANGES, json={"ids": [str(full), str(free), str(nobody)], "add_tags": ["more"]})

        assert answer.json() == {"changed": [str(free)], "missing": [str(nobody)], "too_many_tags": [str(full)]}
        assert len((await client.get(f"/api/v1/runs/{full}")).json()["tags"]) == 32

    async def test_a_tag_on_both_sides_is_refused(self, client: httpx.AsyncClient) -> None:
        answer = await client.post(CHANGES, json={"ids": [str(uuid4())], "add_tags": ["x"], "remove_tags": ["x"]})

        assert_problem(answer, 422, "invalid-input", field="remove_tags")

    async def test_more_than_two_hundred_runs_are_refused(self, client: httpx.AsyncClient) -> None:
        answer = await client.post(CHANGES, json={"ids": [str(uuid4()) for _ in range(201)], "archived": True})

        assert_problem(answer, 422, "invalid-input", field="ids")


class TestMisfit:
    async def test_the_batches_furthest_from_their_noise_scale_come_first_and_unresolved_ones_last(
        self, client: httpx.AsyncClient, app: FastAPI
    ) -> None:
        await store_run(app, name="two times too large", **resolved(100, low=80, high=130, batch=200))
        await store_run(app, name="eight times too small", **resolved(800, low=700, high=900, batch=100))
        await store_run(app, name="just right", **resolved(100, low=80, high=130, batch=100))
        await store_run(
            app, name="tentative", **{**resolved(1e6, low=9e5, high=2e6, batch=1), "noise_scale_state": "tentative"}
        )
        await store_run(
            app, name="without a batch", **{**resolved(1e6, low=9e5, high=2e6), "latest_global_batch": None}
        )

        found = await names_of_all_pages(client, limit=1, sort="-misfit")

        assert found[:3] == ["eight times too small", "two times too large", "just right"]
        assert set(found[3:]) == {"tentative", "without a batch"}


class TestUpdatedAfter:
    async def test_only_runs_with_data_since_then_are_listed(self, client: httpx.AsyncClient, app: FastAPI) -> None:
        now = datetime.now(UTC)
        await store_run(app, name="old", updated_at=now - timedelta(days=8))
        await store_run(app, name="new", updated_at=now - timedelta(days=6))

        page = await client.get("/api/v1/runs", params={"updated_after": (now - timedelta(days=7)).isoformat()})

        assert names(page) == ["new"]

    async def test_a_moment_without_a_time_zone_is_refused(self, client: httpx.AsyncClient) -> None:
        answer = await client.get("/api/v1/runs", params={"updated_after": "2026-11-20T12:00:00"})

        assert_problem(answer, 422, "invalid-input", field="updated_after")


class TestSummary:
    async def test_groups_have_counts_and_medians_of_what_is_resolved(
        self, client: httpx.AsyncClient, app: FastAPI
    ) -> None:
        for value in (100.0, 300.0, 200.0):
            await store_run(app, task="a", **resolved(value, low=value / 2, high=value * 2, batch=value / 10))
        await store_run(app, task="a", noise_scale_state="tentative", noise_scale_value=9e9)
        await store_run(app, task="b", latest_loss=2.5)

        found = (await client.get("/api/v1/runs/summary", params={"by": "task"})).json()["groups"]

        assert found == [
            {
                "value": "a",
                "num_runs": 4,
                "num_resolved": 3,
                "num_silent": 0,
                "noise_scale": 200,
                "global_batch": 20,
                "loss": 0.31,
            },
            {
                "value": "b",
                "num_runs": 1,
                "num_resolved": 0,
                "num_silent": 0,
                "noise_scale": None,
                "global_batch": None,
                "loss": 2.5,
            },
        ]

    async def test_runs_are_grouped_by_a_key_of_their_config_within_the_filter(
        self, client: httpx.AsyncClient, app: FastAPI
    ) -> None:
        for config in ({"width": 64}, {"width": 64}, {"width": "wide"}, {}):
            await store_run(app, project="demo", config=config)
        await store_run(app, project="other", config={"width": 64})

        params = {"by": "config.width", "project": "demo"}
        found = (await client.get("/api/v1/runs/summary", params=params)).json()["groups"]

        assert [(group["value"], group["num_runs"]) for group in found] == [("64", 2), ("wide", 1), (None, 1)]

    async def test_an_unknown_word_is_refused_with_those_that_are_known(self, client: httpx.AsyncClient) -> None:
        answer = await client.get("/api/v1/runs/summary", params={"by": "colour"})

        assert_problem(answer, 422, "invalid-input", field="by")
        assert "optimizer" in answer.json()["errors"][0]["message"]
