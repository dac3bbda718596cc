"""How long a project keeps its rows, as a mapped class."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, func
from sqlalchemy.orm import Mapped, mapped_column

from noisescale_server.storage.platform.tables import Table


class ProjectRetention(Table):
    """Days without data after which a run's rows are folded into its pyramid; a project without a row folds nothing."""

    __tablename__ = "project_retention"
    __table_args__ = (CheckConstraint("fold_after_days >= 1", name="days"),)

    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), primary_key=True)
    fold_after_days: Mapped[int]
    changed_at: Mapped[datetime] = mapped_column(server_default=func.now())
