"""A batch of no rows for a run that is not there: a connection learns by it what batches ask of the database."""

from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.series import latest
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.storage.ingest import measurements, progress
from noisescale_server.storage.ingest.measurements import NO_ROWS
from noisescale_server.storage.ingest.progress import Advance, RunNews
from noisescale_server.storage.runs import streams
from noisescale_server.storage.runs.streams import SIMPLE, Coverage

NOBODY: Final = UUID(int=0)
"""The id of no run and of no stream: those are random."""

TIMES: Final = 6
"""Postgres plans a prepared statement anew for its first five executions, and then once for all that follow."""

_LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)
_NOTHING: Final = Advance(
    next_seq=1,
    first_seq=1,
    crc32=0,
    num_stored=0,
    num_lost=0,
    num_rejected=0,
    num_measurements=0,
    num_estimates=0,
    first_step=None,
    last_step=None,
    finished_at=None,
)


async def rehearse(session: AsyncSession) -> None:
    """Run each statement of a batch as often as it takes to be planned for good; no row is read, and none written."""
    window = None
    for _ in range(TIMES):
        await streams.lock(session, NOBODY, NOBODY)
        await measurements.store(session, run_id=NOBODY, stream_id=NOBODY, series=SIMPLE, columns=NO_ROWS)
        await progress.store(
            session,
            run_id=NOBODY,
            stream_id=NOBODY,
            advance=_NOTHING,
            news=RunNews(newest_started_at=_LONG_AGO),
            window=window,
            run_as_read=_LONG_AGO,
        )
        # a batch with a window takes other statements than one without
        covered = Coverage(NOBODY, _LONG_AGO, first_step=0, last_step=99, num_measurements=100, num_estimates=100)
        window = window or await latest.window(session, LiveSeries.of(NOBODY, SIMPLE, [covered]))
