"""The whole server inside the test's own process, and HTTP into it without a socket, as the user who started it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI

from known_routes import with_known_routes
from noisescale_server.app import create_app
from noisescale_server.process.settings import Settings

LOCAL_TOKEN = "ns_a_testserver_" + "t" * 43 + "_000000"
"""Key of the user who started the server; tests of access have others."""
AS_LOCAL_USER = {"Authorization": f"Bearer {LOCAL_TOKEN}"}
ADDRESS = "http://127.0.0.1"
"""A server for one user answers under this name only."""


def local_settings(database_url: str | None, **others: Any) -> Settings:
    """Settings of a server for one user, whose key the tests know."""
    # one sender for a thousand tests: how much it may read is not what they are about
    return Settings(database_url=database_url, **{"local_token": LOCAL_TOKEN, "reads_per_minute": 1_000_000, **others})


@asynccontextmanager
async def running_app(database_url: str, **others: Any) -> AsyncIterator[FastAPI]:
    """The server on this database, from its start to its end."""
    # a busy machine may take its time to open a connection; how long a request waits for one has tests of its own
    usual = {"pool_size": 4, "pool_wait_seconds": 20.0, "allow_unsafe_database": True}
    created = with_known_routes(create_app(local_settings(database_url, **{**usual, **others})))
    async with created.router.lifespan_context(created):
        yield created


def client_of(app: FastAPI, headers: dict[str, str] = AS_LOCAL_USER) -> httpx.AsyncClient:
    """HTTP into the app; what it raises comes as its answer."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=ADDRESS, headers=headers)
