"""What the API says of keys, people and the audit log, as dataclasses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Me:
    """Who is looking, and what they may do.

    Attributes:
        mode: "local" or "team".
        name: As people call them.
        url: Address of the server, for jobs elsewhere; None for a local one.
        everywhere: Rights in all projects.
        projects: (project, rights) of single ones.
        makes_keys: Whether they may make keys.
        manages: Whether they may manage members.
    """

    mode: str
    name: str
    url: str | None
    everywhere: frozenset[str]
    projects: tuple[tuple[str, frozenset[str]], ...]
    makes_keys: bool
    manages: bool


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its secret."""

    id: str
    name: str
    scope: str
    projects: tuple[str, ...] | None
    owner: str | None
    expires_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None
    is_active: bool


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made; its text is shown once."""

    id: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with the roles that the visitor manages."""

    id: str
    name: str
    email: str | None
    is_administrator: bool
    is_disabled: bool
    roles: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that was done about access."""

    at: datetime
    actor: str
    action: str
    details: tuple[tuple[str, str], ...]


def me(body: Mapping[str, Any]) -> Me:
    """Who is looking."""
    return Me(
        mode=body["mode"],
        name=body["name"],
        url=body["url"],
        everywhere=frozenset(body["everywhere"]),
        projects=tuple((one["project"], frozenset(one["rights"])) for one in body["projects"]),
        makes_keys=body["makes_keys"],
        manages=body["manages"],
    )


def keys(body: Mapping[str, Any]) -> tuple[Key, ...]:
    """Keys, newest first."""
    return tuple(
        Key(
            id=one["id"],
            name=one["name"],
            scope=one["scope"],
            projects=None if one["projects"] is None else tuple(one["projects"]),
            owner=one["owner"],
            expires_at=datetime.fromisoformat(one["expires_at"]),
            revoked_at=_moment(one["revoked_at"]),
            last_used_at=_moment(one["last_used_at"]),
            is_active=one["is_active"],
        )
        for one in body["keys"]
    )


def new_key(body: Mapping[str, Any]) -> NewKey:
    """A key that was just made."""
    return NewKey(id=body["id"], text=body["key"])


def people(body: Mapping[str, Any]) -> tuple[Person, ...]:
    """People by name."""
    return tuple(_person(one) for one in body["people"])


def _person(one: Mapping[str, Any]) -> Person:
    return Person(
        id=one["id"],
        name=one["name"],
        email=one["email"],
        is_administrator=one["is_administrator"],
        is_disabled=one["disabled_at"] is not None,
        roles=tuple((role["project"], role["role"]) for role in one["roles"]),
    )


def audit(body: Mapping[str, Any]) -> tuple[AuditEntry, ...]:
    """What was done, newest first."""
    return tuple(
        AuditEntry(
            at=datetime.fromisoformat(one["at"]),
            actor=one["actor_name"],
            action=one["action"],
            details=tuple((str(name), str(value)) for name, value in one["details"].items()),
        )
        for one in body["entries"]
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
