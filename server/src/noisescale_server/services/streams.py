"""Streams as people see them: cursor, ledger, and the steps that views take from each."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.errors import RunNotFound, StreamNotFound
from noisescale_server.services.live import live_intervals
from noisescale_server.storage import epochs, runs, streams
from noisescale_server.storage.streams import KINDS, Coverage, Kind
from noisescale_server.storage.tables import Stream, StreamLoss


@dataclass(frozen=True, slots=True)
class StreamOfRun:
    """A stream with the steps that views take from it, and what it declared lost."""

    stream: Stream
    live_steps: list[tuple[int, int]]
    lost: list[StreamLoss]


@dataclass(frozen=True, slots=True)
class Standing:
    """What a job is told that asks.

    Attributes:
        acked_seq: The last record that is stored, rejected or declared lost.
        epoch: Of the data; another one than before says that a backup was restored.
    """

    acked_seq: int
    epoch: UUID


async def get(session: AsyncSession, stream_id: UUID) -> Stream:
    """The stream.

    Raises:
        StreamNotFound: When none has this id.
    """
    stream = await streams.get(session, stream_id)
    if stream is None:
        raise StreamNotFound(stream_id)
    return stream


async def hear(session: AsyncSession, stream_id: UUID) -> Standing:
    """Where the server stands with a stream whose process lives: its run is not silent, however long its steps are.

    Raises:
        StreamNotFound: When none has this id.
    """
    found = await streams.touch(session, stream_id)
    if found is None:
        raise StreamNotFound(stream_id)
    return Standing(*found)


async def epoch(session: AsyncSession) -> UUID:
    """The epoch of the data: another one than before says that a backup was restored."""
    return await epochs.current(session)


async def of_run(session: AsyncSession, run_id: UUID) -> list[StreamOfRun]:
    """The run's streams of every kind, oldest first; each kind has its own live steps.

    Raises:
        RunNotFound: When no run has this id.
    """
    if await runs.get(session, run_id) is None:
        raise RunNotFound(run_id)
    found = await streams.of_run(session, run_id)
    live = [interval for kind in KINDS for interval in live_intervals(_coverage(found, kind))]
    losses = await streams.losses_of_run(session, run_id)
    return [
        StreamOfRun(
            stream,
            [(interval.low, interval.high) for interval in live if interval.stream_id == stream.id],
            [loss for loss in losses if loss.stream_id == stream.id],
        )
        for stream in found
    ]


def _coverage(found: Iterable[Stream], kind: Kind) -> list[Coverage]:
    return [
        Coverage(
            stream.id,
            stream.started_at,
            stream.first_step,
            stream.last_step,
            stream.num_measurements,
            stream.num_estimates,
        )
        for stream in found
        if stream.kind == kind and stream.first_step is not None and stream.last_step is not None
    ]
