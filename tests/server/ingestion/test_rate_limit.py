"""A sender over its share waits; the others do not notice."""

from collections.abc import AsyncIterator, Callable
from uuid import uuid4

import httpx
import pytest

from factories import make_batch
from noisescale_server.app import create_app
from noisescale_server.settings import Settings
from problems import assert_problem


@pytest.fixture(scope="module")
async def client(new_database: Callable[[], str]) -> AsyncIterator[httpx.AsyncClient]:
    """HTTP into a server that takes three batches a minute from each sender."""
    created = create_app(Settings(database_url=new_database(), allow_unsafe_database=True, batches_per_minute=3))
    async with (
        created.router.lifespan_context(created),
        httpx.AsyncClient(transport=httpx.ASGITransport(created), base_url="http://noisescale.test") as opened,
    ):
        yield opened


async def send(client: httpx.AsyncClient, key: str | None) -> httpx.Response:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return await client.post(f"/api/v1/streams/{uuid4()}/batches", json=make_batch(), headers=headers)


@pytest.mark.parametrize("key", [None, "first"])
async def test_one_batch_too_many_is_429_with_the_seconds_to_wait(client: httpx.AsyncClient, key: str | None) -> None:
    answers = [await send(client, key) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert_problem(answers[-1], 429, "too-many-batches")
    assert answers[-1].json()["limit_per_minute"] == 3
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60


async def test_another_key_is_not_held_back(client: httpx.AsyncClient) -> None:
    exhausted = [await send(client, "second") for _ in range(4)]

    answer = await send(client, "third")

    assert (exhausted[-1].status_code, answer.status_code) == (429, 200)


async def test_reading_goes_on(client: httpx.AsyncClient) -> None:
    for _ in range(4):
        await send(client, "fourth")

    answer = await client.get("/api/v1/runs", headers={"Authorization": "Bearer fourth"})

    assert answer.status_code == 200
