"""Running the web server: one process or several, on a port that is ours before anything else starts."""

import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from noisescale_server.process.impatient_http import ImpatientProtocol
from noisescale_server.process.own_metrics import SHARED_FOLDER
from noisescale_server.process.settings import Settings

_APPLICATION = "noisescale_server.main:create_in_worker"
# the asyncio loop costs 44 ms a request when several workers share a socket; uvloop does not exist on Windows
_LOOP = "asyncio" if sys.platform == "win32" else "uvloop"
_GRACEFUL_SHUTDOWN_SECONDS = 10
# training jobs send every few seconds: with uvicorn's 5 s they would meet a connection that is just being closed
_KEEP_ALIVE_SECONDS = 65
_BACKLOG = 2048
_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, *(() if sys.platform == "win32" else (signal.SIGHUP,)))
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104


class AddressError(OSError):
    """The server cannot listen where it was told to."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"cannot listen on {host} port {port} ({reason}): choose another with --port, or 0 for any free one"
        )


def listen(settings: Settings) -> socket.socket:
    """A listening socket on the configured address.

    Raises AddressError when the port is taken or the address is not this machine's.
    """
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=_BACKLOG)
    except socket.gaierror as error:
        raise AddressError(settings.host, settings.port, error.strerror or "unknown host") from error
    except OSError as error:
        # create_server adds the address to the reason, where we have said it already
        raise AddressError(settings.host, settings.port, os.strerror(error.errno or 0)) from error
    return listener


def url_of(listener: socket.socket) -> str:
    """The address at which this machine reaches the socket."""
    host, port = listener.getsockname()[:2]
    reachable = _ANY_ADDRESS.get(host, host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


@contextlib.contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end the block as Ctrl-C does, so that whatever it holds is released."""
    with _restored(_ENDING_SIGNALS) as before:
        signal.signal(signal.SIGTERM, _interrupt)
        if sys.platform != "win32" and before[signal.SIGHUP] is not signal.SIG_IGN:  # nohup ignores it
            # whoever handles SIGTERM at that time: we, or uvicorn while it serves
            signal.signal(signal.SIGHUP, lambda number, frame: signal.raise_signal(signal.SIGTERM))
        yield


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _restored(signals: Iterable[signal.Signals]) -> Iterator[dict[signal.Signals, Any]]:
    """The handlers now, which come back after the block."""
    before = {number: signal.getsignal(number) for number in signals}
    try:
        yield before
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def prepare(settings: Settings, listener: socket.socket, *, database_url: str) -> uvicorn.Config:
    """What to run. A single process has the application loaded, so that its errors come before any address is told.

    The application reads its settings from the environment, in this process as in any worker.
    """
    secrets = {
        name: value.get_secret_value()
        for name, value in (
            ("NOISESCALE_LOCAL_TOKEN", settings.local_token),
            ("NOISESCALE_SECRET_KEY", settings.secret_key),
        )
        if value is not None
    }
    os.environ |= secrets | {
        "NOISESCALE_DATABASE_URL": database_url,
        "NOISESCALE_DATA_DIR": str(settings.data_dir),
        "NOISESCALE_HOST": settings.host,
        "NOISESCALE_PORT": str(listener.getsockname()[1]),
        "NOISESCALE_WORKERS": str(settings.workers),
        "NOISESCALE_BEHIND_TLS_PROXY": str(settings.behind_tls_proxy).lower(),
    }
    config = uvicorn.Config(
        _APPLICATION,
        factory=True,
        loop=_LOOP,
        http=ImpatientProtocol,
        workers=settings.workers,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=_GRACEFUL_SHUTDOWN_SECONDS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        ws="none",
        # whose address a request comes from decides whether a login header is believed: only the socket says it
        proxy_headers=False,
        server_header=False,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )
    if config.workers == 1:
        config.load()
    return config


def serve(config: uvicorn.Config, listener: socket.socket) -> int:
    """Serve until a signal comes; the exit code."""
    return _serve_alone(config, listener) if config.workers == 1 else _serve_with_workers(config, listener)


@contextlib.contextmanager
def counting_together() -> Iterator[None]:
    """For the block, processes started in it put what they count for /metrics into one folder."""
    with tempfile.TemporaryDirectory(prefix="noisescale-metrics-") as folder:
        os.environ[SHARED_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[SHARED_FOLDER]


def _serve_alone(config: uvicorn.Config, listener: socket.socket) -> int:
    server = uvicorn.Server(config)
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises the signal again after it has closed everything
        server.run(sockets=[listener])
    return 0 if server.started else STARTUP_FAILURE


def _serve_with_workers(config: uvicorn.Config, listener: socket.socket) -> int:
    with (
        counting_together(),
        _restored(_ENDING_SIGNALS) as before,
    ):  # uvicorn leaves its own, which would swallow a second Ctrl-C
        supervisor = Multiprocess(config, sockets=[listener])
        if sys.platform != "win32":
            signal.signal(signal.SIGHUP, before[signal.SIGHUP])  # uvicorn's would restart the workers
        supervisor.run()
    return STARTUP_FAILURE if any(worker.exitcode == STARTUP_FAILURE for worker in supervisor.processes) else 0
