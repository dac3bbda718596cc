"""The application that uvicorn's workers run: the API, and whatever other distributions mount on it."""

import gc
import multiprocessing
import signal
import sys
from importlib.metadata import entry_points

from fastapi import FastAPI

from noisescale_server.app import create_app
from noisescale_server.embedded.launch import die_with_parent
from noisescale_server.process import log_redaction
from noisescale_server.process.settings import Settings

MOUNT_GROUP = "noisescale.asgi"

SECONDS_IN_A_THREAD = 0.0005
"""How long arithmetic in another thread keeps the interpreter while a request waits for it; by default ten times that,
each time that the loop comes back from waiting for the network."""


def create(settings: Settings | None = None, *, read_from: str | None = None) -> FastAPI:
    """The API, and every app of the entry-point group `noisescale.asgi`.

    Each entry point is a function `mount(app: FastAPI) -> None`. The API's routes come first, also its 404 for unknown
    paths below `/api`, so that no mounted catch-all can answer for it.

    Args:
        settings: Those of the environment by default.
        read_from: What a throw-away server was filled from; mounted apps find it as `app.state.read_from`.
    """
    app = create_app(settings or Settings())
    app.state.read_from = read_from
    for entry_point in entry_points(group=MOUNT_GROUP):
        mount = entry_point.load()
        mount(app)
    return app


def create_in_worker() -> FastAPI:
    """The same in one of the server's processes, which ends when the parent ends, and with it the database."""
    log_redaction.install()
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid is not None:
        die_with_parent(signal.SIGTERM, parent.pid)
    app = create()
    # what is loaded stays: to look through all of it again and again would stop every request for 0.1 s
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SECONDS_IN_A_THREAD)
    return app
