"""Who asks, and what they may do in which project. Everything that is not granted here is denied.

A person's role and a key's scope are both sets of rights. A key may do in a project what its scope and its owner's
role there have in common, and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal
from uuid import UUID

from noisescale_server.services.access.key_text import Scope


class Right(StrEnum):
    """What a request needs; each route needs exactly one (`api/access/route_rights.py`)."""

    IDENTITY = "identity"
    """To be somebody: asking who one is."""
    READ = "read"
    METRICS = "metrics"
    """Scraping the server's health, and the figures of live runs."""
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


Rights = frozenset[Right]
NOTHING: Final[Rights] = frozenset()
EVERYTHING: Final[Rights] = frozenset(Right)

PersonRole = Literal["viewer", "member", "admin"]

_READING: Final = frozenset({Right.IDENTITY, Right.READ, Right.CURSOR})
RIGHTS_OF_ROLE: Final[Mapping[str, Rights]] = {
    "viewer": _READING,
    "member": _READING | {Right.METRICS, Right.APPEND, Right.CHANGE, Right.OWN_KEYS},
    "admin": EVERYTHING,
}
"""What a person may do in a project, by role."""
RIGHTS_OF_SCOPE: Final[Mapping[Scope, Rights]] = {
    "write": frozenset({Right.IDENTITY, Right.APPEND, Right.CURSOR}),
    "read": _READING,
    "metrics": frozenset({Right.IDENTITY, Right.METRICS}),
    "admin": EVERYTHING,
}
"""What a key may do at most, whoever owns it."""

Projects = frozenset[UUID] | None
"""Some projects; None: all of them, also those to come."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who has proved who they are.

    Attributes:
        kind: "local": whoever started this server, "key", or "person"; "link": who has come by a link that shows a run;
            "everybody": who has said nothing, where projects are open to everybody.
        id: Of the key, person or link; else the kind. What the audit log names.
        name: As people call them.
        everywhere: Rights in every project, also in those to come.
        rights: Rights in single projects, beside those everywhere.
        lineage: Of a key: shared by all keys that were rotated from the same one.
        person_id: The person, or the owner of the key; None: nobody's.
        only: Projects that a key names; None: it was made for all that its owner may enter.
        run_id: Of a link: the only run that it shows.
    """

    kind: Literal["local", "key", "person", "link", "everybody"]
    id: str
    name: str
    everywhere: Rights = NOTHING
    rights: Mapping[UUID, Rights] = field(default_factory=dict)
    lineage: str | None = None
    person_id: UUID | None = None
    only: Projects = None
    run_id: UUID | None = None

    def rights_in(self, project_id: UUID) -> Rights:
        """What is allowed in the project."""
        return self.everywhere | self.rights.get(project_id, NOTHING)

    def may(self, right: Right, project_id: UUID) -> bool:
        """Whether this is allowed in the project."""
        return right in self.rights_in(project_id)

    def projects_with(self, right: Right) -> Projects:
        """Where this is allowed."""
        if right in self.everywhere:
            return None
        return frozenset(project_id for project_id, rights in self.rights.items() if right in rights)

    def may_anywhere(self, right: Right) -> bool:
        """Whether this is allowed in any project."""
        allowed = self.projects_with(right)
        return allowed is None or bool(allowed)

    @property
    def is_administrator(self) -> bool:
        """Whether this is an admin of all projects."""
        return Right.MANAGE in self.everywhere

    @property
    def reads_only_its_own(self) -> bool:
        """Whether this is a training job's key: it sees nothing but how far its own records have arrived."""
        return self.kind == "key" and not self.may_anywhere(Right.READ)


LOCAL: Final = Principal("local", "local", "the user who started this server", everywhere=EVERYTHING)


def narrowed(owner: Principal, scope: Rights, project_ids: Projects) -> tuple[Rights, dict[UUID, Rights]]:
    """What of its owner's rights a key has: everywhere, and in single projects.

    Args:
        owner: As whom the key acts, with today's rights.
        scope: What the key may do at most.
        project_ids: Where; None: wherever its owner may.
    """
    if project_ids is None:
        return owner.everywhere & scope, {one: rights & scope for one, rights in owner.rights.items()}
    return NOTHING, {one: owner.rights_in(one) & scope for one in project_ids}
