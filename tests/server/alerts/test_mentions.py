"""A comment that mentions somebody is told to a project's receivers, where a rule of the project asks for that."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from noisescale_server.services.alerts import managing
from noisescale_server.storage.alerts import rows as alert_rows
from principals import OURS, Team, new_person, running_team
from stored_runs import store_run

ALERTS = f"/api/v1/projects/{OURS}/alerts"
RULE = {"name": "called", "kind": "mentioned"}


@pytest.fixture(scope="module")
async def team(new_database: Callable[[], str]) -> AsyncIterator[Team]:
    async with running_team(new_database()) as opened:
        await new_person(opened.app, "Ada", {OURS: "viewer"})
        await new_person(opened.app, "Grace", {OURS: "viewer"})
        async with opened.app.state.sessions.begin() as session:
            project_id = await managing.project_id_of(session, OURS)
            receiver = {"name": "channel", "shape": "webhook", "url": "https://hooks.example.com/x"}
            await alert_rows.add_receiver(session, project_id, **receiver)
        yield opened


@pytest.fixture
async def run_id(team: Team) -> UUID:
    return await store_run(team.app, project=OURS, name="b2048")


@pytest.fixture
async def admin(team: Team) -> AsyncIterator[httpx.AsyncClient]:
    async with team.client("admin") as client:
        yield client


async def say(client: httpx.AsyncClient, run_id: UUID, text: str) -> str:
    return str((await client.post(f"/api/v1/runs/{run_id}/comments", json={"text": text})).json()["id"])


async def told(client: httpx.AsyncClient, run_id: UUID) -> list[dict[str, Any]]:
    events = (await client.get(f"{ALERTS}/events")).json()["events"]
    return [one for one in events if one["run_id"] == str(run_id)]


async def with_rule(client: httpx.AsyncClient, **changes: Any) -> str:
    return str((await client.post(f"{ALERTS}/rules", json=RULE | changes)).json()["id"])


async def test_a_mention_is_told_once_with_its_words_and_owed_to_each_receiver(
    admin: httpx.AsyncClient, run_id: UUID
) -> None:
    rule = await with_rule(admin)

    await say(admin, run_id, "@Ada, @Grace: too small?\nI think so")

    (event,) = await told(admin, run_id)
    assert event["sentence"] == "admin mentions Ada, Grace in a comment: “@Ada, @Grace: too small? I think so”"
    assert (event["rule"], event["run"]) == ("called", "b2048")
    assert [one["receiver"] for one in event["deliveries"]] == ["channel"]
    await admin.delete(f"{ALERTS}/rules/{rule}")


async def test_nothing_is_told_without_a_rule_or_a_name(admin: httpx.AsyncClient, run_id: UUID) -> None:
    await say(admin, run_id, "@Ada before the rule")
    rule = await with_rule(admin)
    await say(admin, run_id, "nobody, not even @Nobody")

    assert await told(admin, run_id) == []
    await admin.delete(f"{ALERTS}/rules/{rule}")


async def test_other_words_tell_only_of_who_is_new_in_them(admin: httpx.AsyncClient, run_id: UUID) -> None:
    rule = await with_rule(admin)
    comment = await say(admin, run_id, "@Ada")

    for text in ("@Ada, look", "@Ada and @Grace"):
        await admin.patch(f"/api/v1/runs/{run_id}/comments/{comment}", json={"text": text})

    assert [one["sentence"].partition(" in ")[0] for one in await told(admin, run_id)] == [
        "admin mentions Grace",
        "admin mentions Ada",
    ]
    await admin.delete(f"{ALERTS}/rules/{rule}")


async def test_a_muted_rule_notes_and_owes_nothing(admin: httpx.AsyncClient, run_id: UUID) -> None:
    rule = await with_rule(admin, muted_until=(datetime.now(UTC) + timedelta(hours=1)).isoformat())

    await say(admin, run_id, "@Ada")

    (event,) = await told(admin, run_id)
    assert (event["is_muted"], event["deliveries"]) == (True, [])
    await admin.delete(f"{ALERTS}/rules/{rule}")


async def test_a_dry_run_counts_the_comments_that_mention_somebody(admin: httpx.AsyncClient, run_id: UUID) -> None:
    await say(admin, run_id, "@Ada once")
    await say(admin, run_id, "no one")

    found = (await admin.post(f"{ALERTS}/dry-run", json={"rule": RULE})).json()

    assert [one["sentence"] for one in found["told"] if one["run_id"] == str(run_id)] == [
        "admin mentions Ada in a comment: “@Ada once”"
    ]
