"""How many names the metrics of one run may have: a list of them is read as a whole by people and pages."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.ingest import metrics
from noisescale_server.storage.ingest.ledger import REJECTED
from noisescale_server.storage.ingest.metrics import MetricBatch
from noisescale_server.storage.platform.driver import plan_anew
from noisescale_server.storage.runs import runs
from noisescale_server.storage.runs.streams import Loss

MAX_NAMES = 10_000
"""Of all streams of a run together."""


@dataclass(frozen=True, slots=True)
class OneNameTooMany:
    """A record that is not stored, since the run would have too many names: the first of its names that is new."""

    seq: int
    name: str


async def beyond_limit(session: AsyncSession, run_id: UUID, columns: MetricBatch) -> list[OneNameTooMany]:
    """The records for whose names the run has no room, first come, first served."""
    given = sorted(set(columns.name))
    if not await metrics.new_names(session, run_id, given):
        return []
    await plan_anew(session)
    # another stream of the run may be adding names: whoever holds the run's row knows all there are
    await runs.lock(session, run_id)
    new = await metrics.new_names(session, run_id, given)
    room = MAX_NAMES - await metrics.count_names(session, run_id, at_most=MAX_NAMES)
    return _without_room(columns, new, room) if len(new) > room else []


def _without_room(columns: MetricBatch, new: Collection[str], room: int) -> list[OneNameTooMany]:
    let_in: set[str] = set()
    found = []
    for seq, rows in groupby(zip(columns.seq, columns.name, strict=True), key=lambda row: row[0]):
        wanted = [name for _, name in rows if name in new and name not in let_in]
        if len(let_in) + len(wanted) <= room:
            let_in.update(wanted)
        else:
            found.append(OneNameTooMany(seq, wanted[0]))
    return found


def refused_before(columns: MetricBatch, losses: Sequence[Loss], kept: Sequence[Loss]) -> list[OneNameTooMany]:
    """The same records of a batch that comes again: those that were kept as rejected, but came as good ones.

    Args:
        columns: The metrics of the batch, as they came.
        losses: What the batch itself declares lost or rejected.
        kept: What was stored as lost or rejected when it came before.
    """
    declared = {loss.from_seq for loss in losses if loss.reason == REJECTED}
    refused = {loss.from_seq for loss in kept if loss.reason == REJECTED} - declared
    first_rows = (
        next(rows) for _, rows in groupby(zip(columns.seq, columns.name, strict=True), key=lambda row: row[0])
    )
    return [OneNameTooMany(seq, name) for seq, name in first_rows if seq in refused]
