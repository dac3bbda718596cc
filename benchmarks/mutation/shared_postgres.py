"""A plugin of pytest that hands out one Postgres to the tests of all mutants.

To make, migrate and stop a cluster takes longer than most of the tests. Each session has databases of its own. Nothing
of the server is imported: it is the code under test.
"""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import asyncpg
import pytest

URL: Final = "NOISESCALE_POSTGRES_OF_MUTANTS"
TEMPLATE: Final = "template_of_mutants"
DRIVER: Final = "postgresql+asyncpg"


class SharedPostgres:
    """What tests use of `EmbeddedPostgres`."""

    def __init__(self) -> None:
        self._url = os.environ[URL]
        self._suffix = f"_of_{os.getpid()}"
        self._made: list[str] = []

    def url(self, database: str = "noisescale", driver: str = DRIVER) -> str:
        """The URL of one database of this session."""
        address = self._url.replace("/postgres?", f"/{self._own(database)}?")
        return address.replace(DRIVER, driver, 1)

    def create_database(self, name: str, template: str | None = None) -> None:
        """Create a database, as a copy of the template if given."""
        self._made.append(self._own(name))
        self._execute(f'CREATE DATABASE "{self._made[-1]}"' + (f' TEMPLATE "{template}"' if template else ""))

    def drop_all(self) -> None:
        """Drop what this session has made."""
        for name in self._made:
            self._execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def _own(self, name: str) -> str:
        """The same name with the session behind it, once: a test may ask for the address of what it has found."""
        return f"{name.removesuffix(self._suffix)}{self._suffix}"

    def _execute(self, statement: str) -> None:
        async def execute() -> None:
            connection = await asyncpg.connect(self._url.replace(DRIVER, "postgresql", 1))
            try:
                await connection.execute(statement)
            finally:
                await connection.close()

        # a loop of the tests may be there in this thread
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, execute()).result()


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Any:
    """Hand out the shared cluster in place of a new one."""
    if fixturedef.argname == "postgres":
        value: Any = SharedPostgres()
        fixturedef.addfinalizer(value.drop_all)
    elif fixturedef.argname == "template_database":
        value = TEMPLATE
    else:
        return None
    fixturedef.cached_result = (value, fixturedef.cache_key(request), None)
    return value
