"""Rules, receivers and events of projects."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, delete, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from noisescale_server.storage.platform.driver import fetch
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


async def rules_of(session: AsyncSession, project_id: UUID) -> Sequence[AlertRule]:
    """A project's rules, oldest first."""
    query = select(AlertRule).where(AlertRule.project_id == project_id).order_by(AlertRule.created_at, AlertRule.id)
    return (await session.scalars(query)).all()


async def held_rules(session: AsyncSession) -> Sequence[AlertRule]:
    """The rules of every project; none of them can be deleted until the transaction ends."""
    return (await session.scalars(select(AlertRule).with_for_update(read=True, key_share=True))).all()


async def add_rule(session: AsyncSession, project_id: UUID, **columns: Any) -> AlertRule:
    """A new rule."""
    added = insert(AlertRule).values(project_id=project_id, **columns).returning(AlertRule)
    return (await session.scalars(added)).one()


async def change_rule(session: AsyncSession, project_id: UUID, rule_id: UUID, **columns: Any) -> AlertRule | None:
    """The rule as it is then; None where the project has none of this id."""
    query = update(AlertRule).where(AlertRule.id == rule_id, AlertRule.project_id == project_id).values(columns)
    return (await session.scalars(query.returning(AlertRule))).one_or_none()


async def forget_episodes(session: AsyncSession, rule_id: UUID) -> None:
    """Let no run be a case of the rule; how often each was told of stays, as events are numbered by it."""
    nothing = {"since": None, "is_told": False, "told_at": None}
    await session.execute(update(AlertEpisode).where(AlertEpisode.rule_id == rule_id).values(nothing))


async def delete_rule(session: AsyncSession, project_id: UUID, rule_id: UUID) -> bool:
    """False where the project has no rule of this id; its events stay."""
    query = delete(AlertRule).where(AlertRule.id == rule_id, AlertRule.project_id == project_id)
    return await session.scalar(query.returning(AlertRule.id)) is not None


async def receivers_of(session: AsyncSession, project_id: UUID) -> Sequence[AlertReceiver]:
    """A project's receivers, oldest first."""
    query = select(AlertReceiver).where(AlertReceiver.project_id == project_id)
    return (await session.scalars(query.order_by(AlertReceiver.created_at, AlertReceiver.id))).all()


async def add_receiver(session: AsyncSession, project_id: UUID, **columns: Any) -> AlertReceiver:
    """A new receiver."""
    added = insert(AlertReceiver).values(project_id=project_id, **columns).returning(AlertReceiver)
    return (await session.scalars(added)).one()


async def delete_receiver(session: AsyncSession, project_id: UUID, receiver_id: UUID) -> bool:
    """False where the project has no receiver of this id."""
    query = delete(AlertReceiver).where(AlertReceiver.id == receiver_id, AlertReceiver.project_id == project_id)
    return await session.scalar(query.returning(AlertReceiver.id)) is not None


async def count_of(session: AsyncSession, table: type[AlertRule] | type[AlertReceiver], project_id: UUID) -> int:
    """How many the project has."""
    return await session.scalar(select(func.count()).select_from(table).where(table.project_id == project_id)) or 0


async def episodes_of(
    session: AsyncSession, rule_ids: Collection[UUID], run_ids: Collection[UUID]
) -> dict[tuple[UUID, UUID], AlertEpisode]:
    """How these runs stand with these rules, by both ids; those that never were a case are left out."""
    query = select(AlertEpisode).where(AlertEpisode.rule_id.in_(rule_ids), AlertEpisode.run_id.in_(run_ids))
    return {(one.rule_id, one.run_id): one for one in (await session.scalars(query)).all()}


async def put_episodes(session: AsyncSession, episodes: Sequence[dict[str, Any]]) -> None:
    """Keep how runs stand."""
    if not episodes:
        return
    added = upsert(AlertEpisode)
    changed = {name: added.excluded[name] for name in ("since", "is_told", "told_at", "number")}
    keys = [AlertEpisode.rule_id, AlertEpisode.run_id]
    await session.execute(added.on_conflict_do_update(index_elements=keys, set_=changed), list(episodes))


async def add_event(session: AsyncSession, **columns: Any) -> UUID | None:
    """The id of a new event; None where it was noticed before."""
    added = upsert(AlertEvent).values(columns).on_conflict_do_nothing(index_elements=["rule_id", "run_id", "number"])
    found: UUID | None = await session.scalar(added.returning(AlertEvent.id))
    return found


_FORGET: Final = """
DELETE FROM alert_event WHERE id IN (
  SELECT id FROM alert_event AS event WHERE happened_at < $1::timestamptz
    AND NOT EXISTS (SELECT FROM alert_delivery WHERE event_id = event.id AND state = 'waiting')
  ORDER BY happened_at LIMIT $2::bigint)
RETURNING id"""


async def forget_events(session: AsyncSession, *, before: datetime, limit: int) -> int:
    """Delete events that are older, with what became of them, unless they are still to be sent; how many."""
    return len(await fetch(session, _FORGET, before, limit))


async def events_of(
    session: AsyncSession, project_id: UUID, *, limit: int, before: datetime | None, before_id: UUID | None = None
) -> list[tuple[AlertEvent, list[AlertDelivery]]]:
    """A project's newest events, each with what became of it; those of one moment by their ids."""
    query = select(AlertEvent).where(AlertEvent.project_id == project_id)
    if before is not None:
        is_older = AlertEvent.happened_at < before
        if before_id is not None:
            is_older |= (AlertEvent.happened_at == before) & (AlertEvent.id > before_id)
        query = query.where(is_older)
    events = (await session.scalars(query.order_by(AlertEvent.happened_at.desc(), AlertEvent.id).limit(limit))).all()
    asked = select(AlertDelivery).where(AlertDelivery.event_id.in_([one.id for one in events]))
    by_event: dict[UUID, list[AlertDelivery]] = {}
    for delivery in (await session.scalars(asked.order_by(AlertDelivery.receiver_name))).all():
        by_event.setdefault(delivery.event_id, []).append(delivery)
    return [(one, by_event.get(one.id, [])) for one in events]
