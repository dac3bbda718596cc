"""Backups of the whole database by Postgres' own pg_dump and pg_restore, from the wheel with the embedded Postgres."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Final

from sqlalchemy import URL, make_url, text
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.embedded import binaries
from noisescale_server.storage.platform import placement, schema_version
from noisescale_server.storage.platform.engine import create_engine

NEWER_SETTINGS: Final = (b"SET transaction_timeout = 0;\n",)
"""Lines of pg_restore 18 that a Postgres 15 or 16 does not know."""
MOST_LINES_OF_SETTINGS: Final = 40
LOCK_WAIT: Final = "60s"


class BackupError(RuntimeError):
    """A backup could not be written or read; says why, and the way out."""


def write(database_url: str, file: Path) -> None:
    """Write the database to the file as it is at one moment, while jobs go on sending.

    It appears under its name when it is complete.

    Raises:
        BackupError: When the file exists, or pg_dump fails.
    """
    if file.exists():
        raise BackupError(f"{file} exists already: choose another name, or remove it")
    unfinished = file.with_name(f"{file.name}.unfinished")
    asyncio.run(_dump(database_url, unfinished))
    unfinished.rename(file)


async def _dump(database_url: str, file: Path) -> None:
    options = ("--format=custom", "--no-owner", "--no-privileges", f"--file={file}")
    async with _writers_wait_on_several_nodes(database_url):
        await asyncio.to_thread(_run, "pg_dump", *options, database_url=database_url)


@asynccontextmanager
async def _writers_wait_on_several_nodes(database_url: str) -> AsyncIterator[None]:
    """While it lasts, batches wait where the database is on several nodes: each has a moment of its own to be read at.

    Jobs are answered 503 meanwhile, keep what they have, and send it again.
    """
    engine = create_engine(database_url, pool_size=1)
    try:
        async with AsyncSession(engine) as session, session.begin():
            if await placement.is_distributed(session):
                await session.execute(text(f"SET LOCAL statement_timeout = '{LOCK_WAIT}'"))
                # every batch locks the row of its stream, or creates it
                await session.execute(text("LOCK TABLE stream IN EXCLUSIVE MODE"))
            yield
    finally:
        await engine.dispose()


def read(database_url: str, file: Path) -> None:
    """Read the backup into an empty database, whole or not at all.

    Raises:
        BackupError: When there is no such file, or pg_restore fails.
    """
    if not file.is_file():
        raise BackupError(f"there is no file {file}: name one that `noisescale backup` wrote")
    # which role may do what is set anew: those of the backup's server need not be there
    options = ("--no-owner", "--no-privileges")
    with tempfile.TemporaryFile() as said:
        reading = subprocess.Popen(  # noqa: S603
            [binaries.locate().program("pg_restore"), *options, "--file=-", str(file)],
            stdout=subprocess.PIPE,
            stderr=said,
        )
        assert reading.stdout is not None, "it is a pipe"
        environment, address = _told(database_url)
        psql = [binaries.locate().program("psql"), "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"]
        with tempfile.TemporaryFile() as complaint:
            writing = subprocess.Popen(  # noqa: S603
                [*psql, f"--dbname={address}"],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=complaint,
            )
            assert writing.stdin is not None, "it is a pipe"
            _copied(reading, reading.stdout, writing.stdin)
            # what ends first is why: the other one then finds its pipe closed
            if writing.wait() == 0:
                _check("pg_restore", reading.wait(), said)
            _check("psql", writing.wait(), complaint)


def _copied(reading: "subprocess.Popen[bytes]", source: IO[bytes], target: IO[bytes]) -> None:
    """Hand all of it over in one transaction; without its COMMIT nothing stays."""
    with source, suppress(BrokenPipeError), target:
        target.write(b"BEGIN;\n")
        for _ in range(MOST_LINES_OF_SETTINGS):
            line = source.readline()
            target.write(b"" if line in NEWER_SETTINGS else line)
        shutil.copyfileobj(source, target, 1 << 20)
        is_whole = reading.wait() == 0
        target.write(b"COMMIT;\n" if is_whole else b"ROLLBACK;\n")


def _check(program: str, exit_code: int, said: IO[bytes]) -> None:
    if exit_code == 0:
        return
    said.seek(0)
    why = said.read().decode(errors="replace").strip()[-2000:]
    raise BackupError(f"{program} ended with exit code {exit_code}: {why}")


async def refuse_unless_empty(session: AsyncSession) -> None:
    """Raise where a migration has run.

    Raises:
        BackupError: When the database has tables of ours: a backup must not mix with what is there.
    """
    if await schema_version.revision(session) is not None:
        raise BackupError(
            "the database has tables already: restore into an empty one, a new NOISESCALE_DATA_DIR or "
            "a new database in NOISESCALE_DATABASE_URL"
        )


def _told(database_url: str) -> tuple[dict[str, str], str]:
    """The environment and the address by which a program of Postgres' gets into the database."""
    url = make_url(database_url).set(drivername="postgresql")
    # not in the arguments, which every user of the machine can list
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    if url.password is not None:
        environment["PGPASSWORD"] = str(url.password)
    return environment, _without_password(url).render_as_string()


def _run(program: str, *arguments: str, database_url: str) -> None:
    environment, address = _told(database_url)
    finished = subprocess.run(  # noqa: S603
        [binaries.locate().program(program), *arguments, f"--dbname={address}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise BackupError(f"{program} ended with exit code {finished.returncode}: {finished.stderr.strip()[-2000:]}")


def _without_password(url: URL) -> URL:
    # URL.set takes None for "as it is"
    return URL.create(url.drivername, url.username, None, url.host, url.port, url.database, url.query)
