"""Streams: the cursor of each process that writes, and its ledger."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Literal, get_args
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import fetch, fetch_row, read
from noisescale_server.storage.platform.tables import Stream, StreamLoss, StreamPlace
from noisescale_server.storage.runs.runs import MOVED_ON

Kind = Literal["simple", "adam", "sign", "spectral", "hessian"]
"""Of which noise scale the sums of a stream are; each kind is a series of its own."""

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
SIMPLE: Final = "simple"
"""The kind that a run's row, its decision and its recommendation are made from."""


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """How a stream measures, as its newest `run` record says.

    Attributes:
        estimator: Where the small batches come from.
        kind: The noise scale that its sums are of.
        measure_every: Every how many optimizer steps it measures; None where that was not said.
        num_ranks: Ranks whose small batches are in the sums.
        notes: Facts about the measurement, in words.
    """

    estimator: str | None
    kind: Kind
    measure_every: int | None
    num_ranks: int | None
    notes: list[str]
    unit: str | None
    units_per_example: float | None
    loss_reduction: str | None
    optimizer: str | None
    batch_size_source: str | None
    rank: int | None
    host: str | None
    client_version: str | None
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Cursor:
    """What ingestion needs of a stream whose row it has locked.

    Attributes:
        run_id: The run the stream belongs to.
        next_seq: The record expected next.
        last_first_seq: First record of the newest batch.
        last_crc: Its checksum.
        kind: The kind of noise scale its sums are of.
        num_measurements: Rows so far.
        num_estimates: Rows with sums so far.
        first_step: First step covered so far.
        last_step: Last step so far.
        started_at: When its process started.
        is_newest: No other stream of the run and kind started later.
        is_alone: The run has no other stream of this kind.
        is_due: The run's latest window was refreshed more than a second ago, or never.
        run_updated_at: When the run was last written to, by whichever stream.
        epoch: Of the data; a restored backup begins another.
        database_id: Of the database, which a restored backup keeps.
        folded: As `Coverage.folded`.
    """

    run_id: UUID
    next_seq: int
    last_first_seq: int | None
    last_crc: int | None
    kind: Kind
    num_measurements: int
    num_estimates: int
    first_step: int | None
    last_step: int | None
    started_at: datetime
    is_newest: bool
    is_alone: bool
    is_due: bool
    run_updated_at: datetime
    epoch: UUID
    database_id: UUID
    folded: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Loss:
    """A range of records that will never come."""

    from_seq: int
    to_seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """The steps that one stream has logged, both ends included, and in how many rows.

    Attributes:
        stream_id: The stream.
        started_at: When its process started; the newest wins.
        first_step: First step covered.
        last_step: Last step covered.
        num_measurements: Its rows.
        num_estimates: Its rows that hold estimates.
        folded: First and last, in turn, of the ranges of 1,024 steps whose rows the pyramid alone holds.
        folded_groups: The same of group records.
    """

    stream_id: UUID
    started_at: datetime
    first_step: int
    last_step: int
    num_measurements: int
    num_estimates: int
    folded: tuple[int, ...] = ()
    folded_groups: tuple[int, ...] = ()

    @classmethod
    def of_row(cls, *columns: Any) -> "Coverage":
        """From its columns in this order."""
        stream_id, started_at, first_step, last_step, num_rows, num_estimates, folded, groups = columns
        return cls(stream_id, started_at, first_step, last_step, num_rows, num_estimates, tuple(folded), tuple(groups))


# The others of its kind are looked up in the same round trip: whether this stream is the one that the run shows.
_LOCK = """
SELECT s.run_id, s.next_seq, s.last_first_seq, s.last_crc, s.kind, s.num_measurements, s.num_estimates,
  s.first_step, s.last_step, s.started_at,
  NOT EXISTS (
    SELECT FROM stream o
    WHERE o.run_id = $1::uuid AND o.kind = s.kind AND (o.started_at, o.id) > (s.started_at, s.id)
  ) AS is_newest,
  NOT EXISTS (SELECT FROM stream o WHERE o.run_id = $1::uuid AND o.kind = s.kind AND o.id <> s.id) AS is_alone,
  coalesce(r.latest_refreshed_at < clock_timestamp() - interval '1 second', true) AS is_due, r.updated_at,
  (SELECT id FROM epoch) AS epoch, (SELECT database_id FROM epoch) AS database_id, s.folded
FROM stream s JOIN run r ON r.id = s.run_id
WHERE s.run_id = $1::uuid AND s.id = $2::uuid
FOR UPDATE OF s
"""

_COVERAGE = """
SELECT id, started_at, first_step, last_step, num_measurements, num_estimates, folded, folded_groups
FROM stream WHERE run_id = $1::uuid AND kind = $2::text AND first_step IS NOT NULL
ORDER BY started_at, id
"""


async def lock(session: AsyncSession, run_id: UUID, stream_id: UUID) -> Cursor | None:
    """The cursor of the run's stream, its row locked until the transaction ends; None while there is no such stream."""
    found = await fetch_row(session, _LOCK, run_id, stream_id)
    return None if found is None else Cursor(*found)


async def run_of(session: AsyncSession, stream_id: UUID) -> UUID | None:
    """The run that the stream writes to; None while there is no such stream."""
    found = await fetch_row(session, "SELECT run_id FROM stream_place WHERE stream_id = $1::uuid", stream_id)
    return None if found is None else found[0]


async def create_if_absent(
    session: AsyncSession, *, run_id: UUID, stream_id: UUID, kind: Kind, started_at: datetime
) -> bool:
    """Create the stream, unless another sender has at the same moment; False where another run has one of this id."""
    # who writes an id at the same moment waits here for the other's transaction
    place = insert(StreamPlace).values(stream_id=stream_id, run_id=run_id).on_conflict_do_nothing()
    await session.execute(place)
    if await run_of(session, stream_id) != run_id:
        return False
    values = {"run_id": run_id, "id": stream_id, "kind": kind, "started_at": started_at}
    await session.execute(insert(Stream).values(values).on_conflict_do_nothing())
    return True


