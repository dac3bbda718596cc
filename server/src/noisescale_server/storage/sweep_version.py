"""What a sweep's answers rest on, as a short text that changes with any of it."""

from uuid import UUID

from sqlalchemy import String, func, literal_column, select
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from noisescale_server.storage.tables import Stream, SweepRun


async def version_of(session: AsyncSession, sweep_id: UUID) -> str:
    """A hash over the sweep's runs and the streams of those that are stored; of no run an empty text.

    It reads no curve. Every batch of records moves its stream's cursor and every attachment writes its row, and
    Postgres numbers the transaction that did it (`xmin`), so nothing changes without the hash.
    """
    stream, run = aliased(Stream, name="the_stream"), aliased(SweepRun, name="the_run")
    stamp = literal_column(
        "the_run.run_id::text || the_run.xmin::text || coalesce(the_stream.id::text || the_stream.xmin::text, '')",
        String,
    )
    query = (
        select(func.md5(func.string_agg(stamp, aggregate_order_by(literal_column("','"), run.run_id, stream.id))))
        .select_from(run)
        .outerjoin(stream, stream.run_id == run.run_id)
        .where(run.sweep_id == sweep_id)
    )
    return await session.scalar(query) or ""
