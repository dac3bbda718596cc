"""API keys: made once, shown once, rotated, revoked, and read back as a principal."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.access import audit, key_text
from noisescale_server.services.access.access import LOCAL, RIGHTS_OF_SCOPE, Principal, Right, narrowed
from noisescale_server.services.access.key_text import KeyText, Scope, keyed_hash
from noisescale_server.services.access.people import principal_of, principals_of
from noisescale_server.services.platform.errors import KeyNotFound, NotAllowed, ProjectNotFound, TooManyKeys, refuse
from noisescale_server.storage.access import api_keys, people
from noisescale_server.storage.access.api_keys import NewApiKey
from noisescale_server.storage.access.tables import ApiKey

DEFAULT_DAYS: Final = 180
MAX_DAYS: Final = 730
MAX_ACTIVE_IN_LINEAGE: Final = 2
"""A key and the one that takes its place."""
MAX_ACTIVE_OF_OWNER: Final = 100


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
        _check_still(await _held_owner(session, by.person_id), by, new.scope, project_ids)
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
    if key.owner_id is not None:
        owner = await _held_owner(session, key.owner_id)
        key = await find(session, by, key_id)  # its owner may have lost it, or projects of it, meanwhile
        if key.project_ids is not None and not all(map(owner.rights_in, key.project_ids)):
            raise KeyNotFound(key_id)
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
    """End a key: it is refused from now on, by other server processes within 5 seconds.

    Raises:
        KeyNotFound: When there is no such key, or not for this principal.
    """
    key = await find(session, by, key_id)
    if await api_keys.revoke(session, key.id, now):
        await audit.note(session, by, "key revoked", project_id=_only(key.project_ids), key=key.id, name=key.name)


async def end_those_that_open_nothing(session: AsyncSession, by: Principal, owner_id: UUID, *, now: datetime) -> None:
    """End a person's keys as far as they open nothing any more: they do not come back where the person does."""
    owner = await principal_of(session, owner_id)
    for key in await api_keys.of_owner(session, owner_id):
        if is_active(key, now):
            await _end_where_closed(session, by, owner, key, now=now)


async def _end_where_closed(
    session: AsyncSession, by: Principal, owner: Principal | None, key: ApiKey, *, now: datetime
) -> None:
    if owner is not None and key.project_ids is None and (owner.everywhere or owner.rights):
        return
    named = key.project_ids or []
    kept = [] if owner is None else [one for one in named if owner.rights_in(one)]
    if not kept:
        await api_keys.revoke(session, key.id, now)
        await audit.note(session, by, "key revoked", project_id=_only(key.project_ids), key=key.id, name=key.name)
    elif len(kept) < len(named):
        await api_keys.narrow(session, key.id, kept)
        await audit.note(session, by, "key narrowed", key=key.id, name=key.name)


async def list_for(session: AsyncSession, by: Principal) -> list[ApiKey]:
    """One's own keys; an admin's are all that open nothing beyond what he manages."""
    return [key for key in await api_keys.everybodys(session) if _is_for(by, key)]


async def find(session: AsyncSession, by: Principal, key_id: str) -> ApiKey:
    """The key.

    Raises:
        KeyNotFound: When there is no such key, or not for this principal.
    """
    key = await api_keys.get(session, key_id)
    if key is None or not _is_for(by, key):
        raise KeyNotFound(key_id)
    return key


@dataclass(frozen=True, slots=True)
class RightKey:
    """A key that is what it says.

    Attributes:
        principal: What it opens.
        last_used_at: As far as that has been written down.
    """

    principal: Principal
    last_used_at: datetime | None


async def recognized(
    session: AsyncSession, texts: Collection[KeyText], *, pepper: bytes, now: datetime
) -> dict[KeyText, RightKey]:
    """Those of the keys that are right; without wrong ones, those that have ended, and those whose owner is gone."""
    rows = await api_keys.several(session, {text.id for text in texts})
    right = {
        text: key for text in texts if (key := rows.get(text.id)) is not None and _is_right(key, text, pepper, now)
    }
    owners = await principals_of(session, {key.owner_id for key in right.values() if key.owner_id is not None})
    # nobody's key was made by who may do everything
    owned = {text: LOCAL if key.owner_id is None else owners.get(key.owner_id) for text, key in right.items()}
    return {
        text: RightKey(_within(owner, right[text], text.scope), right[text].last_used_at)
        for text, owner in owned.items()
        if owner is not None
    }


def _is_right(key: ApiKey, text: KeyText, pepper: bytes, now: datetime) -> bool:
    is_same = compare_digest(key.secret_hash, keyed_hash(pepper, text.secret))
    return is_same and key.scope == text.scope and is_active(key, now)


def is_active(key: ApiKey, now: datetime) -> bool:
    """Whether the key is in force."""
    return key.revoked_at is None and now < key.expires_at


def _within(owner: Principal, key: ApiKey, scope: Scope) -> Principal:
    """What the key opens of what its owner may do today."""
    only = None if key.project_ids is None else frozenset(key.project_ids)
    everywhere, rights = narrowed(owner, RIGHTS_OF_SCOPE[scope], only)
    return Principal("key", key.id, key.name, everywhere, rights, key.lineage, key.owner_id, only)


async def _held_owner(session: AsyncSession, person_id: UUID) -> Principal:
    """The person as they are now; nobody disables them or takes a role away until the transaction ends."""
    person = await people.hold(session, person_id)
    owner = None if person is None else await principal_of(session, person_id)
    if owner is None:
        raise NotAllowed("who is disabled has no keys")
    return owner


def _check_still(owner: Principal, by: Principal, scope: Scope, project_ids: Sequence[UUID] | None) -> None:
    """Raise NotAllowed where the owner has lost, since the request was let in, what the key would need."""
    needed = Right.MANAGE if scope == "admin" else Right.OWN_KEYS
    if project_ids is not None:
        is_left = all(owner.may(needed, one) for one in project_ids)
    elif scope == "admin":
        is_left = owner.is_administrator
    else:  # who has no role yet may make one for all that is to come
        is_left = bool(owner.everywhere or owner.rights) or not (by.everywhere or by.rights)
    if not is_left:
        raise NotAllowed("your role was taken away or changed meanwhile")


async def _projects(session: AsyncSession, by: Principal, new: NewKey) -> list[UUID] | None:
    """The ids of the key's projects, each of them open to its maker; None: all that he may enter."""
    needed = Right.MANAGE if new.scope == "admin" else Right.OWN_KEYS
    if new.projects is None:
        if by.only is not None:
            raise NotAllowed("this key may not make one for all projects: name projects")
        if new.scope == "admin" and not by.is_administrator:
            raise NotAllowed("only an admin of all projects makes an admin key for all of them: name projects")
        return None
    ids = await api_keys.project_ids(session, new.projects, creates=by.is_administrator)
    for name, project_id in zip(new.projects, ids, strict=True):
        if project_id is None or not by.rights_in(project_id):
            raise ProjectNotFound(name)
        if not by.may(needed, project_id):
            raise NotAllowed(f"making keys of scope {new.scope} in project {name!r} needs another role")
    return [one for one in ids if one is not None]


def _is_for(by: Principal, key: ApiKey) -> bool:
    """Whether this principal may see, rotate and end the key: a key for some projects no key beyond these."""
    is_own = by.person_id is not None and key.owner_id == by.person_id
    if by.is_administrator or (is_own and by.only is None):
        return True
    needed = Right.OWN_KEYS if is_own else Right.MANAGE
    return bool(key.project_ids) and all(by.may(needed, one) for one in key.project_ids or ())


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
    match project_ids:
        case [only]:
            return only
    return None
