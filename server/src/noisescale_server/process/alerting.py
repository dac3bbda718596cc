"""What a server does by itself about alerts: looks at watched runs every ten seconds, and sends what is owed."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from noisescale_server.services.alerts import delivering, watch
from noisescale_server.services.alerts.delivering import Post
from noisescale_server.storage.alerts import late, rows
from noisescale_server.storage.platform.driver import DATABASE_ERRORS

SECONDS_BETWEEN_LOOKS = 10.0
SECONDS_BETWEEN_DELIVERIES = 1.0
SECONDS_BETWEEN_CLEANINGS = 3_600.0
FORGOTTEN_AT_ONCE = 1_000
LONGEST_DRY_RUN = timedelta(days=90)

log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def alerted(
    sessions: async_sessionmaker[AsyncSession], post: Post, *, events_kept: timedelta
) -> AsyncIterator[None]:
    """For the block, notice and deliver; what is under way at its end is tried again by whoever comes next.

    Args:
        sessions: Of the database.
        post: What deliveries are made with.
        events_kept: How long what rules have noticed is kept.
    """
    works = (_watch_for_ever(sessions), _deliver_for_ever(sessions, post), _forget_for_ever(sessions, events_kept))
    tasks = [asyncio.create_task(one) for one in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _watch_for_ever(sessions: async_sessionmaker[AsyncSession]) -> None:
    while True:
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
        try:
            async with sessions.begin() as session:
                await watch.look(session, datetime.now(UTC))
        except DATABASE_ERRORS as error:
            log.debug("watched runs wait for the next look: %s", error)
        except Exception:
            # a rule that cannot be read must not leave all others unwatched, unseen
            log.exception("watched runs could not be looked at")


async def _forget_for_ever(sessions: async_sessionmaker[AsyncSession], events_kept: timedelta) -> None:
    while True:
        try:
            await forget_old(sessions, datetime.now(UTC), events_kept)
        except DATABASE_ERRORS as error:
            log.debug("old events wait for the next cleaning: %s", error)
        await asyncio.sleep(SECONDS_BETWEEN_CLEANINGS)


async def forget_old(sessions: async_sessionmaker[AsyncSession], now: datetime, events_kept: timedelta) -> int:
    """Delete what has been kept for long enough, a thousand events a transaction; how many events.

    Args:
        sessions: Of the database.
        now: The server's clock.
        events_kept: How long they are kept; what is still to be sent stays longer.
    """
    num_forgotten = 0
    while True:
        async with sessions.begin() as session:
            found = await rows.forget_events(session, before=now - events_kept, limit=FORGOTTEN_AT_ONCE)
            await late.forget(session, before=now - LONGEST_DRY_RUN)
        num_forgotten += found
        if found < FORGOTTEN_AT_ONCE:
            return num_forgotten


async def _deliver_for_ever(sessions: async_sessionmaker[AsyncSession], post: Post) -> None:
    while True:
        num_tried = 0
        try:
            num_tried = await delivering.deliver_due(sessions, post, lambda: datetime.now(UTC))
        except DATABASE_ERRORS as error:
            log.debug("alerts wait to be sent: %s", error)
        except Exception:
            log.exception("alerts could not be sent")
        if num_tried < delivering.AT_ONCE:
            await asyncio.sleep(SECONDS_BETWEEN_DELIVERIES)
