"""One look at the database for whoever watches the server: live runs, what waits, and how long it took to answer."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage import telemetry
from noisescale_server.storage.telemetry import LiveRun, Waiting


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was seen.

    Attributes:
        runs: The newest live ones, at most as many as were asked for.
        has_more: Whether there are more live runs.
        waiting: What the server has still to do.
        seconds: That the database took.
    """

    runs: list[LiveRun]
    has_more: bool
    waiting: Waiting
    seconds: float


async def look(session: AsyncSession, *, now: datetime, crashed_after: timedelta, limit: int) -> Snapshot:
    """The newest live runs of the session's projects, and what waits in all of them.

    Args:
        session: Where to read.
        now: The server's clock.
        crashed_after: A run without data for so long is not live.
        limit: Most runs.
    """
    began = time.perf_counter()
    runs = await telemetry.newest(session, heard_after=now - crashed_after, limit=limit + 1)
    left = await telemetry.waiting(session)
    return Snapshot(runs[:limit], len(runs) > limit, left, time.perf_counter() - began)
