"""Rules and receivers of a project: its admins make, change and end them; who reads the project sees what they say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.access import audit
from noisescale_server.services.access.access import Principal
from noisescale_server.services.alerts.payloads import Shape, secret_of
from noisescale_server.services.alerts.rules import Kind
from noisescale_server.services.platform.errors import AlertReceiverNotFound, AlertRuleNotFound, ProjectNotFound, refuse
from noisescale_server.storage.access import belonging
from noisescale_server.storage.alerts import outbox, rows
from noisescale_server.storage.alerts.rows import AlertDelivery, AlertEvent, AlertReceiver, AlertRule

MAX_RULES: Final = 50
MAX_RECEIVERS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRule:
    """A rule as somebody wants it."""

    name: str
    kind: Kind
    settings: Mapping[str, float]
    again_after_hours: float
    muted_until: datetime | None


@dataclass(frozen=True, slots=True)
class NewReceiver:
    """A receiver with the secret that its messages are signed with."""

    receiver: AlertReceiver
    secret: str


async def project_id_of(session: AsyncSession, project: str) -> UUID:
    """The project's id.

    Raises:
        ProjectNotFound: When there is none of this name.
    """
    found = await belonging.project_of(session, "project", project)
    if found is None:
        raise ProjectNotFound(project)
    return found


async def rules(session: AsyncSession, project: str) -> Sequence[AlertRule]:
    """The project's rules, oldest first."""
    return await rows.rules_of(session, await project_id_of(session, project))


async def add_rule(session: AsyncSession, by: Principal, project: str, wanted: WantedRule) -> AlertRule:
    """A new rule of the project.

    Raises:
        InvalidInput: When the project has as many as it may have.
    """
    project_id = await project_id_of(session, project)
    if await rows.count_of(session, AlertRule, project_id) >= MAX_RULES:
        raise refuse("name", f"a project has at most {MAX_RULES} rules: delete one first", wanted.name)
    added = await rows.add_rule(session, project_id, **_columns(wanted))
    await audit.note(session, by, "alert rule made", project_id=project_id, rule=wanted.name, kind=wanted.kind)
    return added


async def change_rule(
    session: AsyncSession, by: Principal, project: str, rule_id: UUID, wanted: WantedRule
) -> AlertRule:
    """The rule as it is then.

    Raises:
        AlertRuleNotFound: Where the project has none of this id.
    """
    project_id = await project_id_of(session, project)
    before = {one.id: one.kind for one in await rows.rules_of(session, project_id)}
    found = await rows.change_rule(session, project_id, rule_id, **_columns(wanted))
    if found is None:
        raise AlertRuleNotFound(rule_id)
    if found.kind != before.get(rule_id):
        await rows.forget_episodes(session, rule_id)  # what it was told of was another thing
    await audit.note(session, by, "alert rule changed", project_id=project_id, rule=wanted.name, kind=wanted.kind)
    return found


async def delete_rule(session: AsyncSession, by: Principal, project: str, rule_id: UUID) -> None:
    """End a rule; what it has noticed stays.

    Raises:
        AlertRuleNotFound: Where the project has none of this id.
    """
    project_id = await project_id_of(session, project)
    if not await rows.delete_rule(session, project_id, rule_id):
        raise AlertRuleNotFound(rule_id)
    await audit.note(session, by, "alert rule deleted", project_id=project_id, rule=str(rule_id))


async def receivers(session: AsyncSession, project: str) -> Sequence[AlertReceiver]:
    """The project's receivers, oldest first."""
    return await rows.receivers_of(session, await project_id_of(session, project))


async def add_receiver(
    session: AsyncSession,
    by: Principal,
    project: str,
    *,
    name: str,
    shape: Shape,
    url: str,
    email_to: str | None,
    pepper: bytes,
) -> NewReceiver:
    """A new receiver of the project's events, with its secret.

    Raises:
        InvalidInput: When the project has as many as it may have.
    """
    project_id = await project_id_of(session, project)
    if await rows.count_of(session, AlertReceiver, project_id) >= MAX_RECEIVERS:
        raise refuse("name", f"a project has at most {MAX_RECEIVERS} receivers: delete one first", name)
    added = await rows.add_receiver(session, project_id, name=name, shape=shape, url=url, email_to=email_to)
    await audit.note(session, by, "alert receiver made", project_id=project_id, receiver=name, shape=shape)
    return NewReceiver(added, secret_of(pepper, added.id))


async def delete_receiver(session: AsyncSession, by: Principal, project: str, receiver_id: UUID) -> None:
    """End a receiver; what is still owed to it is given up.

    Raises:
        AlertReceiverNotFound: Where the project has none of this id.
    """
    project_id = await project_id_of(session, project)
    if not await rows.delete_receiver(session, project_id, receiver_id):
        raise AlertReceiverNotFound(receiver_id)
    await audit.note(session, by, "alert receiver deleted", project_id=project_id, receiver=str(receiver_id))


async def test_receiver(session: AsyncSession, by: Principal, project: str, receiver_id: UUID, now: datetime) -> UUID:
    """The id of an event that is sent to this receiver alone, to see whether it arrives.

    Raises:
        AlertReceiverNotFound: Where the project has none of this id.
    """
    project_id = await project_id_of(session, project)
    if receiver_id not in {one.id for one in await rows.receivers_of(session, project_id)}:
        raise AlertReceiverNotFound(receiver_id)
    told: dict[str, Any] = {"rule_name": "test", "sentence": f"{by.name} tests this receiver.", "happened_at": now}
    event_id = await rows.add_event(session, id=uuid4(), project_id=project_id, **told)
    assert event_id is not None, "a test has no rule, so it was never noticed before"
    await outbox.owe(session, event_id, project_id, now=now, receiver_id=receiver_id)
    return event_id


async def events(
    session: AsyncSession, project: str, *, limit: int, before: datetime | None, before_id: UUID | None
) -> list[tuple[AlertEvent, list[AlertDelivery]]]:
    """The project's newest events, each with what became of it."""
    project_id = await project_id_of(session, project)
    return await rows.events_of(session, project_id, limit=limit, before=before, before_id=before_id)


def _columns(wanted: WantedRule) -> dict[str, Any]:
    return {
        "name": wanted.name,
        "kind": wanted.kind,
        "settings": dict(wanted.settings),
        "again_after_hours": wanted.again_after_hours,
        "muted_until": wanted.muted_until,
    }
