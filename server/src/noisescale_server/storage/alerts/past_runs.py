"""Runs of the last days, for a dry run of a rule."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.tables import Run


async def newest(session: AsyncSession, project_id: UUID, *, heard_after: datetime, limit: int) -> Sequence[Run]:
    """A project's runs from which something came since, those heard last first; neither archived nor imported ones."""
    query = select(Run).where(Run.project_id == project_id, Run.updated_at > heard_after, ~Run.archived)
    query = query.where(~Run.config.has_key("imported_from"))
    return (await session.scalars(query.order_by(Run.updated_at.desc(), Run.id).limit(limit))).all()
