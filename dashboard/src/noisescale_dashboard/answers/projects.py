"""What the API says of a project: alerts, defaults, shared views, how it is kept and shared, links to its runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from noisescale_dashboard.answers.common import decoded

# What the API says of the views that a project's team shares.


@dataclass(frozen=True, slots=True)
class SharedView:
    """A view of a page under a name; `query` is the query part of its address, percent-encoded."""

    id: str
    name: str
    author: str
    page: str
    query: str


def shared_views(data: Mapping[str, Any]) -> tuple[SharedView, ...]:
    """The views in `data`, by name."""
    return decoded(tuple[SharedView, ...], data["views"])


# What the API says of a project's defaults.

Way = Literal["none", "preference", "examples_per_step", "fixed_hardware"]
"""In which words a project says what a step is worth."""


@dataclass(frozen=True, slots=True)
class ProjectDefaults:
    """What a project takes for granted; None where it says nothing.

    Attributes:
        device_hour_price: Of one device for an hour, in `currency`.
        currency: Three letters.
        usd_per_unit: USD for one unit of it.
        preference: 0 fewest examples … 1 fewest steps.
        examples_per_step: What a step is worth.
        fixed_hardware: Step times say what a step is worth.
    """

    device_hour_price: float | None
    currency: str
    usd_per_unit: float
    preference: float | None
    examples_per_step: float | None
    fixed_hardware: bool

    @property
    def way(self) -> Way:
        """In which words the worth of a step is said."""
        if self.fixed_hardware:
            return "fixed_hardware"
        if self.preference is not None:
            return "preference"
        return "none" if self.examples_per_step is None else "examples_per_step"

    @property
    def worth(self) -> float | None:
        """The number that goes with it; None where there is none."""
        return self.preference if self.preference is not None else self.examples_per_step


def project_defaults(body: Mapping[str, Any]) -> ProjectDefaults:
    """The answer of GET and PUT."""
    return ProjectDefaults(
        device_hour_price=body["device_hour_price"],
        currency=body["currency"],
        usd_per_unit=body["usd_per_unit"],
        preference=body["preference"],
        examples_per_step=body["examples_per_step"],
        fixed_hardware=body["fixed_hardware"],
    )


# What the API says of a project's alerts.

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


# How a project is kept and shared, and links that show a run.


@dataclass(frozen=True, slots=True)
class Keeping:
    """How a project is kept and shared.

    Attributes:
        days: Without data after which rows of a run are folded; None: never.
        is_public: Everybody may read it.
        is_allowed: The server lets projects be read so.
    """

    days: int | None
    is_public: bool
    is_allowed: bool


def keeping(retention: Mapping[str, Any], public: Mapping[str, Any]) -> Keeping:
    """From the two answers."""
    return Keeping(retention["fold_after_days"], public["is_public"], public["is_allowed"])


@dataclass(frozen=True, slots=True)
class RunLink:
    """A link that shows one run.

    Attributes:
        id: Of the link.
        expires_at: When it ends, as ISO 8601.
        address: To send; None where it is only listed.
    """

    id: str
    expires_at: str
    address: str | None


def run_link(body: Mapping[str, Any]) -> RunLink:
    """A link as listed or just made."""
    return RunLink(body["id"], body["expires_at"], body.get("address"))
