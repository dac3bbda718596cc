"""Streams as people see them: cursor, ledger, and the steps that views take from each."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.ingest import ledger
from noisescale_server.services.ingest.ledger import RunLedger
from noisescale_server.services.platform.errors import RunNotFound, StreamNotFound
from noisescale_server.services.series.live import live_intervals
from noisescale_server.storage.platform import epochs
from noisescale_server.storage.platform.tables import Stream
from noisescale_server.storage.runs import runs, streams
from noisescale_server.storage.runs.streams import KINDS, Coverage, Kind, Loss

MAX_RANGES = 100
"""Of lost records, and of live steps, that one stream of a list shows; the others are counted."""


@dataclass(frozen=True, slots=True)
class StreamOfRun:
    """A stream with the steps that views take from it, and what it declared lost: the first ranges of each.

    Attributes:
        stream: The stream.
        num_live_ranges: Ranges of steps that views take from it.
        live_steps: The first of these.
        num_lost_ranges: Ranges of records that it declared lost.
        lost: The first of these.
    """

    stream: Stream
    num_live_ranges: int
    live_steps: list[tuple[int, int]]
    num_lost_ranges: int
    lost: list[Loss]


@dataclass(frozen=True, slots=True)
class StreamsOfRun:
    """A page of a run's streams, oldest first, with the ledger of all; `next_id`: its last one, where more follow."""

    ledger: RunLedger
    streams: list[StreamOfRun]
    next_id: UUID | None


@dataclass(frozen=True, slots=True)
class Losses:
    """A page of what a stream declared lost, in order; `next_seq`: the last record in it, where more follow."""

    lost: list[Loss]
    next_seq: int | None


@dataclass(frozen=True, slots=True)
class StreamStanding:
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


async def hear(session: AsyncSession, stream_id: UUID) -> StreamStanding:
    """Where the server stands with a stream whose process lives: its run is not silent, however long its steps are.

    Raises:
        StreamNotFound: When none has this id.
    """
    found = await streams.touch(session, stream_id)
    if found is None:
        raise StreamNotFound(stream_id)
    return StreamStanding(*found)


async def epoch(session: AsyncSession) -> UUID:
    """The epoch of the data: another one than before says that a backup was restored."""
    return await epochs.current(session)


async def of_run(session: AsyncSession, run_id: UUID, *, after: UUID | None, at_most: int) -> StreamsOfRun:
    """A page of the run's streams of every kind, oldest first; each kind has its own live steps.

    Args:
        session: Of the database.
        run_id: The run.
        after: Those behind this stream; None: from the oldest on.
        at_most: How many.

    Raises:
        RunNotFound: When no run has this id.
        StreamNotFound: When the run has no stream `after`.
    """
    if await runs.get(session, run_id) is None:
        raise RunNotFound(run_id)
    found = await streams.of_run(session, run_id)
    page, next_id = _page(found, after, at_most)
    losses = await streams.first_losses(session, run_id, [one.id for one in page], at_most=MAX_RANGES)
    live = _live_steps(found)
    rows = []
    for stream in page:
        num_lost_ranges, lost = losses.get(stream.id, (0, []))
        steps = live.get(stream.id, [])
        rows.append(StreamOfRun(stream, len(steps), steps[:MAX_RANGES], num_lost_ranges, lost))
    return StreamsOfRun(ledger.of_streams(found), rows, next_id)


async def losses_of(session: AsyncSession, run_id: UUID, stream_id: UUID, *, after: int, at_most: int) -> Losses:
    """A page of the ranges of records that a stream of the run declared lost.

    Args:
        session: Of the database.
        run_id: The run.
        stream_id: The stream.
        after: Those behind this record.
        at_most: How many.

    Raises:
        RunNotFound: When no run has this id.
        StreamNotFound: When the run has no such stream.
    """
    if await runs.get(session, run_id) is None:
        raise RunNotFound(run_id)
    stream = await streams.get(session, stream_id)
    if stream is None or stream.run_id != run_id:
        raise StreamNotFound(stream_id)
    found = await streams.losses_behind(session, run_id, stream_id, seq=after, at_most=at_most + 1)
    page = found[:at_most]
    return Losses(page, page[-1].to_seq if len(found) > at_most else None)


def _page(found: Sequence[Stream], after: UUID | None, at_most: int) -> tuple[Sequence[Stream], UUID | None]:
    first = 0
    if after is not None:
        first = next((place for place, one in enumerate(found, start=1) if one.id == after), 0)
        if not first:
            raise StreamNotFound(after)
    page = found[first : first + at_most]
    return page, page[-1].id if first + at_most < len(found) else None


def _live_steps(found: Sequence[Stream]) -> dict[UUID, list[tuple[int, int]]]:
    live: dict[UUID, list[tuple[int, int]]] = defaultdict(list)
    for kind in KINDS:
        for interval in live_intervals(_coverage(found, kind)):
            live[interval.stream_id].append((interval.low, interval.high))
    return live


def _coverage(found: Iterable[Stream], kind: Kind) -> list[Coverage]:
    return [
        Coverage(
            stream.id,
            stream.started_at,
            stream.first_step,
            stream.last_step,
            stream.num_measurements,
            stream.num_estimates,
            tuple(stream.folded),
            tuple(stream.folded_groups),
        )
        for stream in found
        if stream.kind == kind and stream.first_step is not None and stream.last_step is not None
    ]
