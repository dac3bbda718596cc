"""Browsers that are logged in, and what logs one in once."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, insert, update
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.access.people import ENABLED_COLUMNS, Enabled
from noisescale_server.storage.access.tables import LoginAttempt, WebSession
from noisescale_server.storage.platform.driver import read

# one statement: it is asked for every request of a browser
_SEVERAL = f"""
SELECT id_hash, last_seen_at, expires_at, {ENABLED_COLUMNS}
FROM web_session JOIN person ON person.id = web_session.person_id
WHERE id_hash = ANY($1::bytea[]) AND disabled_at IS NULL
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Login:
    """A browser that is logged in, and whose it is."""

    last_seen_at: datetime
    expires_at: datetime
    person: Enabled


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLoginAttempt:
    """What logs in once: a link for `person_id`, or the way back from the organisation's login."""

    id_hash: bytes
    person_id: UUID | None = None
    nonce: str | None = None
    verifier: str | None = None
    return_to: str = "/"
    expires_at: datetime


async def add(session: AsyncSession, id_hash: bytes, person_id: UUID, *, now: datetime, expires_at: datetime) -> None:
    """Log the browser in."""
    values = {
        "id_hash": id_hash,
        "person_id": person_id,
        "created_at": now,
        "last_seen_at": now,
        "expires_at": expires_at,
    }
    await session.execute(insert(WebSession).values(values))


async def several(session: AsyncSession, id_hashes: Collection[bytes]) -> dict[bytes, Login]:
    """Those of these sessions that there are, by their digest, without those of people who are disabled."""
    rows = await read(session, _SEVERAL, list(id_hashes))
    return {row["id_hash"]: Login(row["last_seen_at"], row["expires_at"], Enabled.of(row)) for row in rows}


async def note_seen(session: AsyncSession, id_hashes: Collection[bytes], at: datetime) -> None:
    """Write down when these sessions were seen last."""
    await session.execute(update(WebSession).where(WebSession.id_hash.in_(id_hashes)).values(last_seen_at=at))


async def end(session: AsyncSession, id_hash: bytes) -> None:
    """Log the browser out."""
    await session.execute(delete(WebSession).where(WebSession.id_hash == id_hash))


async def end_all_of(session: AsyncSession, person_id: UUID) -> None:
    """Log every browser of the person out."""
    await session.execute(delete(WebSession).where(WebSession.person_id == person_id))


async def end_links_of(session: AsyncSession, person_id: UUID) -> None:
    """Take back the links that would log the person in."""
    await session.execute(delete(LoginAttempt).where(LoginAttempt.person_id == person_id))


async def end_all(session: AsyncSession) -> int:
    """How many browsers were logged out: all there are, and what would log one in is taken back too."""
    await session.execute(delete(LoginAttempt))
    return len((await session.scalars(delete(WebSession).returning(WebSession.id_hash))).all())


async def end_expired(session: AsyncSession, now: datetime) -> None:
    """Delete what has run out."""
    await session.execute(delete(WebSession).where(WebSession.expires_at < now))
    await session.execute(delete(LoginAttempt).where(LoginAttempt.expires_at < now))


async def add_attempt(session: AsyncSession, new: NewLoginAttempt) -> None:
    """Insert an attempt, which logs in once."""
    await session.execute(insert(LoginAttempt).values(asdict(new)))


async def take_attempt(session: AsyncSession, id_hash: bytes, now: datetime) -> NewLoginAttempt | None:
    """What was kept of the attempt, which is used up; None where there is none or its time is over."""
    gone = delete(LoginAttempt).where(LoginAttempt.id_hash == id_hash)
    columns = (LoginAttempt.person_id, LoginAttempt.nonce, LoginAttempt.verifier, LoginAttempt.return_to)
    found = (await session.execute(gone.returning(*columns, LoginAttempt.expires_at))).one_or_none()
    if found is None or found.expires_at < now:
        return None
    return NewLoginAttempt(id_hash=id_hash, **found._mapping)
