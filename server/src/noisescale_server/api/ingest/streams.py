"""/api/v1/streams: batches of measurements in, the cursor out."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, BackgroundTasks, Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.api.access.rates import count_batch, count_too_large
from noisescale_server.api.access.route import enter_run, note_author, sessions_of
from noisescale_server.api.ingest.rejection import read_batch
from noisescale_server.api.ingest.wire_checks import Code
from noisescale_server.api.ingest.wire_schemas import BatchBody, Finish, Groups, Measurements, Metrics, RunRecord
from noisescale_server.api.platform.body import read_body
from noisescale_server.api.platform.deps import (
    RUN_DELETED,
    ReadSession,
    RunId,
    Session,
    StreamId,
    body_of,
    problem_said,
)
from noisescale_server.api.platform.refusals import BodyTooLarge
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.api.platform.transactions import commit_with_retry
from noisescale_server.services.ingest import ingestion, streams
from noisescale_server.services.ingest.ingestion import Batch
from noisescale_server.services.ingest.metric_names import MAX_NAMES, OneNameTooMany
from noisescale_server.services.ingest.streams import MAX_RANGES, StreamOfRun
from noisescale_server.storage.ingest.groups import GroupRecord
from noisescale_server.storage.ingest.measurements import COLUMN_NAMES, NO_PATH, MeasurementColumns
from noisescale_server.storage.ingest.metrics import MetricBatch
from noisescale_server.storage.platform.tables import Stream
from noisescale_server.storage.runs.runs import NewRun
from noisescale_server.storage.runs.streams import Loss, StreamInfo

router = APIRouter(tags=["streams"])

MAX_STREAMS = 200
"""Of one answer."""
MAX_LOST_RANGES = 10_000
"""Of one answer."""


class RejectedRecord(Answer):
    """A record that cannot be stored, and why: the others of its batch are."""

    seq: int
    code: Code
    field: str
    message: str


class Acked(Answer):
    """What is stored, rejected or declared lost, after COMMIT."""

    acked_seq: int
    rejected: list[RejectedRecord]
    epoch: UUID
    database_id: UUID


class LostRange(Answer):
    """Records that will never come."""

    from_: Annotated[int, Field(alias="from")]
    to: int
    reason: str


class StreamAnswer(Answer):
    """How a stream measures, its cursor and its ledger: always acked_seq = num_stored + num_lost + num_rejected."""

    stream_id: UUID
    run_id: UUID
    kind: str
    estimator: str | None
    measure_every: int | None
    num_ranks: int | None
    notes: list[str]
    acked_seq: int
    num_stored: int
    num_lost: int
    num_rejected: int
    first_step: int | None
    last_step: int | None
    started_at: datetime
    finished_at: datetime | None


class OneStreamAnswer(StreamAnswer):
    """A stream with the epoch of the data: another one than before says that a backup was restored."""

    epoch: UUID


class StreamOfRunAnswer(StreamAnswer):
    """A stream with the steps that views take from it and what is lost: how many ranges, and the first 100 of each."""

    num_live_ranges: int
    live_steps: list[tuple[int, int]]
    num_lost_ranges: int
    lost: list[LostRange]


class Ledger(Answer):
    """What became of the records of all streams: always num_acked = num_stored + num_lost + num_rejected."""

    num_streams: int
    num_open: int
    num_acked: int
    num_stored: int
    num_lost: int
    num_rejected: int
    is_true: bool


class StreamsAnswer(Answer):
    """A page of a run's streams, oldest first, with the ledger of all of them."""

    ledger: Ledger
    streams: list[StreamOfRunAnswer]
    next_cursor: UUID | None


class LossesAnswer(Answer):
    """A page of the records that a stream declared lost, in order."""

    lost: list[LostRange]
    next_cursor: int | None


class LossesQuery(BaseModel):
    """Which page."""

    model_config = ConfigDict(extra="forbid")

    cursor: Annotated[int, Field(ge=0, lt=1 << 63, description="`next_cursor` of the page before")] = 0
    limit: Annotated[int, Field(ge=1, le=MAX_LOST_RANGES)] = MAX_RANGES


class StreamsQuery(BaseModel):
    """Which page."""

    model_config = ConfigDict(extra="forbid")

    cursor: Annotated[UUID | None, Field(description="`next_cursor` of the page before")] = None
    limit: Annotated[int, Field(ge=1, le=MAX_STREAMS)] = MAX_STREAMS


@router.post(
    "/streams/{stream_id}/batches",
    responses={426: problem_said("another version of the wire format is read here"), **RUN_DELETED},
    openapi_extra=body_of(BatchBody),
    dependencies=[Depends(count_batch)],
)
async def post_batch(stream_id: StreamId, request: Request, behind_the_answer: BackgroundTasks) -> Acked:
    """Store a batch once, however often it is sent; the answer comes after COMMIT."""
    read = read_batch(await _counted_body(request))
    batch = batch_of(stream_id, read.body)
    await enter_run(request, batch.run_id, None if batch.run is None else batch.run.run.project)

    async def store(session: AsyncSession) -> ingestion.Accepted:
        accepted = await ingestion.accept(session, batch, request.app.state.window_turns)
        if batch.run is not None:
            await note_author(request, session, batch.run_id)
        return accepted

    async with request.app.state.batch_turns.take():
        accepted = await commit_with_retry(sessions_of(request), store)
    if batch.finish is not None:
        state = request.app.state
        behind_the_answer.add_task(state.recalibrations.after_finish, state.sessions, batch.run_id)
    rejected = [RejectedRecord(**asdict(record)) for record in read.rejected]
    rejected += [_one_name_too_many(record) for record in accepted.refused]
    num_lost = sum(loss.to_seq - loss.from_seq + 1 for loss in batch.lost)
    num_records = max(batch.last_seq - batch.first_seq + 1 - num_lost - len(rejected), 0)
    request.app.state.process_metrics.count_batch(
        num_records=num_records, num_lost=num_lost, num_rejected=len(rejected)
    )
    return Acked(
        acked_seq=accepted.acked_seq,
        rejected=sorted(rejected, key=lambda one: one.seq),
        epoch=accepted.epoch,
        database_id=accepted.database_id,
    )