async def describe(session: AsyncSession, *, run_id: UUID, stream_id: UUID, info: StreamInfo) -> None:
    """Write how the stream measures into its row."""
    values = {name: getattr(info, name) for name in StreamInfo.__slots__}
    await session.execute(update(Stream).where(Stream.run_id == run_id, Stream.id == stream_id).values(values))


async def store_losses(session: AsyncSession, *, run_id: UUID, stream_id: UUID, losses: Sequence[Loss]) -> None:
    """Keep the ranges."""
    rows = [
        {
            "run_id": run_id,
            "stream_id": stream_id,
            "from_seq": loss.from_seq,
            "to_seq": loss.to_seq,
            "reason": loss.reason,
        }
        for loss in losses
    ]
    await session.execute(insert(StreamLoss), rows)


_TOUCH = f"UPDATE run SET updated_at = statement_timestamp(), {MOVED_ON} WHERE id = $1::uuid"  # noqa: S608 - words of ours
_STANDING = """
SELECT next_seq - 1, (SELECT id FROM epoch) FROM stream WHERE run_id = $1::uuid AND id = $2::uuid
"""


async def touch(session: AsyncSession, stream_id: UUID) -> tuple[int, UUID] | None:
    """The stream's last acknowledged record and the epoch, None where there is none; its run was heard of just now."""
    run_id = await run_of(session, stream_id)
    if run_id is None:
        return None
    await fetch(session, _TOUCH, run_id)
    found = await fetch_row(session, _STANDING, run_id, stream_id)
    return None if found is None else (found[0], found[1])


async def get(session: AsyncSession, stream_id: UUID) -> Stream | None:
    """The stream, or None."""
    run_id = await run_of(session, stream_id)
    chosen = select(Stream).where(Stream.run_id == run_id, Stream.id == stream_id)
    return None if run_id is None else (await session.scalars(chosen)).one_or_none()


async def of_run(session: AsyncSession, run_id: UUID) -> Sequence[Stream]:
    """The run's streams of every kind, oldest first."""
    chosen = select(Stream).where(Stream.run_id == run_id).order_by(Stream.started_at, Stream.id)
    return (await session.scalars(chosen)).all()


async def losses_between(
    session: AsyncSession, *, run_id: UUID, stream_id: UUID, first_seq: int, last_seq: int
) -> list[Loss]:
    """The declared losses of a stream that reach into these records, in order."""
    chosen = (
        select(StreamLoss.from_seq, StreamLoss.to_seq, StreamLoss.reason)
        .where(StreamLoss.run_id == run_id, StreamLoss.stream_id == stream_id)
        .where(StreamLoss.from_seq <= last_seq, StreamLoss.to_seq >= first_seq)
        .order_by(StreamLoss.from_seq)
    )
    return [Loss(*row) for row in await session.execute(chosen)]


_FIRST_LOSSES = """
SELECT stream_id, from_seq, to_seq, reason, num_ranges FROM (
  SELECT *, row_number() OVER (PARTITION BY stream_id ORDER BY from_seq) AS place,
    count(*) OVER (PARTITION BY stream_id) AS num_ranges
  FROM stream_loss WHERE run_id = $1::uuid AND stream_id = ANY($2::uuid[])
) AS numbered
WHERE place <= $3::bigint
ORDER BY stream_id, from_seq
"""


async def first_losses(
    session: AsyncSession, run_id: UUID, stream_ids: Sequence[UUID], *, at_most: int
) -> dict[UUID, tuple[int, list[Loss]]]:
    """Of those of the streams that declared losses: how many ranges each has, and the first of these, in order."""
    rows = await fetch(session, _FIRST_LOSSES, run_id, list(stream_ids), at_most)
    found = {stream_id: list(of_stream) for stream_id, of_stream in groupby(rows, key=itemgetter(0))}
    return {
        stream_id: (of_stream[0][4], [Loss(row[1], row[2], row[3]) for row in of_stream])
        for stream_id, of_stream in found.items()
    }


async def losses_behind(session: AsyncSession, run_id: UUID, stream_id: UUID, *, seq: int, at_most: int) -> list[Loss]:
    """The declared losses of a stream that begin behind a record, in order."""
    chosen = (
        select(StreamLoss.from_seq, StreamLoss.to_seq, StreamLoss.reason)
        .where(StreamLoss.run_id == run_id, StreamLoss.stream_id == stream_id, StreamLoss.from_seq > seq)
        .order_by(StreamLoss.from_seq)
        .limit(at_most)
    )
    return [Loss(*row) for row in await session.execute(chosen)]


async def count_of_run(session: AsyncSession, run_id: UUID) -> int:
    """How many streams the run has, of every kind."""
    return int((await fetch(session, "SELECT count(*) FROM stream WHERE run_id = $1::uuid", run_id))[0][0])


async def coverage_of_run(session: AsyncSession, run_id: UUID, kind: Kind = SIMPLE) -> list[Coverage]:
    """The steps of those streams of a kind that have any, oldest stream first."""
    return [Coverage.of_row(*row) for row in await read(session, _COVERAGE, run_id, kind)]


async def cursors_of_run(session: AsyncSession, run_id: UUID) -> tuple[tuple[UUID, int], ...]:
    """How far each stream of the run has come: no record of any sort is stored without moving one of them."""
    rows = await fetch(session, "SELECT id, next_seq FROM stream WHERE run_id = $1 ORDER BY id", run_id)
    return tuple((row[0], row[1]) for row in rows)
