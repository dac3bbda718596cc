"""Accepts a batch once, however often it is sent: the stream's cursor decides what is new.

One transaction: lock the cursor, drop what is stored already, insert the rest and fold it into the pyramid, move the
cursor on, refresh what the run shows. The row lock lets any number of servers take batches of one stream.
"""

import math
import operator
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.divergence import broken_since, seen_of_gradients, seen_of_loss
from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.step_sizes import SEEN, batch_in_use
from noisescale_server.services.ingest import metric_names
from noisescale_server.services.ingest.metric_names import OneNameTooMany
from noisescale_server.services.ingest.window_turns import WindowTurns
from noisescale_server.services.platform.errors import (
    RunDeleted,
    RunNotFound,
    StreamConflict,
    StreamGap,
    TooManyStreams,
)
from noisescale_server.services.series import latest
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.storage.alerts import late
from noisescale_server.storage.ingest import groups, measurements, metrics, progress
from noisescale_server.storage.ingest.groups import GroupRecord
from noisescale_server.storage.ingest.ledger import REJECTED
from noisescale_server.storage.ingest.measurements import MeasurementColumns
from noisescale_server.storage.ingest.metrics import MetricBatch
from noisescale_server.storage.ingest.progress import Advance, LatestWindow, RunNews
from noisescale_server.storage.runs import runs, streams
from noisescale_server.storage.runs.runs import NewRun
from noisescale_server.storage.runs.streams import SIMPLE, Coverage, Cursor, Loss, StreamInfo

OF_ANOTHER_RUN = "it belongs to another run"
MAX_STREAMS = 10_000
"""Of a run: a job that is started again has one for each kind, and each view of the run looks at all of them."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The first record of a stream; a later one says anew how the stream measures."""

    seq: int
    run: NewRun
    stream: StreamInfo


