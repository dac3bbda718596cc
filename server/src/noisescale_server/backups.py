"""Backups of the whole database by Postgres' own pg_dump and pg_restore, from the wheel with the embedded Postgres."""

import os
import subprocess
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.embedded import binaries
from noisescale_server.storage import schema_version


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
    _run(
        "pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={unfinished}", database_url=database_url
    )
    unfinished.rename(file)


def read(database_url: str, file: Path) -> None:
    """Read the backup into an empty database, whole or not at all.

    Raises:
        BackupError: When there is no such file, or pg_restore fails.
    """
    if not file.is_file():
        raise BackupError(f"there is no file {file}: name one that `noisescale backup` wrote")
    # which role may do what is set anew: those of the backup's server need not be there
    options = ("--no-owner", "--no-privileges", "--single-transaction")
    _run("pg_restore", *options, str(file), database_url=database_url)


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


def _run(program: str, *arguments: str, database_url: str) -> None:
    url = make_url(database_url).set(drivername="postgresql")
    # not in the arguments, which every user of the machine can list
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    if url.password is not None:
        environment["PGPASSWORD"] = str(url.password)
    address = _without_password(url).render_as_string()
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
