"""A sender over its share waits; the others do not notice."""

import gzip
import threading
import time
from collections.abc import AsyncIterator, Callable
from uuid import uuid4

import httpx
import pytest

from app_in_process import client_of, running_app
from factories import make_batch
from keys_of_tests import new_key
from noisescale_server.api.access.rates import BatchRate
from noisescale_server.api.platform.refusals import TooManyBatches
from problems import assert_problem

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
async def client(new_database: Callable[[], str]) -> AsyncIterator[httpx.AsyncClient]:
    """HTTP into a server that takes three batches a minute from each sender."""
    async with running_app(new_database(), batches_per_minute=3) as app, client_of(app) as opened:
        yield opened


async def send(client: httpx.AsyncClient, key: str | None) -> httpx.Response:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return await client.post(f"/api/v1/streams/{uuid4()}/batches", json=make_batch(), headers=headers)


@pytest.mark.parametrize("has_key", [False, True])
async def test_one_batch_too_many_is_429_with_the_seconds_to_wait(client: httpx.AsyncClient, has_key: bool) -> None:
    key = await new_key(client, "write") if has_key else None

    answers = [await send(client, key) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert_problem(answers[-1], 429, "too-many-batches")
    assert answers[-1].json()["limit_per_minute"] == 3
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60


async def test_another_key_is_not_held_back(client: httpx.AsyncClient) -> None:
    first, second = await new_key(client, "write"), await new_key(client, "write")
    exhausted = [await send(client, first) for _ in range(4)]

    answer = await send(client, second)

    assert (exhausted[-1].status_code, answer.status_code) == (429, 200)


async def test_bombs_soon_use_up_the_share_and_are_told_that_they_are_too_large_before(
    new_database: Callable[[], str],
) -> None:
    bomb = {"content": gzip.compress(bytes(4 << 20)), "headers": {"Content-Encoding": "gzip"} | JSON}
    async with running_app(new_database(), batches_per_minute=250) as app, client_of(app) as client:
        path = f"/api/v1/streams/{uuid4()}/batches"
        began = time.monotonic()
        statuses = [(await client.post(path, **bomb)).status_code for _ in range(60)]
        given_back = (time.monotonic() - began) * 250 / 60

    # each costs 101; the third is owed, and a slow machine is given back some of its share meanwhile
    assert statuses[:3] == [413] * 3
    assert set(statuses) == {413, 429}
    assert statuses.count(413) <= 3 + given_back / 101


def test_a_minutes_batches_may_come_at_once_and_then_they_come_back_at_an_even_pace() -> None:
    seconds = iter([0.0] * 601 + [0.1] * 2)
    rate = BatchRate(600, lambda: next(seconds))
    for _ in range(600):
        rate.count("a job that was cut off for long")

    with pytest.raises(TooManyBatches, match="more than 600 batches a minute from one sender: try again in 1 s"):
        rate.count("a job that was cut off for long")
    rate.count("another")
    rate.count("a job that was cut off for long")


def test_no_thread_is_started_for_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop would wait until it runs, and everybody else with it."""
    started: list[threading.Thread] = []
    monkeypatch.setattr(threading.Thread, "start", lambda thread: started.append(thread))
    rate = BatchRate(60_000)

    for index in range(100):
        rate.count(f"sender {index % 7}")

    assert started == []


async def test_reading_goes_on(client: httpx.AsyncClient) -> None:
    key = await new_key(client, "admin")
    for _ in range(4):
        await send(client, key)

    answer = await client.get("/api/v1/runs", headers={"Authorization": f"Bearer {key}"})

    assert answer.status_code == 200
