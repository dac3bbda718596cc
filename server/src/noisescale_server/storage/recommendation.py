"""What to do with each run's batch, as it is kept with the run: lists are filtered by it, and need no measurements.

It is for a reader who says no price, and of the moment of its last look. A batch marks the run once there is more to
judge by; so does whatever else it rests on, such as a sweep of the task.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, and_, case, func, not_, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.parts.parts import Decision
from noisescale_core.estimators.divergence import MIN_GRADIENT_STEPS
from noisescale_server.storage.platform.driver import fetch
from noisescale_server.storage.platform.tables import Run

UNDECIDED = "insufficient_evidence"
CHANGES = ("increase", "decrease", "probably_increase", "probably_decrease")
"""Decisions for another batch."""

MOST_MARKED: Final = 5_000
"""Runs of a project that are judged again at once."""

_STALE = """
SELECT id FROM run WHERE decision_is_stale AND first_step IS NOT NULL AND NOT window_is_stale
ORDER BY latest_refreshed_at DESC NULLS LAST LIMIT $1::bigint"""

_CLAIM = """
SELECT id FROM run
WHERE id = $1::uuid AND decision_is_stale AND pg_try_advisory_xact_lock(hashtextextended($1::uuid::text, 22))"""

# what has come since the run was read is judged next time
_STORE = """
UPDATE run SET decision = $2::text, decision_batch_size = $3::bigint, decision_low = $4::float8,
  decision_high = $5::float8, decision_reason = $6::text, decision_probability = $7::float8,
  decision_saving = $8::float8, decision_due_step = $9::bigint,
  decision_is_stale = coalesce(latest_step >= $9::bigint, false) OR finish_status IS DISTINCT FROM $10::text
WHERE id = $1::uuid"""


async def stale(session: AsyncSession, limit: int) -> list[UUID]:
    """Runs that there is more to judge by, those in use first; not those whose window lacks rows."""
    return [row[0] for row in await fetch(session, _STALE, limit)]


async def claim(session: AsyncSession, run_id: UUID) -> bool:
    """True if the run is stale and no other server judges it; then none does until the transaction ends.

    No lock of the row: batches go on.
    """
    return bool(await fetch(session, _CLAIM, run_id))


async def store(session: AsyncSession, run: Run, found: Decision, due_step: int | None) -> None:
    """Keep a decision.

    Args:
        session: Where to write.
        run: As it was read.
        found: What to do.
        due_step: From which step on there is more to judge by.
    """
    await fetch(session, _STORE, run.id, *columns_of(found).values(), due_step, run.finish_status)


def columns_of(found: Decision) -> dict[str, str | float | None]:
    """What columns of `run` say of a decision, in the order of the statement."""
    return {
        "decision": found.decision,
        "decision_batch_size": found.batch_size,
        "decision_low": found.low,
        "decision_high": found.high,
        "decision_reason": found.reason,
        "decision_probability": found.probability,
        "decision_saving": found.saving,
    }


async def mark_project(session: AsyncSession, project_id: UUID) -> None:
    """Let the runs of a project be judged again, as what is known of κ has changed: the newest ones, if there are many.

    To mark 50,000 takes longer than a request may; what is older keeps what was said of it.
    """
    in_use = select(Run.id).where(Run.project_id == project_id, not_(Run.archived), not_(Run.decision_is_stale))
    ids = (await session.scalars(in_use.order_by(Run.heard_at.desc()).limit(MOST_MARKED))).all()
    await session.execute(update(Run).where(Run.id.in_(ids)).values(decision_is_stale=True))


def decision_word() -> ColumnElement[str]:
    """What to do with each run's batch."""
    return case((has_diverged(), UNDECIDED), else_=func.coalesce(Run.decision, UNDECIDED))


def is_one_of(words: Sequence[str]) -> ColumnElement[bool]:
    """Whether what to do is one of these words; so that Postgres knows how many runs there are of each."""
    named = and_(Run.decision.in_([word for word in words if word != UNDECIDED]), not_(has_diverged()))
    if UNDECIDED not in words:
        return named
    return or_(named, has_diverged(), Run.decision.is_(None), Run.decision == UNDECIDED)


def has_diverged() -> ColumnElement[bool]:
    """Whether `estimators.divergence` says so."""
    num_steps = Run.latest_step - Run.gradients_broken_since + 1
    return or_(Run.loss_broken_since.is_not(None), func.coalesce(num_steps, 0) >= MIN_GRADIENT_STEPS)
