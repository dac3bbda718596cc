"""One server for all tests of a module."""

from collections.abc import AsyncIterator, Callable

import httpx
import pytest
from fastapi import FastAPI

from app_in_process import client_of, running_app


@pytest.fixture(scope="module")
async def shared_app(new_database: Callable[[], str]) -> AsyncIterator[FastAPI]:
    async with running_app(new_database()) as created:
        yield created


@pytest.fixture(scope="module")
async def shared_client(shared_app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(shared_app) as opened:
        yield opened
