"""The pinned baseline of a project, as a mapped class."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, func
from sqlalchemy.orm import Mapped, mapped_column

from noisescale_server.storage.platform.tables import Table


class ProjectBaseline(Table):
    """The run that others of the project are compared to; with the run it goes (`storage/runs/queries.py`)."""

    __tablename__ = "project_baseline"

    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), primary_key=True)
    # no foreign key: a small table cannot refer to one that is distributed
    run_id: Mapped[UUID]
    pinned_at: Mapped[datetime] = mapped_column(server_default=func.now())
