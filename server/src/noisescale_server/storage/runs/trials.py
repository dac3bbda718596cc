"""Whose trial each run is: `run.trial_of` repeats what sweeps and tags say, so that lists need not look it up.

A run of several sweeps is a trial of the one that had it first; without any, of its task where `noisescale reproduce`
has trained it.
"""

from collections import defaultdict
from collections.abc import Collection
from typing import Final
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.tables import Run, SweepRun

REPRODUCE: Final = "reproduce"
"""The tag of what `noisescale reproduce` trains."""


async def file_anew(session: AsyncSession, run_ids: Collection[UUID]) -> None:
    """Write whose trials the runs are, after their sweeps, tags or tasks have changed."""
    ids = sorted(set(run_ids))
    order = (SweepRun.created_at, SweepRun.sweep_id)
    swept = select(SweepRun.run_id, SweepRun.sweep_id).where(SweepRun.run_id.in_(ids), SweepRun.is_stored)
    first: dict[UUID, UUID] = {}
    for run_id, sweep_id in await session.execute(swept.order_by(*order)):
        first.setdefault(run_id, sweep_id)
    changed: dict[UUID | None, list[UUID]] = defaultdict(list)
    for run_id, task_id, tags, now in await session.execute(
        select(Run.id, Run.task_id, Run.tags, Run.trial_of).where(Run.id.in_(ids)).order_by(Run.id)
    ):
        then = first.get(run_id, of_task(task_id, tags))
        if then != now:
            changed[then].append(run_id)
    for then, runs in changed.items():
        await session.execute(update(Run).where(Run.id.in_(runs)).values(trial_of=then))


def of_task(task_id: UUID, tags: Collection[str]) -> UUID | None:
    """Whose trial a run is that no sweep has."""
    return task_id if REPRODUCE in tags else None
