"""From what a request carries to who sent it.

A right key or cookie is recognized first, and never counted: only wrong ones are, by the address that they come from.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from hmac import compare_digest
from typing import Final, Literal

from cachetools import TTLCache
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker
from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from noisescale_server.api.access.mode import AccessMode
from noisescale_server.api.platform.refusals import TooManyAttempts
from noisescale_server.api.platform.transactions import commit_with_retry
from noisescale_server.process.client_address import counted_as
from noisescale_server.services.access import keys, sessions, sharing
from noisescale_server.services.access.access import LOCAL, Principal
from noisescale_server.services.access.gathered_lookups import GatheredLookups
from noisescale_server.services.access.key_text import KeyText, parse
from noisescale_server.services.access.keys import RightKey
from noisescale_server.services.access.sessions import Secret
from noisescale_server.storage.access import api_keys

REMEMBER_SECONDS: Final = 5.0
"""How long a key that was revoked in another process may still be taken."""
MAX_REMEMBERED: Final = 10_000
WRONG_KEYS_PER_MINUTE: Final = 60
MINUTE: Final = 60.0
NOTE_USE_EVERY: Final = timedelta(minutes=1)
EVERYBODY: Final = "everybody"

Sessions = async_sessionmaker[AsyncSession]


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who sent a request, and what vouches for it: a cookie comes along whoever's page has sent it."""

    principal: Principal
    by: Literal["key", "cookie", "nothing"]


