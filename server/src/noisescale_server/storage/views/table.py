"""A view of a page that a project shares, as a mapped class."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, UniqueConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from noisescale_server.storage.platform.tables import Table


class SavedView(Table):
    """What a page of the dashboard shows, under a name: the query part of its address. `author` is whoever made it."""

    __tablename__ = "saved_view"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    name: Mapped[str]
    author: Mapped[str]
    page: Mapped[str]
    query: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
