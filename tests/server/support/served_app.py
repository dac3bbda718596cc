"""The whole server behind a real socket, in a thread of the test's process."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import uvicorn
from fastapi import FastAPI

from known_routes import with_known_routes
from noisescale_server.app import create_app
from noisescale_server.process.impatient_http import ImpatientProtocol
from noisescale_server.process.settings import Settings
from served_in_thread import served_by

TOKEN = "ns_w_test-test-test-test-test-test-test"
"""Key of the local user."""


def free_port() -> int:
    """A TCP port on loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served_app(
    database_url: str, *, port: int | None = None, extend: Callable[[FastAPI], None] | None = None, **settings: object
) -> Iterator[str]:
    """The address of a server on this database; it is gone after the block, and the port may be used again.

    Args:
        database_url: The database.
        port: Where it listens; None: on a free one.
        extend: Puts more on the server, such as the dashboard.
        settings: Of the server.
    """
    number = port or free_port()
    usual = {
        "pool_size": 4,
        "pool_wait_seconds": 20.0,  # a busy machine may take its time to open a connection
        "allow_unsafe_database": True,
        "local_token": TOKEN,
        "reads_per_minute": 1_000_000,
    }
    app = with_known_routes(create_app(Settings(database_url=database_url, **(usual | settings))))
    if extend is not None:
        extend(app)
    config = uvicorn.Config(
        app, host="127.0.0.1", port=number, log_level="warning", timeout_graceful_shutdown=2, http=ImpatientProtocol
    )
    with served_by(uvicorn.Server(config)):
        yield f"http://127.0.0.1:{number}"


def wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait for a server process to answer that it is ready.

    Args:
        url: Its address.
        process: The server: where it ends, waiting does.
    """
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended before it was ready"
        try:
            # without certificates, which take 20 ms to read
            if httpx.get(f"{url}/readyz", timeout=2, verify=False).status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"no server at {url} within 180 s")
