"""Rounds of keeping house: rows of old runs are folded, rows of deleted runs go; a bounded number of rows each.

Every part is a transaction of its own that takes one lock for all servers of the database: another server that works
at the moment is left alone, and what a stopped one had begun is rolled back and found again.
"""

import logging
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from noisescale_server.services.retention import plan
from noisescale_server.storage.retention import folding, purging
from noisescale_server.storage.retention.folding import PyramidLacksRows, Taken

ROWS_OF_A_ROUND: Final = 100_000
RUNS_AT_ONCE: Final = 100
ROWS_OF_A_PURGE: Final = 5_000
"""Of one transaction: it takes 0.1 s, and whoever waits for it waits no longer."""
EVERY: Final = 1 << 40
"""A limit that limits nothing."""

log = logging.getLogger(__name__)

Sessions = async_sessionmaker[AsyncSession]


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did, or would do.

    Attributes:
        folded: Rows of old runs that went; the pyramids hold them.
        folded_runs: Runs of which all that can be folded is.
        purged: Rows of deleted runs that went.
        purged_runs: Deleted runs of which nothing is left.
        has_more: Something is left for the next round.
        is_busy: Another server was at it, so the rest was left to it.
    """

    folded: Taken = field(default_factory=Taken)
    folded_runs: int = 0
    purged: int = 0
    purged_runs: int = 0
    has_more: bool = False
    is_busy: bool = False

    @property
    def num_rows(self) -> int:
        """Rows that went."""
        return self.folded.total + self.purged

    def plus(self, later: "Round") -> "Round":
        """Both together; how things stand is what the later one says."""
        return Round(
            self.folded.plus(later.folded),
            self.folded_runs + later.folded_runs,
            self.purged + later.purged,
            self.purged_runs + later.purged_runs,
            later.has_more,
            later.is_busy,
        )

    @property
    def sentence(self) -> str:
        """The same in words."""
        return (
            f"folded {self.folded.measurements:,} rows of measurements, {self.folded.groups:,} of layers and "
            f"{self.folded.metrics:,} of metrics of {self.folded_runs:,} old runs; took {self.purged:,} rows of "
            f"{self.purged_runs:,} deleted runs away"
        )


async def work(sessions: Sessions, now: datetime, *, at_most: int = ROWS_OF_A_ROUND, folds: bool = True) -> Round:
    """One round: at most about so many rows.

    Args:
        sessions: Of the database, seeing every project.
        now: The server's clock.
        at_most: Rows; the last transaction may be of some more.
        folds: Look for old runs too, which reads the row of every run of the projects that fold.
    """
    done = Round()
    deleted = await _deleted(sessions, RUNS_AT_ONCE)
    for run_id in deleted:
        done = await _purge(sessions, run_id, done, at_most)
        if done.is_busy or done.num_rows >= at_most:
            return replace(done, has_more=True)
    due = await _due(sessions, now, RUNS_AT_ONCE) if folds else []
    for run_id in due:
        done = await _fold(sessions, run_id, done, at_most)
        if done.is_busy or done.num_rows >= at_most:
            return replace(done, has_more=True)
    return replace(done, has_more=RUNS_AT_ONCE in (len(deleted), len(due)))


async def look(sessions: Sessions, now: datetime) -> Round:
    """What rounds would do until nothing is left; nothing is changed."""
    found = Round()
    for run_id in await _deleted(sessions, EVERY):
        async with sessions() as session:
            num_rows = await purging.count(session, run_id)
        found = found.plus(Round(purged=num_rows, purged_runs=1))
    for run_id in await _due(sessions, now, EVERY):
        async with sessions() as session:
            kept = await folding.swept_metrics(session, run_id)
            taken = Taken()
            for units in await plan.of_run(session, run_id):
                taken = taken.plus(await folding.count(session, units, kept))
        found = found.plus(Round(taken, folded_runs=int(taken.total > 0)))
    return found


async def _deleted(sessions: Sessions, limit: int) -> list[UUID]:
    async with sessions() as session:
        return await purging.waiting(session, limit)


async def _due(sessions: Sessions, now: datetime, limit: int) -> list[UUID]:
    """Runs to fold."""
    found: list[UUID] = []
    async with sessions() as session:
        for project_id, days in await folding.projects(session):
            before = now - timedelta(days=days)
            found += await folding.due_runs(
                session, project_id, before=before, min_steps=plan.MIN_STEPS, limit=limit - len(found)
            )
    return found


async def _purge(sessions: Sessions, run_id: UUID, done: Round, at_most: int) -> Round:
    while done.purged < at_most:
        async with sessions.begin() as session:
            if not await folding.is_ours(session):
                return replace(done, is_busy=True)
            taken = await purging.take(session, run_id, ROWS_OF_A_PURGE)
        done = replace(done, purged=done.purged + taken)
        if taken < ROWS_OF_A_PURGE:
            return replace(done, purged_runs=done.purged_runs + 1)
    return done


async def _fold(sessions: Sessions, run_id: UUID, done: Round, at_most: int) -> Round:
    """Fold a run, or a part of a long one; if its pyramid lacks rows these stay, until data come again."""
    async with sessions() as session:
        kept = await folding.swept_metrics(session, run_id)
        parts = await plan.of_run(session, run_id)
    taken = Taken()
    try:
        for units in parts:
            async with sessions.begin() as session:
                if not await folding.is_ours(session):
                    return replace(done, folded=done.folded.plus(taken), is_busy=True)
                taken = taken.plus(await folding.fold(session, units, kept))
            if done.num_rows + taken.total >= at_most:
                return replace(done, folded=done.folded.plus(taken))
    except PyramidLacksRows as error:
        log.error("rows are not folded: %s", error)
    async with sessions.begin() as session:
        await folding.note_done(session, run_id)
    return replace(done, folded=done.folded.plus(taken), folded_runs=done.folded_runs + (taken.total > 0))
