"""/api/v1/projects/{project}/defaults: prices where neither a run nor a question says them."""

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from compared_tasks import planted_task, stored_run
from principals import OURS, Team, running_team
from problems import assert_problem
from stored_runs import judge_all

NOTHING = {
    "device_hour_price": None, "currency": "USD", "usd_per_unit": 1.0, "usd_per_device_hour": None,
    "preference": None, "examples_per_step": None, "fixed_hardware": False,
}  # fmt: skip
DEVICES = {"num_devices": 2, "usd_per_device_hour": None}


async def said(client: httpx.AsyncClient, project: str, **body: Any) -> dict[str, Any]:
    answer = await client.put(f"/api/v1/projects/{project}/defaults", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def got(client: httpx.AsyncClient, path: str, **query: Any) -> dict[str, Any]:
    answer = await client.get(f"/api/v1/{path}", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def warned(advice: dict[str, Any]) -> dict[str, str]:
    return {one["code"]: one["text"] for one in advice["warnings"]}


@pytest.fixture
async def run_id(shared_client: httpx.AsyncClient) -> str:
    return await stored_run(shared_client, project=f"p {uuid4()}", task="digits", run=DEVICES)


@pytest.fixture
async def project(shared_client: httpx.AsyncClient, run_id: str) -> str:
    return str((await got(shared_client, f"runs/{run_id}"))["project"])


class TestStored:
    async def test_a_project_that_has_said_nothing_says_so(
        self, shared_client: httpx.AsyncClient, project: str
    ) -> None:
        assert await got(shared_client, f"projects/{project}/defaults") == NOTHING

    async def test_what_is_put_is_read_back_and_what_is_left_out_is_not_said_any_more(
        self, shared_client: httpx.AsyncClient, project: str
    ) -> None:
        first = await said(
            shared_client, project, device_hour_price=2.0, currency="EUR", usd_per_unit=1.1, preference=0.3
        )
        read = await got(shared_client, f"projects/{project}/defaults")
        second = await said(shared_client, project, examples_per_step=128)

        assert read == first == NOTHING | {
            "device_hour_price": 2.0, "currency": "EUR", "usd_per_unit": 1.1, "usd_per_device_hour": pytest.approx(2.2),
            "preference": 0.3,
        }  # fmt: skip
        assert second == NOTHING | {"examples_per_step": 128.0}

    @pytest.mark.parametrize(
        ("body", "field", "words"),
        [
            ({"preference": 0.5, "fixed_hardware": True}, "preference", "each say what a step is worth"),
            ({"device_hour_price": 2, "currency": "EUR"}, "usd_per_unit", "what one EUR is worth"),
            ({"usd_per_unit": 2}, "usd_per_unit", "must be 1 for USD"),
            ({"device_hour_price": 0}, "device_hour_price", "greater than or equal"),
            ({"currency": "eur"}, "currency", "pattern"),
            ({"examples_per_step": -1}, "examples_per_step", "greater than or equal"),
            ({"usd_per_hour_sooner": 3}, "usd_per_hour_sooner", "unknown field"),
        ],
    )
    async def test_what_no_answer_could_assume_is_refused_by_field(
        self, shared_client: httpx.AsyncClient, project: str, body: dict[str, Any], field: str, words: str
    ) -> None:
        answer = await shared_client.put(f"/api/v1/projects/{project}/defaults", json=body)

        assert_problem(answer, 422, "invalid-input", field=field)
        assert words in answer.json()["errors"][0]["message"]

    async def test_a_project_that_is_not_there_has_no_defaults(self, shared_client: httpx.AsyncClient) -> None:
        for answer in (
            await shared_client.get("/api/v1/projects/nowhere/defaults"),
            await shared_client.put("/api/v1/projects/nowhere/defaults", json={}),
        ):
            assert_problem(answer, 404, "project-not-found")


class TestAssumed:
    async def test_a_recommendation_assumes_them_and_says_so(
        self, shared_client: httpx.AsyncClient, run_id: str, project: str
    ) -> None:
        await said(shared_client, project, device_hour_price=2.0, currency="EUR", usd_per_unit=1.1, examples_per_step=9)

        found = await got(shared_client, f"runs/{run_id}/recommendation")
        asked = await got(shared_client, f"runs/{run_id}/recommendation", preference=0.7, usd_per_device_hour=5)
        listed = (await got(shared_client, "runs/recommendations", ids=run_id))["recommendations"][0]

        assert "Assumes that a step saved is worth 9 examples (project default)" in warned(found)["no_price"]
        assert warned(found)["price_of_project"] == "Money assumes 2 EUR (2.2 USD) a device-hour (project default)."
        assert found["exchange_rate"]["examples_per_step"] == listed["exchange_rate"]["examples_per_step"] == 9
        assert not {"no_price", "price_of_project"} & set(warned(asked))

    async def test_the_price_of_a_run_wins_over_that_of_its_project(
        self, shared_client: httpx.AsyncClient, project: str
    ) -> None:
        priced = await stored_run(
            shared_client, project=project, task="digits", run={"num_devices": 2, "usd_per_device_hour": 3.0}
        )
        await said(shared_client, project, device_hour_price=2.0)

        found = await got(shared_client, "tradeoff", run_id=priced)

        assert found["step"]["usd_per_device_hour"] == 3.0
        assert "project default" not in found["assumes"]

    async def test_the_planner_of_a_run_assumes_them_and_says_so(
        self, shared_client: httpx.AsyncClient, run_id: str, project: str
    ) -> None:
        await said(shared_client, project, device_hour_price=2.0, preference=0.2)

        found = await got(shared_client, "tradeoff", run_id=run_id)
        asked = await got(shared_client, "tradeoff", run_id=run_id, examples_per_step=40, usd_per_device_hour=7)

        assert found["price_text"] == "assumes that 1 % of the steps is worth 0.25 % of the examples (project default)"
        assert found["assumes"].endswith("Money assumes 2 USD a device-hour (project default).")
        assert found["step"]["usd_per_device_hour"] == 2.0
        assert (asked["examples_per_step"], asked["step"]["usd_per_device_hour"]) == (40.0, 7.0)
        assert "project default" not in asked["price_text"] + asked["assumes"]

    async def test_a_task_before_its_next_run_is_advised_and_planned_by_them(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        project = f"swept {uuid4()}"
        await planted_task(shared_client, "digits", project=project, noise_scale=100.0)
        await said(shared_client, project, device_hour_price=2.0, examples_per_step=64)

        advice = await got(shared_client, f"projects/{project}/tasks/digits/recommendation")
        plan = await got(shared_client, "tradeoff", project=project, task="digits")

        assert advice["exchange_rate"]["examples_per_step"] == plan["examples_per_step"] == 64
        assert "(project default)" in warned(advice)["no_price"]
        assert plan["price_text"] == "assumes that a step saved is worth 64 examples (project default)"
        assert plan["step"]["usd_per_device_hour"] == 2.0

    async def test_fixed_hardware_plans_without_step_times_as_if_nobody_had_said_a_price(
        self, shared_client: httpx.AsyncClient, run_id: str, project: str
    ) -> None:
        await said(shared_client, project, fixed_hardware=True)

        found = await got(shared_client, "tradeoff", run_id=run_id)

        assert found["price_text"] == "assumes that time and data matter equally"

    async def test_the_overview_and_the_rows_are_judged_again_by_a_new_default(
        self, shared_app: FastAPI, shared_client: httpx.AsyncClient, run_id: str, project: str
    ) -> None:
        await judge_all(shared_app)
        before = (await got(shared_client, "runs", project=project))["runs"][0]["decision"]

        await said(shared_client, project, examples_per_step=1e6)
        await judge_all(shared_app)
        after = (await got(shared_client, "runs", project=project))["runs"][0]["decision"]

        alone = await got(shared_client, f"runs/{run_id}/recommendation")
        assert after["batch_size"] == alone["recommended_batch_size"]
        assert after["batch_size"] > 10 * before["batch_size"]


@pytest.fixture(scope="module")
async def team(new_database: Callable[[], str]) -> AsyncIterator[Team]:
    async with running_team(new_database()) as opened:
        yield opened


class TestRights:
    async def test_members_read_and_admins_change_and_the_audit_log_says_who(self, team: Team) -> None:
        path = f"/api/v1/projects/{OURS}/defaults"
        statuses = {}
        for who in ("viewer", "member", "admin"):
            async with team.client(who) as client:
                statuses[who] = (
                    (await client.get(path)).status_code,
                    (await client.put(path, json={"device_hour_price": 2.5})).status_code,
                )
        async with team.client("admin") as client:
            entries = (await client.get("/api/v1/audit")).json()["entries"]

        assert statuses == {"viewer": (200, 403), "member": (200, 403), "admin": (200, 200)}
        assert (entries[0]["action"], entries[0]["actor_name"]) == ("project defaults set", "admin")
        assert entries[0]["details"] == {"device": "2.5 USD a device-hour"}
