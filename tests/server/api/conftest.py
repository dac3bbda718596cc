"""One server for all tests of a module that only read, or that are refused."""

from collections.abc import AsyncIterator, Callable

import httpx
import pytest
from fastapi import FastAPI

from noisescale_server.app import create_app
from noisescale_server.settings import Settings


@pytest.fixture(scope="module")
async def shared_app(new_database: Callable[[], str]) -> AsyncIterator[FastAPI]:
    created = create_app(Settings(database_url=new_database(), pool_size=4, allow_unsafe_database=True))
    async with created.router.lifespan_context(created):
        yield created


@pytest.fixture(scope="module")
async def shared_client(shared_app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=shared_app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://noisescale.test") as opened:
        yield opened
