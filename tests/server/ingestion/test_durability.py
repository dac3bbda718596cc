"""No record is acknowledged on a Postgres that may forget in a crash what it has committed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import asyncpg
import httpx
import pytest

from app_in_process import ADDRESS, AS_LOCAL_USER, local_settings
from factories import make_batch
from noisescale_server.app import create_app
from noisescale_server.services.platform.errors import DatabaseNotDurable
from noisescale_server.services.platform.health import refuse_unsafe
from problems import assert_problem


@asynccontextmanager
async def client_of_careful_server(database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A server that asks for durability, as all do but those of tests."""
    created = create_app(local_settings(database_url=database_url))
    transport = httpx.ASGITransport(created, raise_app_exceptions=False)
    async with (
        created.router.lifespan_context(created),
        httpx.AsyncClient(transport=transport, base_url=ADDRESS, headers=AS_LOCAL_USER) as client,
    ):
        yield client


async def test_a_batch_is_refused_and_readyz_is_red_where_commits_may_be_lost(database_url: str) -> None:
    async with client_of_careful_server(database_url) as client:
        batch = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=make_batch())
        ready = await client.get("/readyz")

    for answer in (batch, ready):
        assert_problem(answer, 503, "database-not-durable")
        assert "fsync=off, full_page_writes=off, synchronous_commit=off" in answer.json()["detail"]
    assert await num_streams(database_url) == 0


async def num_streams(database_url: str) -> int:
    connection = await asyncpg.connect(database_url.replace("postgresql+asyncpg", "postgresql"))
    try:
        return await connection.fetchval("SELECT count(*) FROM stream")
    finally:
        await connection.close()


async def test_the_setting_of_test_clusters_lets_batches_in(shared_client: httpx.AsyncClient) -> None:
    answer = await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=make_batch())

    assert answer.status_code == 200


@pytest.mark.parametrize("name", ["fsync", "full_page_writes", "synchronous_commit"])
def test_each_setting_alone_is_enough_to_refuse(name: str) -> None:
    with pytest.raises(DatabaseNotDurable, match=f"has {name}=off and may lose"):
        refuse_unsafe([name])
