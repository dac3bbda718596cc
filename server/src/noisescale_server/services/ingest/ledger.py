"""Whether nothing was lost or doubled: next_seq - 1 = stored + declared lost + rejected, of every stream."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.ingest import ledger
from noisescale_server.storage.ingest.ledger import StreamAudit
from noisescale_server.storage.platform.tables import Stream


@dataclass(frozen=True, slots=True)
class RunLedger:
    """The ledgers of a run's streams, added up.

    Attributes:
        num_streams: Streams of the run.
        num_open: Those that have not said that they are finished.
        num_acked: Records that jobs may forget.
        num_stored: Of these, stored.
        num_lost: Of these, declared lost by the job.
        num_rejected: Of these, refused by the server.
        is_true: The last three make up `num_acked` in each stream.
    """

    num_streams: int
    num_open: int
    num_acked: int
    num_stored: int
    num_lost: int
    num_rejected: int
    is_true: bool


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit of all streams found.

    Attributes:
        num_streams: How many there are.
        wrong: Those whose ledger is not true.
    """

    num_streams: int
    wrong: Sequence[StreamAudit]


def of_streams(streams: Iterable[Stream]) -> RunLedger:
    """The ledgers of a run's streams, added up."""
    rows = list(streams)
    return RunLedger(
        num_streams=len(rows),
        num_open=sum(row.finished_at is None for row in rows),
        num_acked=sum(row.next_seq - 1 for row in rows),
        num_stored=sum(row.num_stored for row in rows),
        num_lost=sum(row.num_lost for row in rows),
        num_rejected=sum(row.num_rejected for row in rows),
        is_true=all(row.next_seq - 1 == row.num_stored + row.num_lost + row.num_rejected for row in rows),
    )


async def audit(session: AsyncSession) -> Audit:
    """Every stream's counters against each other and against the rows that are there."""
    return Audit(await ledger.num_streams(session), await ledger.wrong_streams(session))


def sentence(stream: StreamAudit) -> str:
    """What is wrong with a stream."""
    return (
        f"stream {stream.stream_id} of run {stream.run_id}: {stream.num_acked} acknowledged; counted "
        f"{stream.num_stored} stored (of these {stream.num_measurements} measurements), {stream.num_lost} lost, "
        f"{stream.num_rejected} rejected; found {stream.found_records} records with rows "
        f"({stream.found_measurements} measurements, and {stream.num_folded} folded into a pyramid of "
        f"{stream.found_in_pyramid}), {stream.found_lost} lost, {stream.found_rejected} rejected, "
        f"{stream.found_beyond} rows beyond"
    )