class WrongKeys:
    """How many wrong keys and cookies came from each address, a minute at a time.

    Not by `limits`: its storage in memory starts a thread a hundred times a second, or looks through all addresses
    each time, and others wait meanwhile.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._ends = -math.inf
        self._counts: Counter[str] = Counter()

    def is_one_too_many(self, address: str, now: float) -> bool:
        """Whether this wrong one, which is counted, is over the limit of its address."""
        if now >= self._ends:
            self._ends, self._counts = now + MINUTE, Counter()
        sender = counted_as(address)
        self._counts[sender] += 1
        return self._counts[sender] > self.most


class Credentials:
    """Reads keys and cookies. Right keys are remembered for five seconds; a cookie is looked up each time.

    Args:
        mode: Of the server.
        pepper: With which digests of keys are made.
        open_sessions: Where sessions of the database come from, once the server runs.
        now: A clock that never goes back.
        opens_projects: Projects may be open to everybody.
    """

    def __init__(
        self,
        mode: AccessMode,
        pepper: bytes,
        open_sessions: Callable[[], Sessions],
        now: Callable[[], float] = time.monotonic,
        *,
        opens_projects: bool = False,
    ) -> None:
        self._mode = mode
        self._opens_projects = opens_projects
        self._pepper = pepper
        self._open_sessions = open_sessions
        self._now = now
        self._remembered: TTLCache[bytes, Principal] = TTLCache(MAX_REMEMBERED, REMEMBER_SECONDS, self._clock)
        self._forgotten = 0
        self._keys = GatheredLookups(self._look_at_keys)
        self._cookies = GatheredLookups(self._look_at_cookies)
        self._links = GatheredLookups(self._look_at_links)
        self._everybody: TTLCache[str, Principal | None] = TTLCache(1, REMEMBER_SECONDS, self._clock)
        self._wrong = WrongKeys(WRONG_KEYS_PER_MINUTE)

    async def visitor(self, headers: Headers, address: str) -> Visitor | None:
        """Who sent it; None without credentials and for wrong ones. A key counts before a cookie.

        Raises:
            TooManyAttempts: For a wrong key or cookie, when the address has sent too many.
        """
        authorization = headers.get("authorization")
        if authorization is not None:
            principal = await self._of_key(authorization, address)
            return None if principal is None else Visitor(principal, "key")
        cookie = cookie_parser(headers.get("cookie", "")).get(self._mode.cookie)
        if cookie is None:
            return None
        principal = await self._of_cookie(cookie)
        if principal is None:
            self._count_wrong(address)
            return None
        return Visitor(principal, "cookie")

    async def guest(self, headers: Headers, address: str) -> Visitor | None:
        """Who comes by a link that shows a run; else everybody, where this server opens projects to them.

        Nobody who has sent a key, or the cookie of a login: what is wrong about these is to be said.

        Raises:
            TooManyAttempts: For a link that has ended, when the address has sent too many.
        """
        if "authorization" in headers:
            return None
        cookies = cookie_parser(headers.get("cookie", ""))
        link = cookies.get(self._mode.link_cookie)
        if link is not None:
            principal = await self.of_link(link, address)
            if principal is not None:
                return Visitor(principal, "cookie")
        if not self._opens_projects or self._mode.cookie in cookies:
            return None
        if EVERYBODY not in self._everybody:
            async with self._open_sessions()() as session:
                self._everybody[EVERYBODY] = await sharing.everybody(session)
        found = self._everybody[EVERYBODY]
        return None if found is None else Visitor(found, "nothing")

    async def of_link(self, text: str, address: str) -> Principal | None:
        """Who comes by this link; None where it has ended.

        Raises:
            TooManyAttempts: Then, when the address has sent too many.
        """
        found = await self._links.answer(Secret(text)) if Secret.is_one(text) else None
        if found is None:
            self._count_wrong(address)
        return found

    @staticmethod
    def is_token(mode: AccessMode, text: str) -> bool:
        """Whether this is the local user's token."""
        return mode.token is not None and compare_digest(text.encode(), mode.token.encode())

    def forget_after(self, session: AsyncSession) -> None:
        """Look up again what was remembered, once the session has committed: keys or roles have changed then."""
        event.listen(session.sync_session, "after_commit", lambda _: self.forget(), once=True)

    def forget(self) -> None:
        """Look up again what was remembered, also what is being looked up."""
        self._forgotten += 1
        self._remembered.clear()
        self._everybody.clear()

    async def _of_key(self, authorization: str, address: str) -> Principal | None:
        scheme, _, text = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        text = text.strip()
        if self.is_token(self._mode, text):
            return LOCAL
        principal = self._recall(text) or await self._look_up_key(text, address)
        if principal is None:
            self._count_wrong(address)
        return principal

    async def _look_up_key(self, text: str, address: str) -> Principal | None:
        key = parse(text)
        if key is None:
            return None
        forgotten = self._forgotten
        found = await self._keys.answer(key)
        if found is None:
            return None
        if forgotten == self._forgotten:
            self._remember(text, found.principal)
        await self._note_use(found, address)
        return found.principal

    async def _note_use(self, found: RightKey, address: str) -> None:
        now = datetime.now(UTC)
        if found.last_used_at is not None and now - found.last_used_at < NOTE_USE_EVERY:
            return
        async with self._open_sessions().begin() as session:
            await api_keys.note_use(session, found.principal.id, now, address)

    async def _of_cookie(self, cookie: str) -> Principal | None:
        if self._mode.is_local:
            secret = self._mode.browser_secret()
            return LOCAL if secret is not None and compare_digest(cookie.encode(), secret.encode()) else None
        return await self._cookies.answer(Secret(cookie)) if Secret.is_one(cookie) else None

    async def _look_at_keys(self, texts: Collection[KeyText]) -> Mapping[KeyText, RightKey]:
        look = partial(keys.recognized, texts=texts, pepper=self._pepper, now=datetime.now(UTC))
        return await commit_with_retry(self._open_sessions(), look)

    async def _look_at_cookies(self, cookies: Collection[Secret]) -> Mapping[Secret, Principal]:
        look = partial(sessions.principals_of, cookies=cookies, now=datetime.now(UTC))
        return await commit_with_retry(self._open_sessions(), look)

    async def _look_at_links(self, secrets: Collection[Secret]) -> Mapping[Secret, Principal]:
        look = partial(sharing.visitors_of, secrets=secrets, now=datetime.now(UTC))
        return await commit_with_retry(self._open_sessions(), look)

    def _count_wrong(self, address: str) -> None:
        if self._wrong.is_one_too_many(address, self._now()):
            raise TooManyAttempts

    def _clock(self) -> float:
        return self._now()

    def _recall(self, text: str) -> Principal | None:
        return self._remembered.get(_digest(text))

    def _remember(self, text: str, principal: Principal) -> None:
        self._remembered[_digest(text)] = principal


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()
