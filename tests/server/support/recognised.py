"""Whose a key or a cookie is at a given moment, asked of the services, which recognise many at once."""

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.access import keys, sessions
from noisescale_server.services.access.access import Principal
from noisescale_server.services.access.key_text import KeyText
from noisescale_server.services.access.sessions import Secret


async def of_key(session: AsyncSession, text: KeyText, *, pepper: bytes, now: datetime) -> Principal | None:
    """Who shows this key; None where it opens nothing."""
    found = (await keys.recognized(session, [text], pepper=pepper, now=now)).get(text)
    return None if found is None else found.principal


async def of_cookie(session: AsyncSession, cookie: Secret, *, now: datetime) -> Principal | None:
    """Who is logged in with this cookie; None where nobody is."""
    return (await sessions.principals_of(session, [cookie], now=now)).get(cookie)