def _one_name_too_many(record: OneNameTooMany) -> RejectedRecord:
    message = f"{record.name[:80]!r} is one name too many: a run's metrics have at most {MAX_NAMES} names"
    return RejectedRecord(seq=record.seq, code="too_many_names", field="metrics.name", message=message)


class StandingAnswer(Answer):
    """Where the server stands with a stream."""

    acked_seq: int
    epoch: UUID


@router.post("/streams/{stream_id}/heartbeat", dependencies=[Depends(count_batch)])
async def post_heartbeat(stream_id: StreamId, session: Session) -> StandingAnswer:
    """Where the server stands with a stream that lives and has nothing to send: its run is not silent."""
    return StandingAnswer(**asdict(await streams.hear(session, stream_id)))


@router.get("/streams/{stream_id}", dependencies=[Depends(count_batch)])
async def get_stream(stream_id: StreamId, session: Session) -> OneStreamAnswer:
    """The stream's cursor and ledger, never from a replica: a job that asks goes back to what it is told."""
    fields = _stream_fields(await streams.get(session, stream_id))
    return OneStreamAnswer(**fields, epoch=await streams.epoch(session))


@router.get("/runs/{run_id}/streams")
async def get_streams_of_run(
    run_id: RunId, query: Annotated[StreamsQuery, Query()], session: ReadSession
) -> StreamsAnswer:
    """A page of the run's streams: steps that views take from each, what was lost; is the ledger of all true?"""
    found = await streams.of_run(session, run_id, after=query.cursor, at_most=query.limit)
    return StreamsAnswer(
        ledger=Ledger(**asdict(found.ledger)),
        streams=[_stream_of_run(one) for one in found.streams],
        next_cursor=found.next_id,
    )


@router.get("/runs/{run_id}/streams/{stream_id}/lost")
async def get_losses_of_stream(
    run_id: RunId, stream_id: StreamId, query: Annotated[LossesQuery, Query()], session: ReadSession
) -> LossesAnswer:
    """A page of the ranges of records that the stream declared lost: the run's streams show the first of them."""
    found = await streams.losses_of(session, run_id, stream_id, after=query.cursor, at_most=query.limit)
    return LossesAnswer(lost=[_lost_range(one) for one in found.lost], next_cursor=found.next_seq)


async def _counted_body(request: Request) -> bytes:
    try:
        return await read_body(request)
    except BodyTooLarge:
        count_too_large(request)
        raise


def batch_of(stream_id: UUID, body: BatchBody) -> Batch:
    """The batch in the terms of the services."""
    return Batch(
        run_id=body.run_id,
        stream_id=stream_id,
        first_seq=body.first_seq,
        last_seq=body.last_seq,
        crc32=body.crc32,
        run=_run_record(body.run_id, body.run) if body.run else None,
        measurements=_measurements(body.measurements) if body.measurements else None,
        metrics=_metrics(body.metrics) if body.metrics else None,
        groups=[_group_record(record) for record in body.groups],
        finish=_finish(body.finish) if body.finish else None,
        lost=[Loss(lost.from_, lost.to, lost.reason) for lost in body.lost],
    )


def _run_record(run_id: UUID, record: RunRecord) -> ingestion.RunRecord:
    info = record.stream.model_dump() | {"started_at": _utc(record.stream.started_at)}
    return ingestion.RunRecord(record.seq, NewRun(id=run_id, **record.run.model_dump()), StreamInfo(**info))


def _measurements(columns: Measurements) -> MeasurementColumns:
    num_rows = len(columns.seq)
    given = {name: getattr(columns, name) for name in COLUMN_NAMES}
    # clients of before send none of them
    left_out = {name: [default] * num_rows for name, default in NO_PATH.items() if given[name] is None}
    return MeasurementColumns(**{**given, **left_out})


def _metrics(columns: Metrics) -> MetricBatch:
    return MetricBatch(**{name: getattr(columns, name) for name in Metrics.model_fields})


def _group_record(record: Groups) -> GroupRecord:
    return GroupRecord(**{name: getattr(record, name) for name in Groups.model_fields})


def _finish(record: Finish) -> ingestion.Finish:
    return ingestion.Finish(record.seq, record.status, _utc(record.wall_time))


def _utc(unix_seconds: float) -> datetime:
    return datetime.fromtimestamp(unix_seconds, UTC)


def _stream_of_run(one: StreamOfRun) -> StreamOfRunAnswer:
    return StreamOfRunAnswer(
        **_stream_fields(one.stream),
        num_live_ranges=one.num_live_ranges,
        live_steps=one.live_steps,
        num_lost_ranges=one.num_lost_ranges,
        lost=[_lost_range(loss) for loss in one.lost],
    )


def _lost_range(loss: Loss) -> LostRange:
    return LostRange(**{"from": loss.from_seq, "to": loss.to_seq, "reason": loss.reason})


def _stream_fields(stream: Stream) -> dict[str, object]:
    computed = {"stream_id": stream.id, "acked_seq": stream.next_seq - 1}
    return {name: getattr(stream, name) for name in StreamAnswer.model_fields if name not in computed} | computed
