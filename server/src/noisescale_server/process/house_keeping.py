"""What a server does by itself about old and deleted runs: a round of folding and purging every half minute."""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from noisescale_server.process.own_metrics import ProcessMetrics
from noisescale_server.services import retention
from noisescale_server.storage.platform.driver import DATABASE_ERRORS

SECONDS_BETWEEN_ROUNDS = 30.0
SECONDS_BETWEEN_LOOKS_AT_RUNS = 600.0
"""Which runs are old is read off the rows of all of them."""

SECONDS_WHILE_MORE_WAITS = 5.0
"""A round is some seconds of one connection: batches and pages come first."""

log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def house_kept(sessions: async_sessionmaker[AsyncSession], counts: ProcessMetrics) -> AsyncIterator[None]:
    """For the block, fold and purge; what is under way at its end is rolled back, and found again."""
    task = asyncio.create_task(_keep_for_ever(sessions, counts))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _keep_for_ever(sessions: async_sessionmaker[AsyncSession], counts: ProcessMetrics) -> None:
    folded_at = -math.inf
    while True:
        await asyncio.sleep(SECONDS_BETWEEN_ROUNDS)
        now = time.monotonic()
        folds = now - folded_at >= SECONDS_BETWEEN_LOOKS_AT_RUNS
        folded_at = now if folds else folded_at
        try:
            await keep(sessions, counts, folds=folds)
        except DATABASE_ERRORS as error:
            log.debug("old and deleted runs wait for the next round: %s", error)
        except Exception:
            log.exception("old and deleted runs could not be looked at")


async def keep(sessions: async_sessionmaker[AsyncSession], counts: ProcessMetrics, *, folds: bool) -> None:
    """Rounds until nothing is left, or another server is at it; what each did is logged and counted.

    Args:
        sessions: Of the database.
        counts: What /metrics answers.
        folds: Look for old runs too.
    """
    while True:
        done = await retention.work(sessions, datetime.now(UTC), folds=folds)
        if done.num_rows:
            counts.count_round(folded=done.folded.total, purged=done.purged)
            log.info("%s", done.sentence)
        if done.is_busy or not done.has_more:
            return
        await asyncio.sleep(SECONDS_WHILE_MORE_WAITS)
