"""The Postgres of all mutants, in a process of its own: the one that forks the tests must not have imported the server.

Run as a program it starts a cluster, migrates a database to copy, prints its address and waits for the end of its
input.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def running_postgres() -> Iterator[str]:
    """The URL of its database `postgres`."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


if __name__ == "__main__":
    from shared_postgres import TEMPLATE

    from noisescale_server.cli.commands import bring_up_to_date
    from noisescale_server.embedded import EmbeddedPostgres
    from noisescale_server.process.settings import Settings

    with EmbeddedPostgres.throw_away() as postgres:
        postgres.create_database(TEMPLATE)
        # with the role that servers work as
        bring_up_to_date(Settings(database_url=None, migration_database_url=None), postgres.url(TEMPLATE))
        print(postgres.url("postgres"), flush=True)
        sys.stdin.read()