@dataclass(frozen=True, slots=True)
class Finish:
    """The last record of a stream."""

    seq: int
    status: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Batch:
    """Records first_seq … last_seq of a stream: each is in one of the parts, or declared lost."""

    run_id: UUID
    stream_id: UUID
    first_seq: int
    last_seq: int
    crc32: int
    run: RunRecord | None = None
    measurements: MeasurementColumns | None = None
    metrics: MetricBatch | None = None
    groups: Sequence[GroupRecord] = ()
    finish: Finish | None = None
    lost: Sequence[Loss] = ()

    def since(self, seq: int) -> "Batch":
        """The same batch without the records before `seq`."""
        if seq <= self.first_seq:
            return self
        return replace(
            self,
            run=self.run if self.run and self.run.seq >= seq else None,
            measurements=self.measurements and self.measurements.since(seq),
            metrics=self.metrics and self.metrics.since(seq),
            groups=[record for record in self.groups if record.seq >= seq],
            finish=self.finish if self.finish and self.finish.seq >= seq else None,
            lost=[Loss(max(loss.from_seq, seq), loss.to_seq, loss.reason) for loss in self.lost if loss.to_seq >= seq],
        )


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a job is told after COMMIT.

    Attributes:
        acked_seq: The last record that is stored, rejected or declared lost, for the client to forget all up to there.
        epoch: Of the data; another one than before says that a backup was restored.
        database_id: Where they are stored; a restored backup keeps it.
        refused: Records that are rejected, since the run's metrics would have too many names.
    """

    acked_seq: int
    epoch: UUID
    database_id: UUID
    refused: Sequence[OneNameTooMany] = ()


async def accept(session: AsyncSession, batch: Batch, turns: WindowTurns | None = None) -> Accepted:
    """How far the stream is stored once the transaction commits.

    Args:
        session: Where to write.
        batch: Records of one stream.
        turns: Of batches to compute their run's latest window where it is due; without them each does.

    Raises:
        RunNotFound: When neither the run nor a `run` record exists.
        RunDeleted: When the run was deleted.
        StreamGap: When records before this batch are missing.
        StreamConflict: When the stream belongs to another run or is of another kind, or these numbers came with
            another checksum.
        TooManyStreams: When the run may have no more.
    """
    cursor = await streams.lock(session, batch.run_id, batch.stream_id) or await _create(session, batch)
    if batch.run is not None and batch.run.stream.kind != cursor.kind:
        raise StreamConflict(batch.stream_id, f"it is of kind {cursor.kind}, not {batch.run.stream.kind}")
    if batch.first_seq > cursor.next_seq:
        raise StreamGap(
            batch.stream_id,
            expected_seq=cursor.next_seq,
            first_seq=batch.first_seq,
            epoch=cursor.epoch,
            database_id=cursor.database_id,
        )
    refused = await _refused_before(session, batch) if batch.first_seq < cursor.next_seq else []
    if batch.last_seq < cursor.next_seq:
        _check_repeated(batch, cursor)
        return Accepted(cursor.next_seq - 1, cursor.epoch, cursor.database_id, refused)
    if batch.measurements and cursor.is_due and turns is not None:
        cursor = replace(cursor, is_due=turns.take())
    refused += await _store(session, batch.since(cursor.next_seq), cursor)
    return Accepted(batch.last_seq, cursor.epoch, cursor.database_id, refused)


async def _refused_before(session: AsyncSession, batch: Batch) -> list[OneNameTooMany]:
    """What was rejected when records of the batch came before: the answer may not have arrived."""
    if batch.metrics is None:
        return []
    kept = await streams.losses_between(
        session,
        run_id=batch.run_id,
        stream_id=batch.stream_id,
        first_seq=batch.first_seq,
        last_seq=batch.last_seq,
    )
    return metric_names.refused_before(batch.metrics, batch.lost, kept)


async def _create(session: AsyncSession, batch: Batch) -> Cursor:
    """The locked cursor of a stream that was not there, with its run if a `run` record came."""
    if await streams.run_of(session, batch.stream_id) not in (None, batch.run_id):
        raise StreamConflict(batch.stream_id, OF_ANOTHER_RUN)
    if batch.run is not None:
        await runs.create_if_absent(session, batch.run.run)
    is_held = await runs.hold(session, batch.run_id)
    if await runs.is_deleted(session, batch.run_id):
        raise RunDeleted(batch.run_id)
    if not is_held:
        raise RunNotFound(batch.run_id)
    if await streams.count_of_run(session, batch.run_id) >= MAX_STREAMS:
        raise TooManyStreams(batch.run_id, MAX_STREAMS)
    is_there = await streams.create_if_absent(
        session,
        run_id=batch.run_id,
        stream_id=batch.stream_id,
        kind=batch.run.stream.kind if batch.run else SIMPLE,
        started_at=batch.run.stream.started_at if batch.run else datetime.now(UTC),
    )
    if not is_there:
        raise StreamConflict(batch.stream_id, OF_ANOTHER_RUN)
    cursor = await streams.lock(session, batch.run_id, batch.stream_id)
    assert cursor is not None, "only a deleted run takes its streams with it, and this one is held"
    return cursor


def _check_repeated(batch: Batch, cursor: Cursor) -> None:
    is_newest_batch = (batch.first_seq, batch.last_seq) == (cursor.last_first_seq, cursor.next_seq - 1)
    if is_newest_batch and batch.crc32 != cursor.last_crc:
        numbers = f"records {batch.first_seq} to {batch.last_seq}"
        reason = f"{numbers} came before with checksum {cursor.last_crc}, now with {batch.crc32}"
        raise StreamConflict(batch.stream_id, reason)


async def _store(session: AsyncSession, new: Batch, cursor: Cursor) -> list[OneNameTooMany]:
    """The records that are rejected all the same; the others are inserted, and the cursor is moved on."""
    run_id, stream_id = new.run_id, new.stream_id
    refused = await metric_names.beyond_limit(session, run_id, new.metrics) if new.metrics else []
    if new.metrics and refused:
        kept = new.metrics.without({one.seq for one in refused})
        new = replace(new, metrics=kept, lost=[*new.lost, *(Loss(one.seq, one.seq, REJECTED) for one in refused)])
    if new.run is not None:
        await streams.describe(session, run_id=run_id, stream_id=stream_id, info=new.run.stream)
    if new.measurements:
        await measurements.store(
            session, run_id=run_id, stream_id=stream_id, series=cursor.kind, columns=new.measurements
        )
        seconds = time.time() - new.measurements.wall_time[-1]
        if cursor.is_newest and late.LATE_SECONDS <= seconds < math.inf:
            await late.note(session, run_id, seconds)
    if new.metrics:
        await metrics.store(session, run_id=run_id, stream_id=stream_id, columns=new.metrics)
    if new.groups:
        await groups.store(session, run_id=run_id, stream_id=stream_id, records=new.groups)
    if new.lost:
        await streams.store_losses(session, run_id=run_id, stream_id=stream_id, losses=new.lost)
    await _move_on(session, new, cursor, advance_of(new, cursor))
    return refused


def advance_of(new: Batch, cursor: Cursor) -> Advance:
    """How far the batch moves the stream on; what it holds before the cursor has been dropped."""
    rows = new.measurements
    first_seq = max(new.first_seq, cursor.next_seq)
    num_rejected = sum(loss.to_seq - loss.from_seq + 1 for loss in new.lost if loss.reason == REJECTED)
    num_lost = sum(loss.to_seq - loss.from_seq + 1 for loss in new.lost) - num_rejected
    return Advance(
        # the numbers as sent, for telling a repeated batch from another one
        first_seq=new.first_seq,
        next_seq=new.last_seq + 1,
        crc32=new.crc32,
        num_stored=new.last_seq - first_seq + 1 - num_lost - num_rejected,
        num_lost=num_lost,
        num_rejected=num_rejected,
        num_measurements=len(rows) if rows else 0,
        num_estimates=len(rows) - rows.sum_trace_cov.count(None) if rows else 0,
        first_step=_first_step(rows) if rows else None,
        last_step=max(rows.step) if rows else None,
        finished_at=new.finish.at if new.finish else None,
    )


def _first_step(rows: MeasurementColumns) -> int:
    """The first step that the rows cover; a stream that began within a row covers from step 0."""
    before: int = min(map(operator.sub, rows.step, rows.num_updates))
    return max(0, before + 1)


async def _move_on(session: AsyncSession, new: Batch, cursor: Cursor, change: Advance) -> None:
    """Move the cursor; the run shows what came, and where due and at its end the latest window's noise scale.

    Any other batch leaves the window stale, for `stale_windows` to refresh: nobody says that a job was killed.
    What a run shows comes from kind simple alone: streams of the other kinds only add their name to its row.
    """
    run_id, stream_id = new.run_id, new.stream_id
    if cursor.kind != SIMPLE:
        begins = cursor.first_step is None and change.first_step is not None
        await progress.store_of_other_kind(
            session, run_id=run_id, stream_id=stream_id, advance=change, new_kind=cursor.kind if begins else None
        )
        return
    if not cursor.is_newest:
        await progress.store_of_overtaken(session, run_id=run_id, stream_id=stream_id, advance=change)
        return
    await progress.store(
        session,
        run_id=run_id,
        stream_id=stream_id,
        advance=change,
        news=news_of(new, cursor, change),
        window=await _latest_window(session, new, cursor, change),
        run_as_read=cursor.run_updated_at,
    )


async def _latest_window(session: AsyncSession, new: Batch, cursor: Cursor, change: Advance) -> LatestWindow | None:
    """The window with this batch; None where the run's stays as it is."""
    if not (new.finish or (new.measurements and cursor.is_due)):
        return None
    covered = await _coverage(session, new, cursor, change)
    return await latest.window(session, LiveSeries.of(new.run_id, SIMPLE, covered))


