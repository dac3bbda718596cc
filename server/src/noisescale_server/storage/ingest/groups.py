"""Group measurements: the five sums per layer."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from uuid import UUID

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.row_tables import GroupMeasurement
from noisescale_server.storage.series import group_pyramid


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """Sums since the stream's last group record; one element a column for each layer."""

    seq: int
    step: int
    wall_time: float
    names: list[str]
    num_updates: list[int]
    sum_trace_cov: list[float | None]
    sum_grad_sq_norm: list[float | None]
    sum_trace_cov_sq: list[float | None]
    sum_grad_sq_norm_sq: list[float | None]
    sum_trace_cov_grad_sq_norm: list[float | None]


async def store(session: AsyncSession, *, run_id: UUID, stream_id: UUID, records: Sequence[GroupRecord]) -> None:
    """Insert the records in their order, and add them to the pyramid."""
    rows = [{"run_id": run_id, "stream_id": stream_id, **asdict(record)} for record in records]
    await session.execute(insert(GroupMeasurement), rows)
    await group_pyramid.add(session, run_id=run_id, stream_id=stream_id, seqs=[record.seq for record in records])
