"""Who may do what: people, memberships, keys, sessions, and what was done about them."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, CheckConstraint, ForeignKey, Index, LargeBinary, Uuid, func
from sqlalchemy.orm import Mapped, mapped_column

from noisescale_server.storage.platform.tables import Table


class Person(Table):
    """Somebody who logs in; `subject` is what the organisation's login calls them, null for one-time links."""

    __tablename__ = "person"

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    name: Mapped[str]
    email: Mapped[str | None]
    subject: Mapped[str | None] = mapped_column(unique=True)
    is_administrator: Mapped[bool] = mapped_column(server_default="false")
    disabled_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Membership(Table):
    """The role of a person in a project."""

    __tablename__ = "membership"
    __table_args__ = (
        CheckConstraint("role IN ('viewer', 'member', 'admin')", name="role"),
        Index(None, "person_id"),
    )

    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), primary_key=True)
    person_id: Mapped[UUID] = mapped_column(ForeignKey("person.id", ondelete="CASCADE"), primary_key=True)
    role: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class ApiKey(Table):
    """A key without its secret. `project_ids` null: every project that its owner may enter, all of them without one."""

    __tablename__ = "api_key"
    __table_args__ = (
        CheckConstraint("scope IN ('write', 'read', 'metrics', 'admin')", name="scope"),
        Index(None, "lineage"),
        Index(None, "owner_id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    lineage: Mapped[str]
    secret_hash: Mapped[bytes] = mapped_column(LargeBinary)
    scope: Mapped[str]
    name: Mapped[str]
    owner_id: Mapped[UUID | None] = mapped_column(ForeignKey("person.id", ondelete="CASCADE"))
    project_ids: Mapped[list[UUID] | None] = mapped_column(ARRAY(Uuid))
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    last_used_from: Mapped[str | None]


class RunAuthor(Table):
    """A lineage of keys that has created a run or a stream of it: a training job's key reads back nothing else."""

    __tablename__ = "run_author"

    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)
    lineage: Mapped[str] = mapped_column(primary_key=True)


class WebSession(Table):
    """A browser that is logged in; `id_hash` is the digest of what its cookie holds."""

    __tablename__ = "web_session"
    __table_args__ = (Index(None, "person_id"),)

    id_hash: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    person_id: Mapped[UUID] = mapped_column(ForeignKey("person.id", ondelete="CASCADE"))
    created_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class LoginAttempt(Table):
    """Something that logs in once: a link for a person, or the way back from the organisation's login."""

    __tablename__ = "login_attempt"

    id_hash: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    person_id: Mapped[UUID | None] = mapped_column(ForeignKey("person.id", ondelete="CASCADE"))
    nonce: Mapped[str | None]
    verifier: Mapped[str | None]
    return_to: Mapped[str]
    expires_at: Mapped[datetime]


class AuditRow(Table):
    """One thing that was done about access; names and ids, never a secret."""

    __tablename__ = "audit"
    __table_args__ = (Index(None, "project_id"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    at: Mapped[datetime] = mapped_column(server_default=func.now())
    actor_kind: Mapped[str]
    actor_id: Mapped[str]
    actor_name: Mapped[str]
    action: Mapped[str]
    project_id: Mapped[UUID | None]
    details: Mapped[dict[str, Any]] = mapped_column(server_default="{}")


class RunLink(Table):
    """A link that shows one run to whoever has it, for some time; `secret_hash` is the digest of what it holds."""

    __tablename__ = "run_link"
    __table_args__ = (Index(None, "run_id"),)

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    secret_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    run_id: Mapped[UUID]
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    person_id: Mapped[UUID | None] = mapped_column(ForeignKey("person.id", ondelete="CASCADE"))
    made_by: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime]


class PublicProject(Table):
    """A project that everybody may read, where the server's settings allow that."""

    __tablename__ = "public_project"

    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), primary_key=True)
    since: Mapped[datetime] = mapped_column(server_default=func.now())
