"""API keys: made once, shown once, rotated, revoked, and read back as a principal."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services import audit, key_text
from noisescale_server.services.access import Principal, Right, Role, weaker
from noisescale_server.services.errors import KeyNotFound, NotAllowed, ProjectNotFound, TooManyKeys, refuse
from noisescale_server.services.key_text import KeyText, Scope, keyed_hash
from noisescale_server.services.people import principal_of
from noisescale_server.storage import api_keys
from noisescale_server.storage.access_tables import ApiKey
from noisescale_server.storage.api_keys import NewApiKey

DEFAULT_DAYS: Final = 180
MAX_DAYS: Final = 730
MAX_ACTIVE_IN_LINEAGE: Final = 2
"""A key and the one that takes its place."""
MAX_ACTIVE_OF_OWNER: Final = 100

ROLE_OF_SCOPE: dict[str, Role] = {"write": Role.WRITER, "read": Role.VIEWER, "admin": Role.ADMIN}


@dataclass(frozen=True, slots=True)
class NewKey:
    """What a key is to be.

    Attributes:
        name: What it is for, in its maker's words.
        scope: "write": a training job; "read": a script that reads; "admin": keys, members, deleting.
        projects: Names; None: every project that its owner may enter.
        days: After which it ends.
    """

    name: str
    scope: Scope
    projects: Sequence[str] | None
    days: int = DEFAULT_DAYS


@dataclass(frozen=True, slots=True)
class MadeKey:
    """A new key with its text, which is shown this once."""

    id: str
    expires_at: datetime
    text: str = field(repr=False)


async def create(session: AsyncSession, by: Principal, new: NewKey, *, pepper: bytes, now: datetime) -> MadeKey:
    """The key.

    Raises:
        NotAllowed: When its maker may not do what the key could.
        ProjectNotFound: For a project that its maker does not see.
        InvalidInput: For a life beyond the limits.
        TooManyKeys: When its owner has too many.
    """
    if not 1 <= new.days <= MAX_DAYS:
        raise refuse("days", f"must be between 1 and {MAX_DAYS}", new.days)
    project_ids = await _projects(session, by, new)
    if by.person_id is not None:
        owned = await api_keys.of_owner(session, by.person_id)
        if sum(is_active(key, now) for key in owned) >= MAX_ACTIVE_OF_OWNER:
            raise TooManyKeys(f"you have {MAX_ACTIVE_OF_OWNER} keys in force: revoke some")
    text = key_text.new(new.scope)
    made = await _keep(
        session,
        text,
        pepper,
        lineage=text.id,
        name=new.name,
        owner_id=by.person_id,
        project_ids=project_ids,
        expires_at=now + timedelta(days=new.days),
    )
    await _note(session, by, "key created", made, project_ids, scope=new.scope, name=new.name)
    return made


async def rotate(session: AsyncSession, by: Principal, key_id: str, *, pepper: bytes, now: datetime) -> MadeKey:
    """A key that may do the same as this one, which stays in force until it is revoked.

    Raises:
        KeyNotFound: When there is no such key, or not for this principal.
        TooManyKeys: When it has been rotated before, and both are in force.
    """
    key = await find(session, by, key_id)
    if not is_active(key, now):
        raise KeyNotFound(key_id)
    in_force = [one for one in await api_keys.of_lineage(session, key.lineage) if is_active(one, now)]
    if len(in_force) >= MAX_ACTIVE_IN_LINEAGE:
        others = " and ".join(one.id for one in in_force)
        raise TooManyKeys(f"{others} are in force already: revoke the older one before another takes its place")
    scope: Scope = next(scope for scope in key_text.SCOPES if scope == key.scope)
    made = await _keep(
        session,
        key_text.new(scope),
        pepper,
        lineage=key.lineage,
        name=key.name,
        owner_id=key.owner_id,
        project_ids=key.project_ids,
        expires_at=now + (key.expires_at - key.created_at),
    )
    await _note(session, by, "key rotated", made, key.project_ids, before=key.id)
    return made


async def revoke(session: AsyncSession, by: Principal, key_id: str, *, now: datetime) -> None:
    """Nothing; the key is refused from now on, by other server processes within 5 seconds.

    Raises:
        KeyNotFound: When there is no such key, or not for this principal.
    """
    key = await find(session, by, key_id)
    if await api_keys.revoke(session, key.id, now):
        await audit.note(session, by, "key revoked", project_id=_only(key.project_ids), key=key.id, name=key.name)


async def list_for(session: AsyncSession, by: Principal) -> list[ApiKey]:
    """One's own keys; an admin's are all that open nothing beyond what he manages."""
    return [key for key in await api_keys.of_owner(session, None) if _is_for(by, key)]


async def find(session: AsyncSession, by: Principal, key_id: str) -> ApiKey:
    """The key.

    Raises:
        KeyNotFound: When there is no such key, or not for this principal.
    """
    key = await api_keys.get(session, key_id)
    if key is None or not _is_for(by, key):
        raise KeyNotFound(key_id)
    return key


async def principal_of_key(session: AsyncSession, text: KeyText, *, pepper: bytes, now: datetime) -> Principal | None:
    """Whose key this is and what it opens; None where it is wrong, has ended, or its owner is gone."""
    key = await api_keys.get(session, text.id)
    if key is None or key.scope != text.scope or not compare_digest(key.secret_hash, keyed_hash(pepper, text.secret)):
        return None
    if not is_active(key, now):
        return None
    role = ROLE_OF_SCOPE[key.scope]
    if key.owner_id is None:
        roles = dict.fromkeys(key.project_ids or (), role)
        return _principal(key, everywhere=role if key.project_ids is None else None, roles=roles)
    owner = await principal_of(session, key.owner_id)
    return None if owner is None else _within(owner, key, role)


def is_active(key: ApiKey, now: datetime) -> bool:
    """Whether the key is in force."""
    return key.revoked_at is None and now < key.expires_at


def _within(owner: Principal, key: ApiKey, role: Role) -> Principal:
    """What the key opens of what its owner may do today."""
    roles = {project_id: weaker(role, one) for project_id, one in owner.roles.items()}
    everywhere = None if owner.everywhere is None else weaker(role, owner.everywhere)
    if key.project_ids is not None:
        named = {one: found for one in key.project_ids if (found := owner.role_in(one)) is not None}
        return _principal(key, everywhere=None, roles={one: weaker(role, found) for one, found in named.items()})
    return _principal(key, everywhere=everywhere, roles=roles)


def _principal(key: ApiKey, *, everywhere: Role | None, roles: dict[UUID, Role]) -> Principal:
    return Principal(
        "key", key.id, key.name, everywhere=everywhere, roles=roles, lineage=key.lineage, person_id=key.owner_id
    )


async def _projects(session: AsyncSession, by: Principal, new: NewKey) -> list[UUID] | None:
    """The ids of the key's projects, each of them open to its maker; None: all that he may enter."""
    needed = Right.MANAGE if new.scope == "admin" else Right.OWN_KEYS
    if new.projects is None:
        if by.person_id is None and not by.is_administrator:
            raise NotAllowed("this key may not make one for all projects: name projects")
        if new.scope == "admin" and not by.is_administrator:
            raise NotAllowed("only an admin of all projects makes an admin key for all of them: name projects")
        return None
    ids = await api_keys.project_ids(session, new.projects, creates=by.is_administrator)
    for name, project_id in zip(new.projects, ids, strict=True):
        if project_id is None or by.role_in(project_id) is None:
            raise ProjectNotFound(name)
        if not by.may(needed, project_id):
            raise NotAllowed(f"making keys of scope {new.scope} in project {name!r} needs another role")
    return [one for one in ids if one is not None]


