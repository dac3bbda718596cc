"""One look at every watched run: what rules notice is written down, and owed to receivers, in one transaction."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from asyncpg import Record
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.theory.cost import SECONDS_PER_HOUR
from noisescale_server.services.alerts import episodes
from noisescale_server.services.alerts.episodes import NEVER, Episode
from noisescale_server.services.alerts.rules import Rule, Standing, sentence_of
from noisescale_server.storage import defaults
from noisescale_server.storage.alerts import outbox, rows, watched
from noisescale_server.storage.alerts.rows import AlertEpisode, AlertRule

HEARD_WITHIN: Final = timedelta(days=8)
"""A run from which nothing came for longer is forgotten; a rule may wait for seven days of silence."""

ENDED_WITHIN: Final = timedelta(minutes=10)
DELAY_HEARD_WITHIN: Final = timedelta(minutes=2)
"""Records that have stopped to come are not late: the run is stalled."""


async def look(session: AsyncSession, now: datetime) -> int:
    """Look at every watched run once, unless another server does; how many events were noticed.

    Args:
        session: Sees every project.
        now: The server's clock.
    """
    if not await watched.is_ours(session):
        return 0
    stored = await rows.held_rules(session)
    if not stored:
        return 0
    by_project: dict[UUID, list[AlertRule]] = {}
    for rule in stored:
        by_project.setdefault(rule.project_id, []).append(rule)
    found = await watched.runs(session, by_project, heard_after=now - HEARD_WITHIN, ended_after=now - ENDED_WITHIN)
    prices = await defaults.of_projects(session, by_project)
    known = await rows.episodes_of(session, [rule.id for rule in stored], [row["id"] for row in found])
    changed: list[dict[str, Any]] = []
    num_events = 0
    for row in found:
        project = prices.get(row["project_id"])
        run = standing_of(row, None if project is None else project.usd_per_device_hour, now)
        for rule in by_project[row["project_id"]]:
            num_events += await _apply(session, rule, run, known.get((rule.id, run.run_id)), now, changed)
    await rows.put_episodes(session, changed)
    return num_events


async def _apply(
    session: AsyncSession,
    stored: AlertRule,
    run: Standing,
    kept: AlertEpisode | None,
    now: datetime,
    changed: list[dict[str, Any]],
) -> bool:
    """Whether the rule tells of the run now; how the run stands with it is added to what has changed."""
    rule = rule_of(stored)
    before = NEVER if kept is None else Episode(kept.since, kept.is_told, kept.told_at, kept.number)
    sentence = sentence_of(rule, run, now)
    after, is_told = episodes.step(rule, before, is_case=sentence is not None, now=now)
    if after != before:
        changed.append(
            {
                "rule_id": rule.id,
                "run_id": run.run_id,
                "since": after.since,
                "is_told": after.is_told,
                "told_at": after.told_at,
                "number": after.number,
            }
        )
    if not is_told or sentence is None:
        return False
    is_muted = rule.is_muted(now)
    event_id = await rows.add_event(
        session,
        project_id=rule.project_id,
        rule_id=rule.id,
        rule_name=stored.name,
        kind=rule.kind,
        run_id=run.run_id,
        run_name=run.name,
        number=after.number,
        sentence=sentence,
        is_muted=is_muted,
        happened_at=now,
    )
    if event_id is not None and not is_muted:
        await outbox.owe(session, event_id, rule.project_id, now=now)
    return event_id is not None


def rule_of(stored: AlertRule) -> Rule:
    """The rule in the terms of its cases."""
    return Rule(
        stored.id,
        stored.project_id,
        stored.kind,  # type: ignore[arg-type]  # one of them: the API takes no other
        stored.settings,
        timedelta(hours=stored.again_after_hours),
        stored.muted_until,
    )


def standing_of(row: Record, project_price: float | None, now: datetime) -> Standing:
    """A run as it stands by its row.

    Args:
        row: As `storage.alerts.watched` reads it.
        project_price: USD of a device-hour where the run says none; None: neither does.
        now: The server's clock.
    """
    broken = [step for step in (row["loss_broken_since"], row["gradients_broken_since"]) if step is not None]
    return Standing(
        run_id=row["id"],
        name=row["name"],
        has_ended=row["finish_status"] is not None,
        heard=row["updated_at"],
        state=row["noise_scale_state"],
        value=row["noise_scale_value"],
        batch_size=row["latest_global_batch"],
        recommended=row["decision_batch_size"],
        odds=row["decision_probability"],
        usd_saving=_usd_saving(row, project_price),
        flags=row["noise_scale_flags"],
        reason=row["noise_scale_reason"],
        diverged_step=min(broken, default=None),
        delay=_delay(row, now),
    )


def usd_left(*, steps_left: float, seconds_per_step: float, devices: float, price: float) -> float:
    """What the rest of a plan costs at the present batch.

    Args:
        steps_left: Optimizer steps.
        seconds_per_step: Of wall time.
        devices: That run.
        price: USD of a device-hour.
    """
    return max(steps_left, 0.0) * seconds_per_step / SECONDS_PER_HOUR * devices * price


def _usd_saving(row: Record, project_price: float | None) -> float | None:
    """What the recommended batch saves over the rest of the plan; None without a plan, devices, a price or steps.

    None on one device, too: it stays what it is, and the share that a change saves is none of its money.
    """
    own_price: float | None = row["usd_per_device_hour"]
    price = project_price if own_price is None else own_price  # 0 is a price, too: of devices that cost nothing
    share, devices, started = row["decision_saving"], row["num_devices"], row["newest_started_at"]
    first, latest, planned = row["newest_first_step"], row["latest_step"], row["planned_steps"]
    if price is None or devices == 1 or None in (share, devices, started, first, latest, planned) or latest <= first:
        return None
    seconds = (row["updated_at"] - started).total_seconds() / (latest - first)
    left = usd_left(steps_left=planned - latest - 1, seconds_per_step=max(seconds, 0.0), devices=devices, price=price)
    return float(share * left)


def _delay(row: Record, now: datetime) -> timedelta | None:
    """How old the newest record was when it came; None where nothing comes any more."""
    made = row["latest_wall_time"]
    if made is None or now - row["updated_at"] > DELAY_HEARD_WITHIN:
        return None
    try:
        return row["updated_at"] - datetime.fromtimestamp(made, UTC)  # type: ignore[no-any-return]
    except (OverflowError, ValueError, OSError):
        return None
