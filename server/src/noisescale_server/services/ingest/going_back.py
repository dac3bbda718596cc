"""A database that went back in time: what has been stored and taken away since is unknown to it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.access import audit
from noisescale_server.services.access.access import Principal
from noisescale_server.storage.access import api_keys, sharing, web_sessions
from noisescale_server.storage.platform import epochs


@dataclass(frozen=True, slots=True)
class EndedKey:
    """A key that the backup would have brought back."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class BegunAgain:
    """What has ended with the time before.

    Attributes:
        epoch: The one that has begun.
        num_sessions: Browsers that were logged in.
        keys: Those that were in force.
    """

    epoch: UUID
    num_sessions: int
    keys: tuple[EndedKey, ...]


async def begin_again(session: AsyncSession, by: Principal, *, keeps_keys: bool, now: datetime) -> BegunAgain:
    """Begin a new epoch without the logins, login links and keys of the time before: any may have been ended since.

    Args:
        session: On the database that went back.
        by: Who says so.
        keeps_keys: No key has been revoked since, so those of jobs stay in force.
        now: When.
    """
    num_sessions = await web_sessions.end_all(session)
    num_links = await sharing.end_all_links(session)
    ended = [] if keeps_keys else await api_keys.revoke_all(session, now)
    for key in ended:
        await audit.note(session, by, "key revoked", key=key.id, name=key.name, why="the database went back in time")
    await audit.note(
        session,
        by,
        "database went back",
        sessions_ended=str(num_sessions),
        keys_ended=str(len(ended)),
        links_ended=str(num_links),
    )
    keys = tuple(EndedKey(key.id, key.name) for key in sorted(ended, key=lambda key: key.name))
    return BegunAgain(await epochs.rotate(session), num_sessions, keys)
