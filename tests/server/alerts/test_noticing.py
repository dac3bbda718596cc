"""Rules look at stored runs: each event is noticed once, owed to every receiver, and told until it is taken."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text, update

from app_in_process import client_of, running_app
from noisescale_server.process.alerting import forget_old
from noisescale_server.services.alerts import delivering, watch
from noisescale_server.services.alerts.delivering import AttemptOutcome, Post
from noisescale_server.storage.alerts import outbox, rows
from noisescale_server.storage.platform.tables import Run, Stream
from stored_runs import resolved, store_run

ALERTS = "/api/v1/projects/demo/alerts"
HOOK = {"name": "hook", "shape": "webhook", "url": "https://hooks.example.com/secret-part"}


class Receiver:
    """Takes messages after it has answered otherwise a few times."""

    def __init__(self, *first: AttemptOutcome) -> None:
        self.first, self.seen = list(first), []

    async def send(self, url: str, body: bytes, headers: dict[str, str]) -> AttemptOutcome:
        self.seen.append((url, body, headers))
        return self.first.pop(0) if self.first else AttemptOutcome("answered 200", 200)


class Clock:
    def __init__(self) -> None:
        # ahead of the server's own deliveries, which then find nothing due
        self.now = datetime.now(UTC) + timedelta(days=365)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture(scope="module")
async def quiet_app(new_database: Callable[[], str]) -> AsyncIterator[FastAPI]:
    """A server that does not look by itself: it would tell the tests' receivers first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("noisescale_server.process.alerting.SECONDS_BETWEEN_LOOKS", 3_600.0)
        patch.setattr("noisescale_server.process.alerting.SECONDS_BETWEEN_DELIVERIES", 3_600.0)
        async with running_app(new_database()) as created:
            yield created


@pytest.fixture
async def app(quiet_app: FastAPI) -> FastAPI:
    """The same without what the test before has left: a look is at every project's runs."""
    async with quiet_app.state.sessions.begin() as session:
        await session.execute(text("DELETE FROM project"))
    return quiet_app


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as opened:
        yield opened


async def noticed(app: FastAPI, now: datetime) -> int:
    async with app.state.sessions.begin() as session:
        return await watch.look(session, now)


async def diverged_run(app: FastAPI, now: datetime, **columns: Any) -> UUID:
    return await store_run(app, name="big", updated_at=now, **(resolved() | {"loss_broken_since": 800} | columns))


