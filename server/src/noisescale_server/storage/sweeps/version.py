"""What a sweep's answers rest on, as a short text that changes with any of it."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import fetch

VERSIONS = """
SELECT r.sweep_id, md5(string_agg(
    r.run_id::text || r.xmin::text || coalesce(s.id::text || s.xmin::text, ''), ',' ORDER BY r.run_id, s.id))
FROM sweep_run r LEFT JOIN stream s ON s.run_id = r.run_id
WHERE r.sweep_id = ANY($1)
GROUP BY r.sweep_id
"""


async def version_of(session: AsyncSession, sweep_id: UUID) -> str:
    """A hash over the sweep's runs and the streams of those that are stored; of no run an empty text.

    It reads no curve. Every batch of records moves its stream's cursor and every attachment writes its row, and
    Postgres numbers the transaction that did it (`xmin`), so nothing changes without the hash.
    """
    return (await versions_of(session, [sweep_id]))[sweep_id]


async def versions_of(session: AsyncSession, sweep_ids: Sequence[UUID]) -> dict[UUID, str]:
    """The version of each sweep, in one statement."""
    found = dict(await fetch(session, VERSIONS, list(sweep_ids)))
    return {sweep_id: found.get(sweep_id, "") for sweep_id in sweep_ids}