async def _coverage(session: AsyncSession, new: Batch, cursor: Cursor, change: Advance) -> list[Coverage]:
    """The steps of the run's simple streams with this batch, which no row says yet; a lone one needs no query."""
    covered = [] if cursor.is_alone else await streams.coverage_of_run(session, new.run_id)
    others = [one for one in covered if one.stream_id != new.stream_id]
    first_steps = [step for step in (cursor.first_step, change.first_step) if step is not None]
    last_steps = [step for step in (cursor.last_step, change.last_step) if step is not None]
    if not first_steps:
        return others
    own = Coverage(
        stream_id=new.stream_id,
        started_at=cursor.started_at,
        first_step=min(first_steps),
        last_step=max(last_steps),
        num_measurements=cursor.num_measurements + change.num_measurements,
        num_estimates=cursor.num_estimates + change.num_estimates,
        folded=tuple(cursor.folded),
    )
    return [*others, own]


def news_of(new: Batch, cursor: Cursor, change: Advance) -> RunNews:
    """What the run's row takes from a batch of its newest simple stream."""
    info, finish = new.run and new.run.stream, new.finish
    return RunNews(
        newest_started_at=info.started_at if info else cursor.started_at,
        is_resumed=cursor.next_seq == 1,
        first_step=change.first_step,
        measure_every=info.measure_every if info else None,
        num_ranks=info.num_ranks if info else None,
        notes=info.notes if info else None,
        optimizer=info.optimizer if info else None,
        estimator=info.estimator if info else None,
        loss_reduction=info.loss_reduction if info else None,
        finished_at=finish.at if finish else None,
        finish_status=finish.status if finish else None,
        **(_of_newest_row(new.measurements) if new.measurements else {}),
    )


