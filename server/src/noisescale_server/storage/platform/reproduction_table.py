"""Reproductions: what `noisescale reproduce` found, each a document that is written once and never changed."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, func
from sqlalchemy.orm import Mapped, mapped_column

from noisescale_server.storage.platform.tables import Table


class Reproduction(Table):
    """What one campaign found. `id` follows from project and content: the same content again is the same row."""

    __tablename__ = "reproduction"
    __table_args__ = (CheckConstraint("kind IN ('claim', 'advice')", name="kind"), Index(None, "project_id"))

    id: Mapped[UUID] = mapped_column(primary_key=True)
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    kind: Mapped[str]
    effort: Mapped[str]
    seed: Mapped[int]
    version: Mapped[str]
    content: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
