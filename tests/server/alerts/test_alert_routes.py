"""/api/v1/projects/{project}/alerts: rules, receivers, and what a rule would have told of."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from compared_tasks import rows_of
from factories import make_batch, make_run, make_stream
from problems import assert_problem

RULE = {"name": "off", "kind": "batch_off", "factor": 3, "minutes": 0}


async def late_batch(client: httpx.AsyncClient, alerts: str, *, seconds: float) -> None:
    """Another run of the project, whose newest record was made so long ago."""
    rows = rows_of(noise_scale=5_000.0, num_steps=4)
    rows["wall_time"] = [datetime.now(UTC).timestamp() - seconds] * 4
    project = alerts.removeprefix("/api/v1/projects/").removesuffix("/alerts")
    batch = make_batch(
        run_id=str(uuid4()), run=make_run(project=project, task="digits"), stream=make_stream(), measurements=rows
    )
    assert (await client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)).status_code == 200


@pytest.fixture
async def alerts(shared_client: httpx.AsyncClient) -> str:
    """The address of a project's alerts, whose only run was trained in the last minutes."""
    project = f"alerts {uuid4()}"
    now = datetime.now(UTC).timestamp()
    rows = rows_of(noise_scale=5_000.0, num_steps=400)
    rows["wall_time"] = [now - 4_000 + 10 * step for step in range(400)]
    # nothing came for an hour after the middle
    rows["wall_time"][:200] = [moment - 3_600 for moment in rows["wall_time"][:200]]
    batch = make_batch(
        run_id=str(uuid4()),
        run=make_run(project=project, task="digits", num_devices=2, planned_steps=4_000),
        stream=make_stream(),
        measurements=rows,
    )
    answer = await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)
    assert answer.status_code == 200, answer.text
    return f"/api/v1/projects/{project}/alerts"


class TestRules:
    async def test_a_rule_says_all_its_numbers_is_changed_whole_and_ends(
        self, shared_client: httpx.AsyncClient, alerts: str
    ) -> None:
        made = (await shared_client.post(f"{alerts}/rules", json=RULE)).json()
        muted = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        body = {"name": "slow", "kind": "stalled", "muted_until": muted}
        changed = (await shared_client.put(f"{alerts}/rules/{made['id']}", json=body)).json()
        listed = (await shared_client.get(f"{alerts}/rules")).json()["rules"]
        ended = [(await shared_client.delete(f"{alerts}/rules/{made['id']}")).status_code for _ in range(2)]

        assert (made["factor"], made["odds"], made["minutes"], made["usd"]) == (3.0, 0.8, 0.0, None)
        assert (changed["kind"], changed["factor"], changed["minutes"]) == ("stalled", None, 15.0)
        assert listed == [changed]
        assert ended == [204, 404]

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ({"name": "x", "kind": "resolved", "factor": 2}, "does not take"),
            ({"name": "x", "kind": "batch_off", "factor": 1}, "between 1.05"),
            ({"name": "x", "kind": "batch_off", "odds": 0.2}, "between 0.5"),
            ({"name": "x", "kind": "no such"}, "Input should be"),
            ({"name": " ", "kind": "resolved"}, "blank"),
            ({"name": "x", "kind": "resolved", "muted_until": "2026-11-25T12:00:00"}, "timezone"),
        ],
    )
    async def test_a_rule_that_could_not_be_is_refused_with_the_reason(
        self, shared_client: httpx.AsyncClient, alerts: str, body: dict[str, Any], words: str
    ) -> None:
        answer = await shared_client.post(f"{alerts}/rules", json=body)

        assert answer.status_code == 422
        assert words in answer.text

    async def test_a_project_has_no_more_than_fifty(self, shared_client: httpx.AsyncClient, alerts: str) -> None:
        statuses = [(await shared_client.post(f"{alerts}/rules", json=RULE)).status_code for _ in range(51)]

        assert statuses == [201] * 50 + [422]


