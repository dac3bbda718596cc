"""/api/v1/reproductions: store, list, read, delete."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from noisescale_server.api.reproductions import schemas as schemas_reproductions
from problems import assert_problem
from reproduction_bodies import advice_body, claim_body, claim_summary

REPRODUCTIONS = "/api/v1/reproductions"


async def store(client: httpx.AsyncClient, body: dict[str, Any]) -> str:
    answer = await client.post(REPRODUCTIONS, json=body)
    assert answer.status_code == 201, answer.text
    stored: str = answer.json()["id"]
    return stored


class TestStore:
    @pytest.mark.parametrize("make", [claim_body, advice_body])
    async def test_everything_that_was_sent_comes_back(self, client: httpx.AsyncClient, make: Any) -> None:
        body = make()
        stored = await store(client, body)

        found = (await client.get(f"{REPRODUCTIONS}/{stored}")).json()

        assert {name: found[name] for name in body} == body
        assert {found["claim"] is None, found["advice"] is None} == {True, False}

    async def test_the_same_content_again_is_the_same_reproduction(self, client: httpx.AsyncClient) -> None:
        first = await client.post(REPRODUCTIONS, json=claim_body())
        again = await client.post(REPRODUCTIONS, json=dict(reversed(claim_body().items())))
        listed = (await client.get(REPRODUCTIONS)).json()

        assert (first.status_code, again.status_code) == (201, 200)
        assert first.json() == again.json()
        assert listed["total"] == 1

    @pytest.mark.parametrize("changes", [{"project": "other"}, {"seed": 1}, {"claim": claim_summary("5")}])
    async def test_other_content_and_another_project_are_another_one(
        self, client: httpx.AsyncClient, changes: dict[str, Any]
    ) -> None:
        stored = await store(client, claim_body())

        assert await store(client, claim_body(**changes)) != stored

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"effort": "some"}, "effort"),
            ({"seed": 1.5}, "seed"),
            ({"of_the_future": 1}, "of_the_future"),
            ({"advice": advice_body()["advice"]}, "body"),
            ({"version": "1\x00"}, "version"),
        ],
    )
    async def test_what_does_not_belong_there_is_refused_by_its_name(
        self, shared_client: httpx.AsyncClient, changes: dict[str, Any], field: str
    ) -> None:
        answer = await shared_client.post(REPRODUCTIONS, json=claim_body(**changes))

        assert_problem(answer, 422, "invalid-input", field=field)

    @pytest.mark.parametrize(
        ("place", "value", "field"),
        [
            (("targets", 0, "task"), "a\x1bb", "claim.targets[0].task"),
            (("targets", 0, "critical_batch"), 0.0, "claim.targets[0].critical_batch"),
            (("targets", 0, "unit"), "x" * 257, "claim.targets[0].unit"),
            (("growth", 0, "lowest_at"), 2.0, "claim.growth[0].lowest_at"),
            (("series", 0, "points", 0, "noise_scale"), "12", "claim.series[0].points[0].noise_scale"),
            (("series",), [], "claim"),
            (("hooks",), None, "claim.hooks"),
        ],
    )
    async def test_a_summary_that_no_campaign_writes_is_refused(
        self, shared_client: httpx.AsyncClient, place: tuple[Any, ...], value: Any, field: str
    ) -> None:
        body = claim_body()
        *before, last = place
        inner: Any = body["claim"]
        for step in before:
            inner = inner[step]
        inner[last] = value

        answer = await shared_client.post(REPRODUCTIONS, json=body)

        assert_problem(answer, 422, "invalid-input", field=field)

    async def test_a_summary_larger_than_is_kept_is_refused(
        self, shared_client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(schemas_reproductions, "MAX_CONTENT_BYTES", 1_000)

        answer = await shared_client.post(REPRODUCTIONS, json=claim_body())

        assert_problem(answer, 422, "invalid-input", field="body")
        assert "at most 1000 are kept" in answer.json()["errors"][0]["message"]


class TestList:
    async def test_pages_go_from_the_newest_to_the_oldest_without_what_was_found(
        self, client: httpx.AsyncClient
    ) -> None:
        stored = [await store(client, claim_body(seed=seed)) for seed in range(3)]

        first = (await client.get(REPRODUCTIONS, params={"limit": 2})).json()
        second = (await client.get(REPRODUCTIONS, params={"limit": 2, "cursor": first["next_cursor"]})).json()

        rows = [*first["reproductions"], *second["reproductions"]]
        assert [row["id"] for row in rows] == stored[::-1]
        assert (first["total"], second["next_cursor"]) == (3, None)
        assert not {"claim", "advice", "content"} & set(rows[0])

    async def test_a_project_and_a_kind_choose(self, client: httpx.AsyncClient) -> None:
        claim = await store(client, claim_body())
        advice = await store(client, advice_body())
        other = await store(client, advice_body(project="other"))

        async def found(**query: str) -> list[str]:
            answer = (await client.get(REPRODUCTIONS, params=query)).json()
            assert answer["total"] == len(answer["reproductions"])
            return [row["id"] for row in answer["reproductions"]]

        assert await found(kind="claim") == [claim]
        assert await found(kind="advice") == [other, advice]
        assert await found(project="other", kind="advice") == [other]
        assert await found(project="other", kind="claim") == []


class TestDelete:
    async def test_it_is_gone_and_its_project_stays(self, client: httpx.AsyncClient) -> None:
        stored = await store(client, claim_body())

        answer = await client.delete(f"{REPRODUCTIONS}/{stored}")

        assert answer.status_code == 204
        assert_problem(await client.get(f"{REPRODUCTIONS}/{stored}"), 404, "reproduction-not-found")
        assert (await client.get(REPRODUCTIONS)).json()["total"] == 0
        assert len((await client.get("/api/v1/projects")).json()["projects"]) == 1

    async def test_one_that_is_not_there_is_not_found(self, shared_client: httpx.AsyncClient) -> None:
        assert_problem(await shared_client.delete(f"{REPRODUCTIONS}/{uuid4()}"), 404, "reproduction-not-found")
