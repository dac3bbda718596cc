"""Takes the rows of deleted runs away, a few thousand a transaction, and notes when the last of a run is gone."""

from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import fetch, read
from noisescale_server.storage.platform.row_tables import GONE_LATER as KEYS

_NEXT = "SELECT id FROM deleted_run WHERE purged_at IS NULL ORDER BY deleted_at, id LIMIT $1::bigint"
_PURGED = "UPDATE deleted_run SET purged_at = statement_timestamp() WHERE id = $1::uuid AND purged_at IS NULL"


# the last of the next rows along the key of one run, and all up to there: no scan, and one node of a distributed one
_END = {
    table: f"SELECT {', '.join(keys)} FROM {table} WHERE run_id = $1::uuid"  # noqa: S608 - names of our own
    f" ORDER BY {', '.join(keys)} OFFSET $2::bigint LIMIT 1"
    for table, keys in KEYS.items()
}
_TAKE = {
    table: f"DELETE FROM {table} WHERE run_id = $1::uuid AND ({', '.join(keys)})"  # noqa: S608 - the same
    f" <= ({', '.join(f'${number}' for number in range(2, len(keys) + 2))})"
    for table, keys in KEYS.items()
}
_TAKE_REST = {table: f"DELETE FROM {table} WHERE run_id = $1::uuid" for table in KEYS}  # noqa: S608 - the same
_COUNT = {table: f"SELECT count(*) FROM {table} WHERE run_id = $1::uuid" for table in KEYS}  # noqa: S608 - the same


async def waiting(session: AsyncSession, limit: int) -> list[UUID]:
    """Deleted runs whose rows may still be there, those deleted first at the head."""
    return [row[0] for row in await read(session, _NEXT, limit)]


async def take(session: AsyncSession, run_id: UUID, at_most: int) -> int:
    """Rows of a deleted run that went; fewer than `at_most` when none is left.

    Nothing writes to it any more: what a job still sends of a deleted run is refused.
    """
    taken = 0
    for table in KEYS:
        end = await fetch(session, _END[table], run_id, at_most - taken - 1)
        if end:
            await fetch(session, _TAKE[table], run_id, *end[0])
            return at_most
        taken += (await fetch(session, _COUNT[table], run_id))[0][0]
        await fetch(session, _TAKE_REST[table], run_id)
    await fetch(session, _PURGED, run_id)
    return taken


async def count(session: AsyncSession, run_id: UUID) -> int:
    """Rows of a deleted run that are still there."""
    return sum([(await fetch(session, _COUNT[table], run_id))[0][0] for table in KEYS])
