"""Browsers that are logged in: kept here, not in the cookie, so that they can be ended."""

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services import audit
from noisescale_server.services.access import Principal
from noisescale_server.services.errors import PersonNotFound
from noisescale_server.services.people import principal_of
from noisescale_server.storage import people, web_sessions
from noisescale_server.storage.web_sessions import NewLoginAttempt

LONGEST: Final = timedelta(days=7)
IDLE: Final = timedelta(hours=12)
LINK_LIVES: Final = timedelta(hours=1)
ATTEMPT_LIVES: Final = timedelta(minutes=10)
NOTE_SEEN_EVERY: Final = timedelta(minutes=1)


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
        return cls(secrets.token_urlsafe(32))


async def log_in(session: AsyncSession, person_id: UUID, *, now: datetime, how: str) -> Secret:
    """What the browser's cookie is to hold: a new session, whatever the browser had before.

    Raises:
        PersonNotFound: When there is no such person, or not any more.
    """
    person = await principal_of(session, person_id)
    if person is None:
        raise PersonNotFound(person_id)
    await web_sessions.end_expired(session, now)
    cookie = Secret.new()
    await web_sessions.add(session, cookie.digest, person_id, now=now, expires_at=now + LONGEST)
    await audit.note(session, person, "logged in", how=how)
    return cookie


async def principal_of_cookie(session: AsyncSession, cookie: Secret, *, now: datetime) -> Principal | None:
    """Who is logged in; None after 12 hours without a look, after 7 days, and where there is no such session."""
    found = await web_sessions.get(session, cookie.digest)
    if found is None or now >= found.expires_at or now - found.last_seen_at >= IDLE:
        return None
    if now - found.last_seen_at >= NOTE_SEEN_EVERY:
        await web_sessions.note_seen(session, cookie.digest, now)
    return await principal_of(session, found.person_id)


async def log_out(session: AsyncSession, cookie: Secret) -> None:
    """Nothing; the session is over."""
    await web_sessions.end(session, cookie.digest)


async def new_link(session: AsyncSession, by: Principal, person_id: UUID, *, now: datetime) -> Secret:
    """What logs the person in once within the hour.

    Raises:
        PersonNotFound: When there is no such person.
    """
    if await people.get(session, person_id) is None:
        raise PersonNotFound(person_id)
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
    """Nothing; the browser may come back once within ten minutes."""
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
