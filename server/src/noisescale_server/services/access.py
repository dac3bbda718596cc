"""Who asks, and what they may do in which project. Everything that is not granted here is denied."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal
from uuid import UUID

MODES = ("local", "required")


class Right(StrEnum):
    """What a request needs; each route needs exactly one (`api/route_rights.py`)."""

    IDENTITY = "identity"
    """To be somebody: asking who one is."""
    READ = "read"
    CURSOR = "cursor"
    """Reading back how far a stream has arrived, and the status of a run."""
    APPEND = "append"
    """Creating runs and sweeps, and adding to them."""
    CHANGE = "change"
    """Renaming, tagging, archiving."""
    OWN_KEYS = "own_keys"
    """Making and ending keys of one's own."""
    DELETE = "delete"
    MANAGE = "manage"
    """Members, everybody's keys, the audit log."""


class Role(StrEnum):
    """What somebody is in a project. `writer` is a training job's key, the others are roles of people too."""

    WRITER = "writer"
    VIEWER = "viewer"
    MEMBER = "member"
    ADMIN = "admin"


PersonRole = Literal["viewer", "member", "admin"]

_READING = frozenset({Right.IDENTITY, Right.READ, Right.CURSOR})
_RIGHTS: Mapping[Role, frozenset[Right]] = {
    Role.WRITER: frozenset({Right.IDENTITY, Right.APPEND, Right.CURSOR}),
    Role.VIEWER: _READING,
    Role.MEMBER: _READING | {Right.APPEND, Right.CHANGE, Right.OWN_KEYS},
    Role.ADMIN: frozenset(Right),
}

Projects = frozenset[UUID] | None
"""Some projects; None: all of them, also those to come."""


def rights_of(role: Role) -> frozenset[Right]:
    """What this role allows."""
    return _RIGHTS[role]


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who has proved who they are.

    Attributes:
        kind: "local": whoever started this server, "key", or "person".
        id: Of the key or person; "local" for the first kind. What the audit log names.
        name: As people call them.
        everywhere: Role in all projects; None: only where `roles` says.
        roles: Role by project.
        lineage: Of a key: shared by all keys that were rotated from the same one.
        person_id: The person, or the owner of the key; None: nobody's.
    """

    kind: Literal["local", "key", "person"]
    id: str
    name: str
    everywhere: Role | None = None
    roles: Mapping[UUID, Role] = field(default_factory=dict)
    lineage: str | None = None
    person_id: UUID | None = None

    def role_in(self, project_id: UUID) -> Role | None:
        """The role in a project, the stronger where there are two; None: none."""
        return stronger(self.everywhere, self.roles.get(project_id))

    def may(self, right: Right, project_id: UUID) -> bool:
        """Whether this is allowed in the project."""
        role = self.role_in(project_id)
        return role is not None and right in rights_of(role)

    def projects_with(self, right: Right) -> Projects:
        """Where this is allowed."""
        if self.everywhere is not None and right in rights_of(self.everywhere):
            return None
        return frozenset(project_id for project_id, role in self.roles.items() if right in rights_of(role))

    def may_anywhere(self, right: Right) -> bool:
        """Whether this is allowed in any project."""
        allowed = self.projects_with(right)
        return allowed is None or bool(allowed)

    @property
    def is_administrator(self) -> bool:
        """Whether this is an admin of all projects."""
        return self.everywhere is Role.ADMIN

    @property
    def reads_only_its_own(self) -> bool:
        """Whether this is a training job's key: it sees nothing but how far its own records have arrived."""
        return self.kind == "key" and not self.may_anywhere(Right.READ)


LOCAL: Final = Principal("local", "local", "the user who started this server", everywhere=Role.ADMIN)


def stronger(first: Role | None, second: Role | None) -> Role | None:
    """The role that allows more; None where there is neither."""
    known = [role for role in (first, second) if role is not None]
    return max(known, key=list(Role).index, default=None)


def weaker(first: Role, second: Role) -> Role:
    """The role that both allow: a key can do no more than its owner."""
    if Role.WRITER in (first, second):
        other = second if first is Role.WRITER else first
        # a viewer's key may not append, and a writer's may not read
        return Role.WRITER if Right.APPEND in rights_of(other) else other
    return min((first, second), key=list(Role).index)
