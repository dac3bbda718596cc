"""Databases, servers and a browser for the parts that want them, each made when a test first asks for it.

What is imported here is paid by every test, so FastAPI, SQLAlchemy, Postgres and Playwright are imported by the
fixtures that need them: a file of pure formulas starts in a third of the time (tests/docs/test_quick_tests.py).
"""

import gc
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import httpx
    from fastapi import FastAPI
    from playwright.async_api import Browser
    from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
    from xdist.remote import Producer
    from xdist.scheduler import LoadFileScheduling

    from noisescale_server.embedded import EmbeddedPostgres

TEMPLATE = "template_noisescale"

TOGETHER = ("tests/client/capture/data_parallel", "tests/client/kernels", "tests/e2e")
"""Folders whose files share processes that take seconds to start: one worker runs all of them."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "LoadFileScheduling | None":
    """With `--dist loadfile`: by file, but for the folders that stay together."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFolder(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            folder = nodeid.partition("::")[0].rpartition("/")[0]
            return folder if folder in TOGETHER else super()._split_scope(nodeid)

    return ByFolder(config, log)


LONGEST = (
    "tests/benchmarks/test_smoke.py",
    "tests/dashboard/browser/test_thousand_runs_in_a_browser.py",
    "tests/client/capture/test_long_runs.py",
    "tests/server/analysis/test_sweep_fit.py",
    "tests/e2e/",
    "tests/torture/",
    "tests/dashboard/browser/",
    "tests/client/transport/",
)
"""Files that take minutes where slow tests run. They begin first, so that no worker is left alone with one."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever wants a database starts a Postgres, which `make test-fast` leaves out; and the longest come first."""
    for item in items:
        if "postgres" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.processes)
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    return next((place for place, name in enumerate(LONGEST) if item.nodeid.startswith(name)), len(LONGEST))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported and collected stays: no search for garbage looks at it, now or later, and all are rarer."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000, 20, 10)
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs that say nothing of a folder leave their records in a temporary one, never in the home of who tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOISESCALE_DIR", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def postgres() -> "Iterator[EmbeddedPostgres]":
    """A cluster without fsync that goes with the session; never any other database.

    With NOISESCALE_TEST_DATABASE=citus a coordinator and two workers, which tests use in the same way.
    """
    import os

    if os.environ.get("NOISESCALE_TEST_DATABASE") == "citus":
        from typing import cast

        from citus_cluster import CitusCluster

        with CitusCluster.throw_away() as cluster:
            yield cast("EmbeddedPostgres", cluster)
        return
    from noisescale_server.embedded import EmbeddedPostgres

    with EmbeddedPostgres.throw_away(_quickest_folder()) as running:
        yield running


def _quickest_folder() -> Path:
    """In memory, where there is plenty: a database of 400 tables is copied there in a sixth of the time."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and shutil.disk_usage(memory).free > 12 << 30 else Path("/tmp")


@pytest.fixture(scope="session")
def template_database(postgres: "EmbeddedPostgres") -> str:
    """The name of a migrated, empty database to copy; nobody connects to it."""
    from noisescale_server.cli.commands import bring_up_to_date
    from noisescale_server.process.settings import Settings

    postgres.create_database(TEMPLATE)
    bring_up_to_date(Settings(database_url=None, migration_database_url=None), postgres.url(TEMPLATE))
    return TEMPLATE


@pytest.fixture(scope="session")
def new_database(postgres: "EmbeddedPostgres", template_database: str) -> Callable[[], str]:
    """A function that makes a fresh copy of the template and gives its URL, as the role that servers work as."""
    from noisescale_server.process import app_role

    numbers = count(1)

    def create() -> str:
        name = f"test_{next(numbers)}"
        postgres.create_database(name, template=template_database)
        return app_role.address(postgres.url(name))

    return create


@pytest.fixture
def database_url(new_database: Callable[[], str]) -> str:
    """A database of its own for a test that commits."""
    return new_database()


@pytest.fixture
def owner_url(database_url: str, postgres: "EmbeddedPostgres") -> str:
    """The same database as the owner of its tables, for a test that changes them."""
    from sqlalchemy import make_url

    return postgres.url(str(make_url(database_url).database))


@pytest.fixture(scope="session")
async def shared_engine(new_database: Callable[[], str]) -> "AsyncIterator[AsyncEngine]":
    """The engine of the tests that roll back."""
    from noisescale_server.storage.platform.engine import create_engine

    engine = create_engine(new_database())
    yield engine
    await engine.dispose()


@pytest.fixture
async def session(shared_engine: "AsyncEngine") -> "AsyncIterator[AsyncSession]":
    """A session whose work is rolled back after the test, also what it commits."""
    from sqlalchemy.ext.asyncio import AsyncSession

    async with shared_engine.connect() as connection, connection.begin() as transaction:
        async with AsyncSession(
            bind=connection, join_transaction_mode="create_savepoint", expire_on_commit=False
        ) as opened:
            yield opened
        await transaction.rollback()


@pytest.fixture(scope="session")
async def shared_app(new_database: Callable[[], str]) -> "AsyncIterator[FastAPI]":
    """One server for all tests that look only at what they made: a database of their own costs each 0.1 s."""
    from app_in_process import running_app

    async with running_app(new_database()) as created:
        yield created


@pytest.fixture(scope="session")
async def shared_client(shared_app: "FastAPI") -> "AsyncIterator[httpx.AsyncClient]":
    """HTTP into the shared server."""
    from app_in_process import client_of

    async with client_of(shared_app) as opened:
        yield opened


@pytest.fixture
async def app(database_url: str) -> "AsyncIterator[FastAPI]":
    """The whole server on a database of its own."""
    from app_in_process import running_app

    async with running_app(database_url) as created:
        yield created


@pytest.fixture
async def client(app: "FastAPI") -> "AsyncIterator[httpx.AsyncClient]":
    """HTTP straight into the app, without a socket."""
    from app_in_process import client_of

    async with client_of(app) as opened:
        yield opened


@pytest.fixture(scope="session")
async def browser() -> "AsyncIterator[Browser]":
    """One Chromium a session. A missing one is a failure, never a skip."""
    from playwright.async_api import async_playwright

    import chromium

    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=chromium.path(), args=list(chromium.FLAGS))
        yield running
        await running.close()
