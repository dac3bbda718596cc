"""GET /api/v1/me: who asks, and what they may do."""

from typing import Literal
from uuid import UUID

from fastapi import APIRouter, Request

from noisescale_server.api.access.mode import AccessMode
from noisescale_server.api.access.route import Asking
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.services.access.access import Right, Rights
from noisescale_server.storage.access import people

router = APIRouter(tags=["access"])


class ProjectRights(Answer):
    """What somebody may do in a project."""

    project: str
    rights: list[Right]


class MeAnswer(Answer):
    """Who asks, and what they may do: `everywhere` in every project, also those to come; `projects` in single ones.

    A key has what its scope and its owner's role in a project have in common.
    """

    mode: Literal["local", "team"]
    kind: Literal["local", "key", "person", "link", "everybody"]
    id: str
    name: str
    url: str | None
    person_id: UUID | None
    everywhere: list[Right]
    projects: list[ProjectRights]
    makes_keys: bool
    manages: bool


@router.get("/me")
async def who_am_i(request: Request, principal: Asking) -> MeAnswer:
    """Who sent this request, by its key or its browser's login."""
    mode: AccessMode = request.app.state.access_mode
    async with request.app.state.sessions() as session:
        names = await people.project_names(session, sorted(principal.rights))
    return MeAnswer(
        mode="local" if mode.is_local else "team",
        kind=principal.kind,
        id=principal.id,
        name=principal.name,
        url=mode.public_origin,
        person_id=principal.person_id,
        everywhere=in_order(principal.everywhere),
        projects=[ProjectRights(project=name, rights=in_order(principal.rights[one])) for one, name in names.items()],
        makes_keys=principal.may_anywhere(Right.OWN_KEYS),
        manages=principal.may_anywhere(Right.MANAGE),
    )


def in_order(rights: Rights) -> list[Right]:
    """The rights, the same set always in the same order."""
    return [right for right in Right if right in rights]
