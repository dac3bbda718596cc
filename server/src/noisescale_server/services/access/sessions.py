"""Browsers that are logged in: kept here, not in the cookie, so that they can be ended."""

import hashlib
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.access import audit
from noisescale_server.services.access.access import Principal
from noisescale_server.services.access.people import principal_from, principal_of
from noisescale_server.services.platform.errors import NotAllowed, PersonNotFound
from noisescale_server.storage.access import people, web_sessions
from noisescale_server.storage.access.web_sessions import NewLoginAttempt

LONGEST: Final = timedelta(days=7)
IDLE: Final = timedelta(hours=12)
LINK_LIVES: Final = timedelta(hours=1)
ATTEMPT_LIVES: Final = timedelta(minutes=10)
NOTE_SEEN_EVERY: Final = timedelta(minutes=1)
SECRET_BYTES: Final = 32
_SECRET: Final = re.compile(r"[\w-]{43}", re.ASCII)
"""32 bytes in base64."""


@dataclass(frozen=True, slots=True)
class Secret:
    """Something that is handed out once and kept as a digest."""

    text: str = field(repr=False)

    @property
    def digest(self) -> bytes:
        """What is kept. The text has 256 random bits, so a plain digest cannot be searched."""
        return hashlib.sha256(self.text.encode()).digest()

    @classmethod
    def new(cls) -> "Secret":
        """One nobody has seen."""
        return cls(secrets.token_urlsafe(SECRET_BYTES))

    @classmethod
    def is_one(cls, text: str) -> bool:
        """Whether it has the form of one; what has not need not be looked up."""
        return _SECRET.fullmatch(text) is not None


async def log_in(session: AsyncSession, person_id: UUID, *, now: datetime, how: str) -> Secret | None:
    """What the browser's cookie is to hold: a new session, whatever the browser had before; None for the disabled."""
    # who is being disabled at this moment has no session afterwards
    await people.hold(session, person_id)
    person = await principal_of(session, person_id)
    if person is None:
        return None
    await web_sessions.end_expired(session, now)
    cookie = Secret.new()
    await web_sessions.add(session, cookie.digest, person_id, now=now, expires_at=now + LONGEST)
    await audit.note(session, person, "logged in", how=how)
    return cookie


async def principals_of(
    session: AsyncSession, cookies: Collection[Secret], *, now: datetime
) -> dict[Secret, Principal]:
    """Who is logged in, by cookie; without those whose session is over.

    It is over after 12 hours without a look, after 7 days, and where there is none.
    """
    found = await web_sessions.several(session, [cookie.digest for cookie in cookies])
    lasting = {digest: one for digest, one in found.items() if now < one.expires_at and now - one.last_seen_at < IDLE}
    due = [digest for digest, one in lasting.items() if now - one.last_seen_at >= NOTE_SEEN_EVERY]
    if due:
        await web_sessions.note_seen(session, due, now)
    known = {digest: principal_from(one.person) for digest, one in lasting.items()}
    return {cookie: known[cookie.digest] for cookie in cookies if cookie.digest in known}


async def log_out(session: AsyncSession, cookie: Secret) -> None:
    """End the session."""
    await web_sessions.end(session, cookie.digest)


async def new_link(session: AsyncSession, by: Principal, person_id: UUID, *, now: datetime) -> Secret:
    """What logs the person in once within the hour.

    Raises:
        PersonNotFound: When there is no such person.
        NotAllowed: For somebody who is disabled.
    """
    person = await people.hold(session, person_id)
    if person is None:
        raise PersonNotFound(person_id)
    if person.disabled_at is not None:
        raise NotAllowed(f"{person.name!r} is disabled and cannot log in: enable them first")
    link = Secret.new()
    await web_sessions.add_attempt(
        session, NewLoginAttempt(id_hash=link.digest, person_id=person_id, expires_at=now + LINK_LIVES)
    )
    await audit.note(session, by, "login link made", person=str(person_id))
    return link


async def take_link(session: AsyncSession, link: Secret, *, now: datetime) -> UUID | None:
    """Whose link this was: it is used up. None where there is none."""
    found = await web_sessions.take_attempt(session, link.digest, now)
    return None if found is None else found.person_id


@dataclass(frozen=True, slots=True)
class WayBack:
    """What has to be the same when a browser comes back from the organisation's login."""

    nonce: str
    verifier: str
    return_to: str


async def keep_way_back(session: AsyncSession, state: Secret, way: WayBack, *, now: datetime) -> None:
    """Let the browser come back once within ten minutes."""
    attempt = NewLoginAttempt(
        id_hash=state.digest,
        nonce=way.nonce,
        verifier=way.verifier,
        return_to=way.return_to,
        expires_at=now + ATTEMPT_LIVES,
    )
    await web_sessions.add_attempt(session, attempt)


async def take_way_back(session: AsyncSession, state: Secret, *, now: datetime) -> WayBack | None:
    """What was kept when the browser left; it is used up. None where it did not leave from here."""
    found = await web_sessions.take_attempt(session, state.digest, now)
    if found is None or found.nonce is None or found.verifier is None:
        return None
    return WayBack(found.nonce, found.verifier, found.return_to)