class TestReceivers:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"url": "https://10.0.0.1/"}, "no address of the public Internet"),
            ({"url": "http://example.com/"}, "by https"),
            ({"shape": "email"}, "email_to"),
            ({"email_to": "ada@example.com"}, "email_to"),
            ({"shape": "email", "email_to": "a@b\r\nBcc: c@d"}, "pattern"),
        ],
    )
    async def test_a_receiver_that_nothing_could_go_to_is_refused(
        self, shared_client: httpx.AsyncClient, alerts: str, changes: dict[str, str], words: str
    ) -> None:
        body = {"name": "hook", "shape": "webhook", "url": "https://example.com/"} | changes
        answer = await shared_client.post(f"{alerts}/receivers", json=body)

        assert answer.status_code == 422
        assert words in answer.text

    async def test_what_is_not_there_is_not_found(self, shared_client: httpx.AsyncClient, alerts: str) -> None:
        for method, path in (("DELETE", "receivers/{}"), ("POST", "receivers/{}/test")):
            answer = await shared_client.request(method, f"{alerts}/{path.format(uuid4())}")
            assert_problem(answer, 404, "alert-receiver-not-found")


class TestDryRun:
    async def told(self, client: httpx.AsyncClient, alerts: str, **rule: Any) -> dict[str, Any]:
        answer = await client.post(f"{alerts}/dry-run", json={"rule": {"name": "x", **rule}, "days": 7})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def test_it_says_how_often_a_rule_would_have_fired(
        self, shared_client: httpx.AsyncClient, alerts: str
    ) -> None:
        off = await self.told(shared_client, alerts, kind="batch_off", minutes=1)
        resolved = await self.told(shared_client, alerts, kind="resolved")
        stalled = await self.told(shared_client, alerts, kind="stalled", minutes=30)
        diverged = await self.told(shared_client, alerts, kind="diverged")

        assert off["text"] == "This rule would have fired once in the last week, over 1 runs."
        assert "times too small" in off["told"][0]["sentence"]
        assert (resolved["times"], stalled["times"], diverged["times"]) == (1, 1, 0)
        assert "Nothing has come for 30 minutes" in stalled["told"][0]["sentence"]

    async def test_a_dry_run_notes_and_tells_nothing(self, shared_client: httpx.AsyncClient, alerts: str) -> None:
        await self.told(shared_client, alerts, kind="resolved")

        assert (await shared_client.get(f"{alerts}/events")).json() == {"events": []}

    async def test_savings_and_flags_are_looked_at_in_the_past_too(
        self, shared_client: httpx.AsyncClient, alerts: str
    ) -> None:
        before = await self.told(shared_client, alerts, kind="saving", usd=0.01, odds=0.5)
        await shared_client.put(alerts.removesuffix("/alerts") + "/defaults", json={"device_hour_price": 2})
        after = await self.told(shared_client, alerts, kind="saving", usd=0.01, odds=0.5)

        assert before["times"] == 0
        assert after["times"] == 1
        assert "USD over the rest of the plan" in after["told"][0]["sentence"]
        assert (await self.told(shared_client, alerts, kind="ranks_alike"))["times"] == 0
        assert (await self.told(shared_client, alerts, kind="trace_cov_of_rounding"))["times"] == 0

    async def test_records_that_came_late_would_have_been_told_of(
        self, shared_client: httpx.AsyncClient, alerts: str
    ) -> None:
        found = await self.told(shared_client, alerts, kind="spool_growing", minutes=1)

        # the newest record of the fixture's run was made 10 seconds ago, that of this one half an hour ago
        assert found["times"] == 0
        await late_batch(shared_client, alerts, seconds=1_800)
        again = await self.told(shared_client, alerts, kind="spool_growing", minutes=1)
        patient = await self.told(shared_client, alerts, kind="spool_growing", minutes=60)
        assert (again["times"], patient["times"]) == (1, 0)
        assert again["told"][0]["sentence"].startswith("Records come 30 minutes after they were made")
