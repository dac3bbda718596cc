"""Streams as people see them: cursor, ledger, and the steps that views take from each."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.errors import RunNotFound, StreamNotFound
from noisescale_server.services.live import live_intervals
from noisescale_server.storage import runs, streams
from noisescale_server.storage.tables import Stream, StreamLoss


@dataclass(frozen=True, slots=True)
class StreamOfRun:
    """A stream with the steps that views take from it, and what it declared lost."""

    stream: Stream
    live_steps: list[tuple[int, int]]
    lost: list[StreamLoss]


async def get(session: AsyncSession, stream_id: UUID) -> Stream:
    """The stream.

    Raises:
        StreamNotFound: When none has this id.
    """
    stream = await streams.get(session, stream_id)
    if stream is None:
        raise StreamNotFound(stream_id)
    return stream


async def of_run(session: AsyncSession, run_id: UUID) -> list[StreamOfRun]:
    """The run's streams, oldest first.

    Raises:
        RunNotFound: When no run has this id.
    """
    if await runs.get(session, run_id) is None:
        raise RunNotFound(run_id)
    live = live_intervals(await streams.coverage_of_run(session, run_id))
    losses = await streams.losses_of_run(session, run_id)
    return [
        StreamOfRun(
            stream,
            [(interval.low, interval.high) for interval in live if interval.stream_id == stream.id],
            [loss for loss in losses if loss.stream_id == stream.id],
        )
        for stream in await streams.of_run(session, run_id)
    ]
