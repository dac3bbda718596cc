"""Runs that rules may have something to say of, as they stand."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from asyncpg import Record
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform import placement
from noisescale_server.storage.platform.driver import fetch, read
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs.runs import BEHIND

# what has ended is looked at once more: it may have been resolved, or diverged, with its last record.
# An imported run tells of what has happened already, and a thousand of them would tell of it at once
_RUNS = """
SELECT run.id, run.project_id, run.name, run.finish_status, run.updated_at, run.noise_scale_state,
  run.noise_scale_value, run.latest_global_batch, run.decision_batch_size, run.decision_probability,
  run.decision_saving, run.noise_scale_flags, run.noise_scale_reason, run.loss_broken_since,
  run.gradients_broken_since, run.latest_step, run.planned_steps, run.num_devices, run.usd_per_device_hour,
  run.newest_started_at, stream.first_step AS newest_first_step,
  (SELECT wall_time FROM measurement WHERE run_id = run.id AND stream_id = run.newest_stream_id
    ORDER BY seq DESC LIMIT 1) AS latest_wall_time
FROM run LEFT JOIN stream ON stream.run_id = run.id AND stream.id = run.newest_stream_id
WHERE run.project_id = ANY($1::uuid[]) AND NOT run.archived AND run.updated_at > $2::timestamptz
  AND run.heard_at > $4::timestamptz
  AND NOT run.config ? 'imported_from'
  AND (run.finish_status IS NULL OR run.updated_at > $3::timestamptz)"""

_LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended('noisescale alerts', 0))"


async def is_ours(session: AsyncSession) -> bool:
    """Whether no other server looks at the moment; then none does until the transaction ends."""
    # it reads runs of every node, and then writes down what it has noticed
    await placement.one_connection_a_node(session)
    ((found,),) = await fetch(session, _LOCK)
    return bool(found)


async def runs(
    session: AsyncSession, project_ids: Collection[UUID], *, heard_after: datetime, ended_after: datetime
) -> list[Record]:
    """Runs of these projects that go on or have just ended.

    Args:
        session: Sees every project.
        project_ids: Those with rules.
        heard_after: Those from which nothing has come since are left alone.
        ended_after: Those that have ended before are, too.
    """
    return await read(session, _RUNS, list(project_ids), heard_after, ended_after, heard_after - BEHIND)


# Runs of the last days, for a dry run of a rule.


async def past_runs(session: AsyncSession, project_id: UUID, *, heard_after: datetime, limit: int) -> Sequence[Run]:
    """A project's runs from which something came since, those heard last first; neither archived nor imported ones."""
    query = select(Run).where(Run.project_id == project_id, Run.updated_at > heard_after, ~Run.archived)
    query = query.where(~Run.config.has_key("imported_from"))
    return (await session.scalars(query.order_by(Run.updated_at.desc(), Run.id).limit(limit))).all()