def _of_newest_row(rows: MeasurementColumns) -> dict[str, Any]:
    sum_loss, num_loss = rows.sum_loss[-1], rows.num_loss[-1]
    return {
        "latest_step": rows.step[-1],
        "latest_examples": rows.examples[-1],
        "latest_loss": sum_loss / num_loss if sum_loss is not None and num_loss else None,
        "latest_lr": rows.lr[-1],
        "latest_global_batch": _batch_in_use(rows),
        "latest_num_micro_batches": rows.num_micro_batches[-1],
        "latest_flags": rows.flags[-1],
        **_of_finite_values(rows),
    }


def _of_finite_values(rows: MeasurementColumns) -> dict[str, Any]:
    """Since which step losses and gradients are not finite, as far as these rows tell."""
    # what was before the last finite value is over
    after_loss = 1 + _last_place(rows, lambda place: rows.num_loss[place] > 0)
    after_gradients = 1 + _last_place(rows, lambda place: rows.sum_trace_cov[place] is not None)
    losses = (
        # a row without a finite loss covers the steps since the row before it
        (rows.step[place] - rows.num_updates[place] + 1, seen_of_loss(rows.flags[place], rows.num_loss[place]))
        for place in range(after_loss, len(rows))
    )
    gradients = (
        (rows.step[place], seen_of_gradients(rows.flags[place], has_terms=False))
        for place in range(after_gradients, len(rows))
    )
    return {
        "has_finite_loss": after_loss > 0,
        "loss_broken_since": broken_since(None, losses),
        "has_finite_gradients": after_gradients > 0,
        "gradients_broken_since": broken_since(None, gradients),
    }


def _last_place(rows: MeasurementColumns, is_one: Callable[[int], bool]) -> int:
    return next(filter(is_one, range(len(rows) - 1, -1, -1)), -1)


def _batch_in_use(rows: MeasurementColumns) -> float | None:
    """The batch of these rows; None where none is known, or all rows are of far smaller steps."""
    newest_first = zip(reversed(rows.global_batch), reversed(rows.flags), reversed(rows.sum_trace_cov), strict=True)
    sizes = (
        size
        for size, flags, trace_cov in newest_first
        if size is not None and not (flags & Flags.SMALLER_STEP and trace_cov is None)
    )
    return batch_in_use(list(islice(sizes, SEEN))[::-1])
