"""GET /metrics: the server's health and its live runs as text, for Prometheus and the like."""

import asyncio
import contextlib
import errno
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from http.client import HTTPException, HTTPMessage, parse_headers
from io import BytesIO
from typing import Final

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from prometheus_client.exposition import choose_encoder

from noisescale_server.api.access.route import authorize
from noisescale_server.api.platform.deps import Now, projects_of
from noisescale_server.api.telemetry.families import Scrape
from noisescale_server.process.settings import Settings
from noisescale_server.services import telemetry
from noisescale_server.services.access.access import Projects
from noisescale_server.services.telemetry import Snapshot
from noisescale_server.storage.access.visibility import KEY
from noisescale_server.storage.platform.driver import DATABASE_ERRORS

router = APIRouter(include_in_schema=False)
log = logging.getLogger(__name__)


@router.get("/metrics", dependencies=[Depends(authorize)])
async def get_metrics(request: Request, now: Now) -> Response:
    """The figures as text; in OpenMetrics where that is asked for."""
    scrape = await scraped(request.app, projects_of(request), now)
    encode, media_type = choose_encoder(request.headers.get("accept", ""))
    # milliseconds of arithmetic, for which no other request should wait
    text = await asyncio.to_thread(encode, scrape)
    return Response(text, headers={"Content-Type": media_type, "Cache-Control": "no-store"})


async def scraped(app: FastAPI, projects: Projects, now: datetime) -> Scrape:
    """What there is to say now; of the database that it is down, where it does not answer.

    Args:
        app: Of this process.
        projects: Whose runs are shown; None: all.
        now: The server's clock.
    """
    settings: Settings = app.state.settings
    seen: Snapshot | None = None
    try:
        async with app.state.read_sessions(info={KEY: projects}) as session, session.begin():
            seen = await telemetry.look(
                session,
                now=now,
                crashed_after=timedelta(seconds=settings.crashed_after_seconds),
                limit=settings.metrics_runs,
            )
    except DATABASE_ERRORS as error:
        log.debug("a scrape without the database: %s", error)
    return Scrape(app.state.process_metrics, seen)


# The same text without a key, on a port of its own that only this machine reaches: the other choice beside a key.
#
# Every user of the machine can read it then, names of runs included; it is off unless a port is set.

HOST: Final = "127.0.0.1"
NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
SECONDS_TO_ASK: Final = 5.0
PLAIN: Final = "text/plain; charset=utf-8"


@contextlib.asynccontextmanager
async def on_loopback(app: FastAPI, port: int | None) -> AsyncIterator[None]:
    """For the block, answer /metrics on this port of the loopback address; of several processes the first one does.

    Args:
        app: Of this process.
        port: None: nowhere.

    Raises:
        OSError: Where the port may not be used.
    """
    if port is None:
        yield
        return
    try:
        server = await asyncio.start_server(partial(_answer, app), HOST, port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        log.warning("metrics are not served on port %d by this process: another one listens there", port)
        yield
        return
    async with server:
        yield


async def _answer(app: FastAPI, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        async with asyncio.timeout(SECONDS_TO_ASK):
            head = await reader.readuntil(b"\r\n\r\n")
        status, media_type, body = await _page(app, head)
        answer = f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n"
        writer.write(answer.encode() + b"Connection: close\r\n\r\n" + body)
        async with asyncio.timeout(SECONDS_TO_ASK):
            await writer.drain()
    except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, HTTPException):
        pass  # whoever asks no whole question, or goes, is not answered
    finally:
        writer.close()


async def _page(app: FastAPI, head: bytes) -> tuple[str, str, bytes]:
    first, _, rest = head.partition(b"\r\n")
    headers: HTTPMessage = parse_headers(BytesIO(rest))
    # a page elsewhere may point a name of its own here
    if headers.get("host", "").rpartition(":")[0] not in NAMES:
        return "403 Forbidden", PLAIN, b"ask for it as 127.0.0.1 or localhost\n"
    if first.split(b" ")[:2] != [b"GET", b"/metrics"]:
        return "404 Not Found", PLAIN, b"only GET /metrics is answered here\n"
    scrape = await scraped(app, None, datetime.now(UTC))
    encode, media_type = choose_encoder(headers.get("accept", ""))
    return "200 OK", media_type, await asyncio.to_thread(encode, scrape)
