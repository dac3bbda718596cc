"""Reading and writing what projects take for granted."""

from collections.abc import Collection
from dataclasses import asdict
from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from noisescale_core.advice.defaults import Defaults
from noisescale_server.storage.platform.driver import read
from noisescale_server.storage.platform.tables import Table

_COLUMNS = ("device_hour_price", "currency", "usd_per_unit", "preference", "examples_per_step", "fixed_hardware")
_READ = f"SELECT project_id, {', '.join(_COLUMNS)} FROM project_default WHERE project_id = ANY($1::uuid[])"  # noqa: S608  # names of columns


class ProjectDefault(Table):
    """Price of a device and worth of a step where neither a run nor a question says them.

    A project has one row or none. The price is in `currency`, of which one unit is worth `usd_per_unit`.
    """

    __tablename__ = "project_default"
    __table_args__ = (
        CheckConstraint("device_hour_price > 0 AND usd_per_unit > 0", name="prices"),
        CheckConstraint(
            "num_nonnulls(preference, examples_per_step, nullif(fixed_hardware, false)) <= 1", name="worth"
        ),
    )

    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), primary_key=True)
    device_hour_price: Mapped[float | None]
    currency: Mapped[str] = mapped_column(server_default="USD")
    usd_per_unit: Mapped[float] = mapped_column(server_default="1")
    preference: Mapped[float | None]
    examples_per_step: Mapped[float | None]
    fixed_hardware: Mapped[bool] = mapped_column(server_default="false")
    changed_at: Mapped[datetime] = mapped_column(server_default=func.now())


async def of_projects(session: AsyncSession, project_ids: Collection[UUID]) -> dict[UUID, Defaults]:
    """By project; those that say nothing are left out."""
    rows = await read(session, _READ, list(set(project_ids)))
    return {row["project_id"]: Defaults(**{name: row[name] for name in _COLUMNS}) for row in rows}


async def put(session: AsyncSession, project_id: UUID, wanted: Defaults) -> None:
    """Let the project say exactly this."""
    values = asdict(wanted)
    stored = insert(ProjectDefault).values(project_id=project_id, changed_at=func.now(), **values)
    changed = {**values, "changed_at": stored.excluded.changed_at}
    await session.execute(stored.on_conflict_do_update(index_elements=[ProjectDefault.project_id], set_=changed))
