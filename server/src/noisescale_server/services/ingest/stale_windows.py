"""Refreshes what runs show of their newest rows where no batch has done so.

A batch computes the window at most once a second, and where it finds a turn, which is all that a few jobs need that go
on sending. After the last batch of one that was killed, when an older stream of a run sends late, and where a thousand
jobs send, nobody would.
"""

from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.series import latest
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.storage.ingest import progress
from noisescale_server.storage.ingest.progress import LatestWindow
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs import streams
from noisescale_server.storage.runs.streams import SIMPLE

AT_ONCE = 100
"""Runs of one round; those that are left have the same chance in the next."""


async def of_a_round(session: AsyncSession) -> list[UUID]:
    """Runs to refresh now."""
    return await progress.stale_runs(session, AT_ONCE)


async def refresh(session: AsyncSession, run_id: UUID) -> None:
    """Show the window of all rows of the run that are committed; unless it does, or somebody writes to it now."""
    if await progress.lock_stale(session, run_id):
        # read after the lock: a stream whose rows are missing here has yet to mark the run, and waits for us
        await progress.store_window(session, run_id, await _window(session, run_id))


async def show_all_rows(session: AsyncSession, run: Run, live: LiveSeries | None = None) -> LatestWindow | None:
    """Let a run that was read show the window of all its rows, in memory alone: the database may be a replica.

    Args:
        session: Where to read.
        run: As read.
        live: Its series of kind simple, where that was read already.

    Returns:
        The window where it had to be computed.
    """
    if not run.window_is_stale or run.first_step is None:
        return None
    session.expunge(run)
    window = await _window(session, run.id) if live is None else await latest.window(session, live)
    for name, value in progress.columns_of(window).items():
        setattr(run, name, value)
    return window


async def _window(session: AsyncSession, run_id: UUID) -> LatestWindow:
    covered = await streams.coverage_of_run(session, run_id)
    return await latest.window(session, LiveSeries.of(run_id, SIMPLE, covered))
