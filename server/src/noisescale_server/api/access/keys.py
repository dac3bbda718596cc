"""/api/v1/keys: make, list, rotate, revoke."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Request
from pydantic import AfterValidator, BeforeValidator, Field

from noisescale_server.api.access.credentials import Credentials
from noisescale_server.api.access.route import Asking
from noisescale_server.api.platform.body import parse, read_body
from noisescale_server.api.platform.deps import NO_CONTROL_CHARACTER, Now, Session, body_of, refuse_control_characters
from noisescale_server.api.platform.schemas import Answer, Body, Name, as_whole
from noisescale_server.services.access import keys
from noisescale_server.services.access.key_text import Scope
from noisescale_server.services.access.keys import DEFAULT_DAYS, MAX_DAYS, MadeKey, NewKey
from noisescale_server.storage.access import people
from noisescale_server.storage.access.tables import ApiKey

router = APIRouter(prefix="/keys", tags=["access"])

KeyId = Annotated[
    str,
    Path(max_length=32, description="the part of a key behind its scope", json_schema_extra=NO_CONTROL_CHARACTER),
    AfterValidator(refuse_control_characters),
]
MAX_PROJECTS = 100


class NewKeyBody(Body):
    """Body of POST /api/v1/keys."""

    name: Annotated[Name, Field(description="what the key is for")]
    scope: Annotated[
        Scope,
        Field(
            description="write: a training job, which reads nothing back; read: a script; "
            "metrics: what scrapes /metrics; admin: keys, members, delete"
        ),
    ]
    projects: Annotated[
        list[Name] | None,
        Field(min_length=1, max_length=MAX_PROJECTS, description="default: every project that you may enter"),
    ] = None
    days: Annotated[int, Field(ge=1, le=MAX_DAYS), BeforeValidator(as_whole)] = DEFAULT_DAYS


class NewKeyAnswer(Answer):
    """A new key. `key` is shown this once."""

    id: str
    key: str
    expires_at: datetime


class KeyAnswer(Answer):
    """A key without its secret; `projects` null: every project that its owner may enter."""

    id: str
    name: str
    scope: Scope
    projects: list[str] | None
    owner: str | None
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None
    last_used_from: str | None
    is_active: bool


class KeyList(Answer):
    """Keys, newest first."""

    keys: list[KeyAnswer]


@router.get("")
async def list_keys(session: Session, by: Asking, now: Now) -> KeyList:
    """Your own keys; with the role admin all keys of your projects."""
    found = await keys.list_for(session, by)
    ids = {one for key in found for one in key.project_ids or ()}
    projects = await people.project_names(session, sorted(ids))
    owners = {person.id: person.name for person in await people.everybody(session)}
    return KeyList(keys=[_answer(key, now, projects, owners) for key in found])


@router.post("", status_code=201, response_model=NewKeyAnswer, openapi_extra=body_of(NewKeyBody))
async def create_key(request: Request, session: Session, by: Asking, now: Now) -> NewKeyAnswer:
    """Make a key; its text is in this answer and nowhere else."""
    body = parse(NewKeyBody, await read_body(request))
    new = NewKey(body.name, body.scope, body.projects, body.days)
    return _made(await keys.create(session, by, new, pepper=request.app.state.pepper, now=now))


@router.post("/{key_id}/rotation", status_code=201)
async def rotate_key(key_id: KeyId, request: Request, session: Session, by: Asking, now: Now) -> NewKeyAnswer:
    """Make the key's successor; both are in force until the older one is revoked."""
    return _made(await keys.rotate(session, by, key_id, pepper=request.app.state.pepper, now=now))


@router.delete("/{key_id}", status_code=204)
async def revoke_key(key_id: KeyId, request: Request, session: Session, by: Asking, now: Now) -> None:
    """End a key: at once here, within 5 seconds in every other server process."""
    await keys.revoke(session, by, key_id, now=now)
    credentials: Credentials = request.app.state.credentials
    credentials.forget_after(session)


def _made(made: MadeKey) -> NewKeyAnswer:
    return NewKeyAnswer(id=made.id, key=made.text, expires_at=made.expires_at)


def _answer(key: ApiKey, now: datetime, projects: dict[UUID, str], owners: dict[UUID, str]) -> KeyAnswer:
    fields = {
        name: getattr(key, name) for name in KeyAnswer.model_fields if name not in {"projects", "owner", "is_active"}
    }
    names = None if key.project_ids is None else [projects[one] for one in key.project_ids if one in projects]
    owner = None if key.owner_id is None else owners.get(key.owner_id)
    return KeyAnswer(**fields, projects=names, owner=owner, is_active=keys.is_active(key, now))
