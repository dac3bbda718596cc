"""The whole server inside the test's own process, and HTTP into it without a socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI

from noisescale_server.app import create_app
from noisescale_server.settings import Settings


@asynccontextmanager
async def running_app(database_url: str) -> AsyncIterator[FastAPI]:
    """The server on this database, from its start to its end."""
    created = create_app(Settings(database_url=database_url, pool_size=4, allow_unsafe_database=True))
    async with created.router.lifespan_context(created):
        yield created


def client_of(app: FastAPI) -> httpx.AsyncClient:
    """HTTP into the app; what it raises comes as its answer."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://noisescale.test")
