"""What is kept of old and of deleted runs."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from noisescale_core.estimators.uncertainty import MIN_BLOCKS
from noisescale_server.services.access import audit
from noisescale_server.services.access.access import Principal
from noisescale_server.services.platform.errors import ProjectNotFound
from noisescale_server.services.series import latest
from noisescale_server.services.series.latest import LATEST_SHARE
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.resolution import block
from noisescale_server.services.series.whole_run import NUM_AVERAGED
from noisescale_server.storage.access import belonging
from noisescale_server.storage.retention import folding, purging, rows
from noisescale_server.storage.retention.folding import UNIT_BITS, PyramidLacksRows, Taken, Units
from noisescale_server.storage.runs import streams
from noisescale_server.storage.runs.streams import KINDS

# Which rows of a run can go without a figure of a page showing it.
# What a page shows of a whole run it reads off buckets of 32 steps or more, if the run has 5,120 steps. Rows are read
# one by one at a run's beginning (short looks and octaves), at the ends of streams, where another one takes over, and
# in the latest window of a run of fewer than 20,480 steps. These stay, and so do all rows of shorter runs.

# How long a project keeps the rows of its runs: read by its people, changed by its admins.

MAX_DAYS = 36_500


async def of_name(session: AsyncSession, project: str) -> int | None:
    """Days without data after which rows of a run are folded; None: never.

    Raises:
        ProjectNotFound: When there is no such project.
    """
    return await rows.days_of(session, await _id_of(session, project))


async def put(session: AsyncSession, by: Principal, project: str, days: int | None) -> int | None:
    """Let the project fold after so many days, or never.

    Raises:
        ProjectNotFound: When there is no such project.
    """
    project_id = await _id_of(session, project)
    if days != await rows.days_of(session, project_id):
        await rows.put(session, project_id, days)
        said = "never" if days is None else str(days)
        await audit.note(session, by, "project retention set", project_id=project_id, fold_after_days=said)
    return days


async def _id_of(session: AsyncSession, project: str) -> UUID:
    project_id = await belonging.project_of(session, "project", project)
    if project_id is None:
        raise ProjectNotFound(project)
    return project_id


MIN_STEPS: Final = LATEST_SHARE * MIN_BLOCKS * block(1)
"""From so many steps on 5 % of them hold eight buckets."""

MIN_STEPS_OF_GROUPS: Final = NUM_AVERAGED << UNIT_BITS
"""From so many steps on a layer's windows are made of buckets, too."""

UNITS_AT_ONCE: Final = 16
"""Of one transaction: 16,384 steps, a fifth of a second."""


async def of_run(session: AsyncSession, run_id: UUID) -> list[Units]:
    """What can be folded of a run, in parts of one transaction each.

    What has been folded before comes at the end: records of it may have come since.
    """
    new: list[Units] = []
    old: list[Units] = []
    for kind in KINDS:
        live = LiveSeries.of(run_id, kind, await streams.coverage_of_run(session, run_id, kind))
        num_steps = live.newest_step - live.first_step + 1 if live.intervals else 0
        if num_steps < MIN_STEPS:
            continue
        has_groups = num_steps >= MIN_STEPS_OF_GROUPS
        kept = await _kept(session, live)
        for stream in live.covered:
            first, last = stream.first_step >> UNIT_BITS, stream.last_step >> UNIT_BITS
            # its first row says the rate that it began with, its last one how it stands
            free = [unit for unit in range(first + 1, last) if unit not in kept]
            ranges = zip(stream.folded[::2], stream.folded[1::2], strict=True)
            folded = {unit for low, high in ranges for unit in range(low, high + 1)}
            ends = parts([unit for unit in free if unit not in folded], at_once=UNITS_AT_ONCE)
            new += [Units(run_id, stream.stream_id, kind, *of_part, has_groups) for of_part in ends]
            ends = parts([unit for unit in free if unit in folded], at_once=len(folded))
            old += [Units(run_id, stream.stream_id, kind, *of_part, has_groups) for of_part in ends]
    return new + old


async def _kept(session: AsyncSession, live: LiveSeries) -> set[int]:
    """Units whose rows are read one by one."""
    window, span = await latest.window_and_span(session, live)
    steps = [0] if window.step is None else [0, window.step]
    for interval in live.intervals:
        steps += [interval.low, interval.high]
    if span.level == 0:
        # a latest window of rows, of a run of fewer than 20,480 steps
        steps += range(span.before * span.steps_per_block, live.newest_step, 1 << UNIT_BITS)
    return {step >> UNIT_BITS for step in steps}


def parts(units: Iterable[int], *, at_once: int) -> list[tuple[int, int]]:
    """First and last of neighbouring units, at most so many together."""
    rows = groupby(enumerate(units), key=lambda one: one[1] - one[0])
    found: list[tuple[int, int]] = []
    for _, row in rows:
        neighbours = [unit for _, unit in row]
        for start in range(0, len(neighbours), at_once):
            part = neighbours[start : start + at_once]
            found.append((part[0], part[-1]))
    return found


# Rounds of keeping house: rows of old runs are folded, rows of deleted runs go; a bounded number of rows each.
#
# Every part is a transaction of its own that takes one lock for all servers of the database: another server that works
# at the moment is left alone, and what a stopped one had begun is rolled back and found again.

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
            for units in await of_run(session, run_id):
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
                session, project_id, before=before, min_steps=MIN_STEPS, limit=limit - len(found)
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
        parts = await of_run(session, run_id)
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
