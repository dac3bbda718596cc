"""What the API says of a project's alerts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

NUMBERS = ("factor", "odds", "usd", "minutes")


@dataclass(frozen=True, slots=True)
class AlertRule:
    """A rule, its numbers as (name, value)."""

    id: str
    name: str
    kind: str
    numbers: tuple[tuple[str, float], ...]
    muted_until: datetime | None
    again_after_hours: float = 24.0

    @property
    def body(self) -> dict[str, Any]:
        """The rule as the API takes it."""
        muted = None if self.muted_until is None else self.muted_until.isoformat()
        said = {"name": self.name, "kind": self.kind, "again_after_hours": self.again_after_hours}
        return said | dict(self.numbers) | {"muted_until": muted}


@dataclass(frozen=True, slots=True)
class AlertEvent:
    """What has happened, and what became of it as (receiver, state, what the last attempt came to)."""

    at: datetime
    rule: str
    run: str | None
    sentence: str
    is_muted: bool
    deliveries: tuple[tuple[str, str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Alerts:
    """Rules, receivers as (id, name, shape, host), and the newest events."""

    rules: tuple[AlertRule, ...]
    receivers: tuple[tuple[str, str, str, str], ...]
    events: tuple[AlertEvent, ...]


def alerts(rules: Mapping[str, Any], receivers: Mapping[str, Any], events: Mapping[str, Any]) -> Alerts:
    """The three lists together."""
    return Alerts(
        tuple(_rule(one) for one in rules["rules"]),
        tuple((one["id"], one["name"], one["shape"], one["host"]) for one in receivers["receivers"]),
        tuple(_event(one) for one in events["events"]),
    )


def _rule(one: Mapping[str, Any]) -> AlertRule:
    numbers = tuple((name, one[name]) for name in NUMBERS if one[name] is not None)
    muted = None if one["muted_until"] is None else datetime.fromisoformat(one["muted_until"])
    return AlertRule(one["id"], one["name"], one["kind"], numbers, muted, one["again_after_hours"])


def _event(one: Mapping[str, Any]) -> AlertEvent:
    return AlertEvent(
        at=datetime.fromisoformat(one["happened_at"]),
        rule=one["rule"],
        run=one["run"],
        sentence=one["sentence"],
        is_muted=one["is_muted"],
        deliveries=tuple((sent["receiver"], sent["state"], sent["answer"]) for sent in one["deliveries"]),
    )
