"""A comment on a run, as a mapped class."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, func
from sqlalchemy.orm import Mapped, mapped_column

from noisescale_server.storage.platform.tables import Table


class RunComment(Table):
    """What somebody has said about a run.

    `author` is what they were called then. `author_id` says who may change it: the person, or the lineage of a key that
    is nobody's; no foreign key, as a project moves to servers that do not know the person. `mentions` are the names of
    people of the project behind an @, as they were called then.
    """

    __tablename__ = "run_comment"

    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    author: Mapped[str]
    author_id: Mapped[str]
    text: Mapped[str]
    mentions: Mapped[list[str]] = mapped_column(server_default="{}")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    edited_at: Mapped[datetime | None]
