"""Alerts as mapped classes."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, func, text
from sqlalchemy.orm import Mapped, mapped_column

from noisescale_server.storage.platform.tables import Table


class AlertRule(Table):
    """What is watched for in a project's runs; `settings` are the kind's numbers."""

    __tablename__ = "alert_rule"
    __table_args__ = (Index(None, "project_id"),)

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    name: Mapped[str]
    kind: Mapped[str]
    settings: Mapped[dict[str, Any]] = mapped_column(server_default="{}")
    again_after_hours: Mapped[float] = mapped_column(server_default="24")
    muted_until: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class AlertEpisode(Table):
    """How a run stands with a rule; see `services/alerts/episodes.py`."""

    __tablename__ = "alert_episode"

    rule_id: Mapped[UUID] = mapped_column(ForeignKey("alert_rule.id", ondelete="CASCADE"), primary_key=True)
    run_id: Mapped[UUID] = mapped_column(primary_key=True)
    since: Mapped[datetime | None]
    is_told: Mapped[bool] = mapped_column(server_default="false")
    told_at: Mapped[datetime | None]
    number: Mapped[int] = mapped_column(server_default="0")


class LateArrival(Table):
    """How old the newest record of a run was when it came, where that was a minute or more; one a minute at most."""

    __tablename__ = "late_arrival"
    __table_args__ = (Index(None, "at"),)

    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)
    at: Mapped[datetime] = mapped_column(primary_key=True)
    seconds: Mapped[float]


class AlertReceiver(Table):
    """Where a project's events go; the address may be a secret, so it is answered to nobody."""

    __tablename__ = "alert_receiver"
    __table_args__ = (
        CheckConstraint("shape IN ('webhook', 'slack', 'email')", name="shape"),
        Index(None, "project_id"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    name: Mapped[str]
    shape: Mapped[str]
    url: Mapped[str]
    email_to: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class AlertEvent(Table):
    """One thing that a rule has noticed of a run, or a test of a receiver; a rule notices each only once."""

    __tablename__ = "alert_event"
    __table_args__ = (
        UniqueConstraint("rule_id", "run_id", "number"),
        Index(None, "project_id", "happened_at"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    # what is told of an event stays when its rule or run has gone
    rule_id: Mapped[UUID | None]
    rule_name: Mapped[str]
    kind: Mapped[str | None]
    run_id: Mapped[UUID | None]
    run_name: Mapped[str | None]
    number: Mapped[int] = mapped_column(server_default="1")
    sentence: Mapped[str]
    is_muted: Mapped[bool] = mapped_column(server_default="false")
    happened_at: Mapped[datetime] = mapped_column(server_default=func.now())


class AlertDelivery(Table):
    """What is owed to a receiver: written with its event, and gone through until it is delivered or given up.

    `leased_until` says until when one server works on it; `answer` what the last attempt came to.
    """

    __tablename__ = "alert_delivery"
    __table_args__ = (
        CheckConstraint("state IN ('waiting', 'delivered', 'undelivered')", name="state"),
        Index("ix_alert_delivery_due", "due_at", postgresql_where=text("state = 'waiting'")),
    )

    event_id: Mapped[UUID] = mapped_column(ForeignKey("alert_event.id", ondelete="CASCADE"), primary_key=True)
    receiver_id: Mapped[UUID] = mapped_column(primary_key=True)
    receiver_name: Mapped[str]
    state: Mapped[str] = mapped_column(server_default="waiting")
    num_attempts: Mapped[int] = mapped_column(server_default="0")
    due_at: Mapped[datetime] = mapped_column(server_default=func.now())
    leased_until: Mapped[datetime | None]
    answer: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    done_at: Mapped[datetime | None]