def _is_for(by: Principal, key: ApiKey) -> bool:
    if by.is_administrator or (by.person_id is not None and key.owner_id == by.person_id):
        return True
    return bool(key.project_ids) and all(by.may(Right.MANAGE, one) for one in key.project_ids or ())


async def _keep(
    session: AsyncSession,
    text: KeyText,
    pepper: bytes,
    *,
    lineage: str,
    name: str,
    owner_id: UUID | None,
    project_ids: list[UUID] | None,
    expires_at: datetime,
) -> MadeKey:
    new = NewApiKey(
        id=text.id,
        lineage=lineage,
        secret_hash=keyed_hash(pepper, text.secret),
        scope=text.scope,
        name=name,
        owner_id=owner_id,
        project_ids=project_ids,
        expires_at=expires_at,
    )
    await api_keys.add(session, new)
    return MadeKey(text.id, expires_at, text.text)


async def _note(
    session: AsyncSession, by: Principal, action: str, made: MadeKey, project_ids: list[UUID] | None, **details: str
) -> None:
    await audit.note(session, by, action, project_id=_only(project_ids), key=made.id, **details)


def _only(project_ids: Sequence[UUID] | None) -> UUID | None:
    """The project that an entry is about; None where there are several."""
    return project_ids[0] if project_ids is not None and len(project_ids) == 1 else None