async def posted(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post(f"{ALERTS}{path}", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def events(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.get(f"{ALERTS}/events")).json()["events"]
    return found


async def test_what_lasts_is_noticed_once_and_told_to_every_receiver(app: FastAPI, client: httpx.AsyncClient) -> None:
    clock, receiver = Clock(), Receiver()
    run_id = await diverged_run(app, clock.now)
    await posted(client, "/rules", {"name": "NaN", "kind": "diverged"})
    for name in ("one", "two"):
        await posted(client, "/receivers", HOOK | {"name": name})

    counts = [await noticed(app, clock.now + timedelta(minutes=minute)) for minute in range(3)]
    clock.now += timedelta(minutes=5)
    tried = [await delivering.deliver_due(app.state.sessions, Post(receiver.send, b"p"), clock) for _ in range(3)]

    (event,) = await events(client)
    assert (counts, tried) == ([1, 0, 0], [2, 0, 0])
    assert (event["run_id"], event["kind"]) == (str(run_id), "diverged")
    assert event["sentence"] == "Loss or gradients are not finite since step 800."
    assert [(one["receiver"], one["state"]) for one in event["deliveries"]] == [
        ("one", "delivered"),
        ("two", "delivered"),
    ]
    assert {headers["webhook-id"] for _, _, headers in receiver.seen} == {event["id"]}


async def test_a_receiver_that_fails_is_tried_again_under_the_same_id_and_never_after_it_has_taken_it(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    clock = Clock()
    receiver = Receiver(
        AttemptOutcome("no answer"),
        AttemptOutcome("answered 503", 503, retry_after=120),
        AttemptOutcome("answered 302", 302),
    )
    await diverged_run(app, clock.now)
    await posted(client, "/rules", {"name": "NaN", "kind": "diverged"})
    await posted(client, "/receivers", HOOK)
    await noticed(app, clock.now)
    moments = []
    for _ in range(3_600):
        clock.now += timedelta(seconds=1)
        if await delivering.deliver_due(app.state.sessions, Post(receiver.send, b"p", None, lambda: 0.5), clock):
            moments.append(clock.now)
        if len(moments) == 4 and clock.now - moments[-1] > timedelta(seconds=30):
            break

    (event,) = await events(client)
    waits = [(after - before).total_seconds() for before, after in pairwise(moments)]
    assert waits == [2, 121, 5]
    assert event["deliveries"][0]["state"] == "delivered"
    assert event["deliveries"][0]["num_attempts"] == 4
    assert len({headers["webhook-id"] for _, _, headers in receiver.seen}) == 1


async def test_what_nobody_takes_for_a_day_is_said_to_be_undelivered(app: FastAPI, client: httpx.AsyncClient) -> None:
    clock, receiver = Clock(), Receiver(*[AttemptOutcome("answered 500", 500)] * 500)
    began = clock.now
    await diverged_run(app, clock.now)
    await posted(client, "/rules", {"name": "NaN", "kind": "diverged"})
    await posted(client, "/receivers", HOOK)
    await noticed(app, clock.now)
    while clock.now < began + timedelta(hours=27):
        clock.now += timedelta(minutes=15)
        await delivering.deliver_due(app.state.sessions, Post(receiver.send, b"p"), clock)

    (event,) = await events(client)
    assert event["deliveries"][0]["state"] == "undelivered"
    assert event["deliveries"][0]["answer"] == "given up: answered 500"
    assert 20 < len(receiver.seen) < 100


async def test_a_delivery_that_a_dead_server_held_is_tried_by_another_one(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    clock, receiver = Clock(), Receiver()
    await diverged_run(app, clock.now)
    await posted(client, "/rules", {"name": "NaN", "kind": "diverged"})
    await posted(client, "/receivers", HOOK)
    await noticed(app, clock.now)
    async with app.state.sessions.begin() as session:
        held = await outbox.claim(session, now=clock.now, until=clock.now + delivering.LEASE, limit=9)
    post = Post(receiver.send, b"p")

    while_held = await delivering.deliver_due(app.state.sessions, post, clock)
    clock.now += delivering.LEASE
    afterwards = await delivering.deliver_due(app.state.sessions, post, clock)
    async with app.state.sessions.begin() as session:
        # the dead server comes back, too late to say anything
        await outbox.settle(session, held[0], state="waiting", answer="late", due_at=clock.now, now=clock.now)

    assert (len(held), while_held, afterwards) == (1, 0, 1)
    assert (await events(client))[0]["deliveries"][0]["state"] == "delivered"


async def test_a_muted_rule_notes_and_tells_nobody(app: FastAPI, client: httpx.AsyncClient) -> None:
    clock = Clock()
    await diverged_run(app, clock.now)
    until = (clock.now + timedelta(hours=1)).isoformat()
    await posted(client, "/rules", {"name": "NaN", "kind": "diverged", "muted_until": until})
    await posted(client, "/receivers", HOOK)

    await noticed(app, clock.now)

    (event,) = await events(client)
    assert (event["is_muted"], event["deliveries"]) == (True, [])


async def test_a_run_of_another_project_or_archived_is_not_watched(app: FastAPI, client: httpx.AsyncClient) -> None:
    clock = Clock()
    await diverged_run(app, clock.now, archived=True)
    await store_run(app, project="other", updated_at=clock.now, loss_broken_since=3)
    await posted(client, "/rules", {"name": "NaN", "kind": "diverged"})

    assert await noticed(app, clock.now) == 0


async def test_savings_are_of_the_rest_of_the_plan_at_the_projects_price(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    clock = Clock()
    run_id = await store_run(app, name="big", **resolved())
    stream, started = UUID(int=5), clock.now - timedelta(seconds=900)
    planned = {"planned_steps": 4_501, "num_devices": 8, "decision_probability": 0.9, "decision_saving": 0.5}
    async with app.state.sessions.begin() as session:
        session.add(Stream(run_id=run_id, id=stream, started_at=started, first_step=0))
        changed = {"newest_stream_id": stream, "newest_started_at": started}
        changed |= {"updated_at": clock.now, "heard_at": clock.now}
        await session.execute(update(Run).where(Run.id == run_id).values(**planned, **changed))
    await posted(client, "/rules", {"name": "money", "kind": "saving", "usd": 7.9})

    without_a_price = await noticed(app, clock.now)
    await client.put("/api/v1/projects/demo/defaults", json={"device_hour_price": 2})
    with_one = await noticed(app, clock.now)

    # a second a step, 3,600 steps on 8 devices of 2 USD: 16 USD, of which half
    assert (without_a_price, with_one) == (0, 1)
    assert "8.00 USD" in (await events(client))[0]["sentence"]


async def test_a_test_goes_to_one_receiver_and_a_deleted_one_is_given_up(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    clock, receiver = Clock(), Receiver()
    await store_run(app)
    one, two = [await posted(client, "/receivers", HOOK | {"name": name}) for name in ("one", "two")]
    for made in (one, two):
        assert (await client.post(f"{ALERTS}/receivers/{made['id']}/test")).status_code == 201
    assert (await client.delete(f"{ALERTS}/receivers/{two['id']}")).status_code == 204

    await delivering.deliver_due(app.state.sessions, Post(receiver.send, app.state.pepper), clock)

    states = {event["deliveries"][0]["receiver"]: event["deliveries"][0]["state"] for event in await events(client)}
    assert states == {"one": "delivered", "two": "undelivered"}
    assert len(receiver.seen) == 1
    assert one["secret"].startswith("whsec_")
    listed = await client.get(f"{ALERTS}/receivers")
    assert "secret-part" not in listed.text
    assert listed.json()["receivers"][0]["host"] == "hooks.example.com"


async def test_a_rule_that_has_become_another_one_tells_of_what_it_now_watches_for(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    clock = Clock()
    await diverged_run(app, clock.now)
    rule = await posted(client, "/rules", {"name": "first", "kind": "resolved"})
    await noticed(app, clock.now)

    await client.put(f"{ALERTS}/rules/{rule['id']}", json={"name": "second", "kind": "diverged"})
    counts = [await noticed(app, clock.now + timedelta(minutes=minute)) for minute in (1, 2)]

    assert counts == [1, 0]
    assert [event["kind"] for event in await events(client)] == ["diverged", "resolved"]


async def test_a_rule_that_is_deleted_while_servers_look_takes_no_other_rules_events_along(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    clock = Clock()
    await diverged_run(app, clock.now)
    rule = await posted(client, "/rules", {"name": "goes", "kind": "resolved"})
    await posted(client, "/rules", {"name": "stays", "kind": "diverged"})
    async with app.state.sessions.begin() as session:
        deleting = None
        original = rows.episodes_of

        async def deleted_meanwhile(*asked: Any) -> Any:
            nonlocal deleting
            deleting = asyncio.create_task(client.delete(f"{ALERTS}/rules/{rule['id']}"))
            await asyncio.sleep(0.3)
            return await original(*asked)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(watch.rows, "episodes_of", deleted_meanwhile)
            count = await watch.look(session, clock.now)

    assert deleting is not None
    assert (await deleting).status_code == 204
    assert count == 2
    assert {event["rule"] for event in await events(client)} == {"goes", "stays"}


async def test_two_servers_that_look_at_once_tell_of_an_event_once(app: FastAPI, client: httpx.AsyncClient) -> None:
    clock = Clock()
    for _ in range(5):
        await diverged_run(app, clock.now)
    await posted(client, "/rules", {"name": "NaN", "kind": "diverged"})
    await posted(client, "/receivers", HOOK)

    for _ in range(3):
        await asyncio.gather(*(noticed(app, clock.now) for _ in range(4)))

    found = await events(client)
    assert len(found) == 5
    assert [len(event["deliveries"]) for event in found] == [1] * 5


async def test_an_imported_run_is_history_and_nobody_is_woken_by_it(app: FastAPI, client: httpx.AsyncClient) -> None:
    clock = Clock()
    await diverged_run(app, clock.now, config={"imported_from": {"importer": "mlflow"}})
    for kind in ("diverged", "stalled", "spool_growing"):
        await posted(client, "/rules", {"name": kind, "kind": kind})

    assert await noticed(app, clock.now + timedelta(hours=1)) == 0


async def test_silence_of_seven_days_is_noticed_by_a_rule_that_waits_for_seven(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    clock = Clock()
    await store_run(app, updated_at=clock.now)
    await posted(client, "/rules", {"name": "long", "kind": "stalled", "minutes": 10_080})

    counts = [await noticed(app, clock.now + timedelta(days=7, minutes=minute)) for minute in (-1, 1, 2)]

    assert counts == [0, 1, 0]


def test_a_run_whose_devices_cost_nothing_saves_nothing_at_the_projects_price() -> None:
    row = {
        "usd_per_device_hour": 0.0, "decision_saving": 0.5, "num_devices": 8, "newest_first_step": 0,
        "newest_started_at": datetime(2026, 1, 1, tzinfo=UTC), "updated_at": datetime(2026, 1, 2, tzinfo=UTC),
        "latest_step": 900, "planned_steps": 4_501,
    }  # fmt: skip

    assert watch._usd_saving(row, 2.0) == 0.0


@pytest.mark.parametrize(("devices", "saves"), [(1, False), (2, True), (8, True)])
def test_a_run_on_one_device_has_no_share_of_money_to_save(devices: int, saves: bool) -> None:
    row = {
        "usd_per_device_hour": 3.0, "decision_saving": 0.5, "num_devices": devices, "newest_first_step": 0,
        "newest_started_at": datetime(2026, 1, 1, tzinfo=UTC), "updated_at": datetime(2026, 1, 2, tzinfo=UTC),
        "latest_step": 900, "planned_steps": 4_501,
    }  # fmt: skip

    assert (watch._usd_saving(row, 2.0) is not None) == saves


async def test_a_message_that_a_fault_of_ours_keeps_back_is_given_up_and_said(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    clock = Clock()
    await diverged_run(app, clock.now)
    await posted(client, "/rules", {"name": "NaN", "kind": "diverged"})
    await posted(client, "/receivers", HOOK)
    await noticed(app, clock.now)

    async def breaks(url: str, body: bytes, headers: dict[str, str]) -> AttemptOutcome:
        raise RuntimeError("nobody has thought of this")

    for _ in range(30):
        await delivering.deliver_due(app.state.sessions, Post(breaks, b"p"), clock)
        clock.now += timedelta(hours=1)

    (event,) = await events(client)
    assert event["deliveries"][0]["state"] == "undelivered"
    assert "a fault of the server" in event["deliveries"][0]["answer"]


async def test_events_of_one_moment_are_all_on_some_page(app: FastAPI, client: httpx.AsyncClient) -> None:
    clock = Clock()
    for _ in range(7):
        await diverged_run(app, clock.now)
    await posted(client, "/rules", {"name": "NaN", "kind": "diverged"})
    await noticed(app, clock.now)

    seen: list[str] = []
    query: dict[str, Any] = {"limit": 3}
    while page := (await client.get(f"{ALERTS}/events", params=query)).json()["events"]:
        seen += [event["id"] for event in page]
        query |= {"before": page[-1]["happened_at"], "before_id": page[-1]["id"]}

    assert len(seen) == len(set(seen)) == 7


async def test_old_events_are_deleted_and_those_still_to_be_sent_are_not(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    clock = Clock()
    await diverged_run(app, clock.now)
    await posted(client, "/rules", {"name": "NaN", "kind": "diverged"})
    await noticed(app, clock.now)
    await posted(client, "/receivers", HOOK)
    await posted(client, "/rules", {"name": "seen", "kind": "resolved"})
    await noticed(app, clock.now)
    kept = timedelta(days=30)

    early = await forget_old(app.state.sessions, clock.now + kept - timedelta(hours=1), kept)
    late = await forget_old(app.state.sessions, clock.now + kept + timedelta(hours=1), kept)

    assert (early, late) == (0, 1)
    assert [event["kind"] for event in await events(client)] == ["resolved"]
    # and it is not noticed a second time
    assert await noticed(app, clock.now + timedelta(minutes=1)) == 0


def test_waits_double_up_to_an_hour_and_a_receivers_own_word_counts_up_to_an_hour() -> None:
    dice = random.Random(3).random
    for attempts in range(1, 40):
        waited = delivering.wait_after(attempts, AttemptOutcome("", 500), dice).total_seconds()
        assert 1 <= waited <= 1 + min(2**attempts, 3_600)
    for said, least in ((-5.0, 1), (30.0, 30), (1e99, 3_600), (float("inf"), 3_600)):
        waited = delivering.wait_after(1, AttemptOutcome("", 429, retry_after=said), dice).total_seconds()
        assert least <= waited <= least + 1
    assert delivering.wait_after(1, AttemptOutcome("", 200, retry_after=900), dice).total_seconds() < 10
