"""A server for one reading of records in files: the same as any other, on a database that is gone afterwards."""

import contextlib
import secrets
import socket
import threading
from collections.abc import Iterator

import uvicorn
from pydantic import SecretStr

from noisescale_server import main
from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.process import app_role, migrating, serving
from noisescale_server.process.settings import Settings

TOKEN_BYTES = 32
POLL_SECONDS = 0.02
END_SECONDS = 10.0


@contextlib.contextmanager
def throw_away_server(read_from: str) -> Iterator[tuple[str, str]]:
    """Address and key of an empty server with all that is mounted on it; entry point of `noisescale.throw_away`.

    It listens on this machine only, and takes no setting of the environment that leads to other data.

    Args:
        read_from: What will be sent to it; pages name it as their origin, since the address is soon gone.

    Raises:
        EmbeddedPostgresError: Where its database cannot run, with the way out.
    """
    key = secrets.token_urlsafe(TOKEN_BYTES)
    with serving.termination_as_interrupt(), EmbeddedPostgres.throw_away() as postgres:
        owner_url = postgres.url()
        migrating.migrate(owner_url)
        database_url = app_role.address(owner_url)
        app_role.admit(owner_url, database_url)
        settings = Settings(
            database_url=database_url,
            migration_database_url=None,
            database_read_url=None,
            allow_unsafe_database=True,
            host="127.0.0.1",
            port=0,
            workers=1,
            auth="local",
            local_token=SecretStr(key),
        )
        with serving.listen(settings) as listener:
            config = uvicorn.Config(
                main.create(settings, read_from=read_from), log_level="warning", access_log=False, ws="none"
            )
            with _serving(uvicorn.Server(config), listener):
                yield serving.url_of(listener), key


@contextlib.contextmanager
def _serving(server: uvicorn.Server, listener: socket.socket) -> Iterator[None]:
    """The server answers while the block runs.

    Raises:
        RuntimeError: Where it ends before it answers.
    """
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="throw-away-server", daemon=True)
    thread.start()
    while not server.started:
        thread.join(POLL_SECONDS)
        if not thread.is_alive():
            raise RuntimeError("the throw-away server did not start: its error is above")
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(END_SECONDS)
