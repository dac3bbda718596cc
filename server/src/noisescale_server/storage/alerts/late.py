"""When records came late: written as they come, and read by a dry run of a rule about them."""

from collections.abc import Collection
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.alerts.rows import LateArrival
from noisescale_server.storage.platform.driver import fetch

LATE_SECONDS: Final = 60.0
"""What came sooner is not noted: no rule asks for less."""

_NOTE: Final = """
INSERT INTO late_arrival (run_id, at, seconds)
SELECT $1::uuid, now(), $2::float8
WHERE NOT EXISTS (SELECT FROM late_arrival WHERE run_id = $1::uuid AND at > now() - interval '1 minute')
ON CONFLICT DO NOTHING"""


async def note(session: AsyncSession, run_id: UUID, seconds: float) -> None:
    """Note that the run's newest record is so old as it comes, unless that was noted within the last minute."""
    await fetch(session, _NOTE, run_id, seconds)


async def of_runs(
    session: AsyncSession, run_ids: Collection[UUID], *, after: datetime
) -> dict[UUID, list[tuple[datetime, float]]]:
    """(when, seconds late) of each run since then, oldest first; runs without any are left out."""
    query = select(LateArrival).where(LateArrival.run_id.in_(run_ids), LateArrival.at > after)
    found: dict[UUID, list[tuple[datetime, float]]] = {}
    for one in (await session.scalars(query.order_by(LateArrival.at))).all():
        found.setdefault(one.run_id, []).append((one.at, one.seconds))
    return found


async def forget(session: AsyncSession, *, before: datetime) -> None:
    """Delete what is older."""
    await session.execute(delete(LateArrival).where(LateArrival.at < before))
