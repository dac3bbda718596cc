"""10,000 events with receivers that fail, hang, redirect and answer twice: each once, or said to be undelivered."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from app_in_process import running_app
from hostile_urls import NAMES
from noisescale_server.services.alerts import delivering
from noisescale_server.services.alerts.delivering import AttemptOutcome, Post
from noisescale_server.storage.alerts import outbox, rows
from stored_runs import store_run

EVENTS = {"fine": 2_500, "flaky": 2_500, "redirecting": 2_500, "twice": 2_500, "never": 300, "hostile": 300}
"""By the receiver that they are for."""
HOURS = 40
BEGAN = datetime(2030, 1, 1, tzinfo=UTC)

pytestmark = [pytest.mark.slow, pytest.mark.processes]


class Clock:
    def __init__(self) -> None:
        self.now = BEGAN

    def __call__(self) -> datetime:
        return self.now


class Receivers:
    """Answers in simulated time, and writes down what each has taken."""

    def __init__(self) -> None:
        self.dice = random.Random(11)
        self.taken: Counter[tuple[str, str]] = Counter()
        self.forbidden = 0
        self.guarded = delivering.sender((), resolve=self.resolve, client=self.refuse)

    async def resolve(self, host: str, port: int) -> list[str]:
        return NAMES["two-faces.example.com"]

    def refuse(self) -> None:
        self.forbidden += 1
        raise AssertionError("a connection to a forbidden address")

    async def send(self, url: str, body: bytes, headers: dict[str, str]) -> AttemptOutcome:
        shape = url.removeprefix("https://").partition(".")[0]
        if shape == "hostile":
            return await self.guarded(url, body, headers)
        if shape == "never":
            return AttemptOutcome("no answer within 10 s")
        if shape == "redirecting" and self.dice.random() < 0.7:
            return AttemptOutcome("answered 302", 302)
        if shape == "flaky" and self.dice.random() < 0.6:
            return self.dice.choice(
                [
                    AttemptOutcome("no answer within 10 s"),
                    AttemptOutcome("answered 500", 500),
                    AttemptOutcome("", 429, retry_after=60),
                ]
            )
        self.taken[shape, headers["webhook-id"]] += 1
        return AttemptOutcome("answered 200", 200)


async def test_each_event_is_taken_once_or_said_to_be_undelivered(
    new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noisescale_server.process.alerting.SECONDS_BETWEEN_DELIVERIES", 1e6)
    receivers, clock = Receivers(), Clock()
    async with running_app(new_database()) as app:
        await store_run(app)
        async with app.state.sessions.begin() as session:
            project_id: UUID = (await session.execute(text("SELECT id FROM project"))).scalar_one()
            for shape, number in EVENTS.items():
                url = f"https://{shape}.example.com/"
                to = await rows.add_receiver(session, project_id, name=shape, shape="webhook", url=url)
                for _ in range(number):
                    told = {"rule_name": "r", "sentence": "told", "happened_at": clock.now, "kind": "diverged"}
                    event_id = await rows.add_event(session, project_id=project_id, **told)
                    assert event_id is not None
                    await outbox.owe(session, event_id, project_id, now=clock.now, receiver_id=to.id)
        post = Post(receivers.send, b"pepper", None, receivers.dice.random)
        # all at once where much is due; what one server does in a second is not what is tested
        monkeypatch.setattr(outbox, "AT_ONCE_EACH", 500)
        while clock.now < BEGAN + timedelta(hours=HOURS):
            if not await delivering.deliver_due(app.state.sessions, post, clock, at_once=1_000):
                clock.now += timedelta(minutes=10)
        async with app.state.sessions() as session:
            query = text("SELECT receiver_name, state, count(*) FROM alert_delivery GROUP BY 1, 2")
            states = {(name, state): number for name, state, number in await session.execute(query)}

    assert states == {
        (shape, "undelivered" if shape in ("never", "hostile") else "delivered"): number
        for shape, number in EVENTS.items()
    }
    assert set(receivers.taken.values()) == {1}
    assert len(receivers.taken) == 10_000
    assert receivers.forbidden == 0
