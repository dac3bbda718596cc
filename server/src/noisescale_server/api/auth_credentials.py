"""From what a request carries to who sent it."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from hmac import compare_digest
from typing import Final, Literal

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker
from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from noisescale_server.api.auth_mode import AccessMode
from noisescale_server.services import keys, sessions
from noisescale_server.services.access import LOCAL, Principal
from noisescale_server.services.errors import DomainError
from noisescale_server.services.key_text import KeyText, parse
from noisescale_server.services.sessions import Secret
from noisescale_server.storage import api_keys

REMEMBER_SECONDS: Final = 5.0
"""How long a key that was revoked in another process may still be taken."""
MAX_REMEMBERED: Final = 10_000
WRONG_KEYS_PER_MINUTE: Final = 60
NOTE_USE_EVERY: Final = timedelta(minutes=1)


class TooManyAttempts(DomainError):
    """Somebody tries keys."""

    retry_after_seconds = 60

    def __init__(self) -> None:
        super().__init__("too many wrong keys came from this address in the last minute: try again in 60 s")


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who sent a request, and what vouches for it: a cookie comes along whoever's page has sent it."""

    principal: Principal
    by: Literal["key", "cookie"]


class Credentials:
    """Reads keys and cookies, and remembers for five seconds whose they are."""

    def __init__(self, mode: AccessMode, pepper: bytes, now: Callable[[], float] = time.monotonic) -> None:
        self._mode = mode
        self._pepper = pepper
        self._now = now
        self._remembered: OrderedDict[bytes, tuple[float, Principal | None]] = OrderedDict()
        self._wrong = FixedWindowRateLimiter(MemoryStorage())
        self._limit = RateLimitItemPerMinute(WRONG_KEYS_PER_MINUTE)

    async def visitor(
        self, sessions_: async_sessionmaker[AsyncSession], headers: Headers, address: str
    ) -> Visitor | None:
        """Who sent it; None without credentials and for wrong ones. A key counts before a cookie.

        Raises:
            TooManyAttempts: When the address has sent too many wrong keys.
        """
        authorization = headers.get("authorization")
        if authorization is not None:
            principal = await self._of_key(sessions_, authorization, address)
            return None if principal is None else Visitor(principal, "key")
        cookie = cookie_parser(headers.get("cookie", "")).get(self._mode.cookie)
        if cookie is None:
            return None
        principal = await self._of_cookie(sessions_, cookie)
        return None if principal is None else Visitor(principal, "cookie")

    @staticmethod
    def is_token(mode: AccessMode, text: str) -> bool:
        """Whether this is the local user's token."""
        return mode.token is not None and compare_digest(text.encode(), mode.token.encode())

    def forget(self) -> None:
        """Nothing; what was remembered is looked up again, since keys or roles have changed."""
        self._remembered.clear()

    async def _of_key(
        self, sessions_: async_sessionmaker[AsyncSession], authorization: str, address: str
    ) -> Principal | None:
        scheme, _, text = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        text = text.strip()
        if self.is_token(self._mode, text):
            return LOCAL
        known, principal = self._recall(text)
        if known:
            return principal
        key = parse(text)
        if key is None or not self._wrong.test(self._limit, address):
            self._count_wrong(address)
            return None
        principal = await self._read_key(sessions_, key, address)
        self._remember(text, principal)
        if principal is None:
            self._count_wrong(address)
        return principal

    async def _read_key(
        self, sessions_: async_sessionmaker[AsyncSession], key: KeyText, address: str
    ) -> Principal | None:
        now = datetime.now(UTC)
        async with sessions_.begin() as session:
            principal = await keys.principal_of_key(session, key, pepper=self._pepper, now=now)
            if principal is not None:
                row = await api_keys.get(session, key.id)
                if row is not None and (row.last_used_at is None or now - row.last_used_at >= NOTE_USE_EVERY):
                    await api_keys.note_use(session, key.id, now, address)
        return principal

    async def _of_cookie(self, sessions_: async_sessionmaker[AsyncSession], cookie: str) -> Principal | None:
        if self._mode.is_local:
            secret = self._mode.browser_secret()
            return LOCAL if secret is not None and compare_digest(cookie.encode(), secret.encode()) else None
        known, principal = self._recall(cookie)
        if known:
            return principal
        async with sessions_.begin() as session:
            principal = await sessions.principal_of_cookie(session, Secret(cookie), now=datetime.now(UTC))
        self._remember(cookie, principal)
        return principal

    def _count_wrong(self, address: str) -> None:
        if not self._wrong.hit(self._limit, address):
            raise TooManyAttempts

    def _recall(self, text: str) -> tuple[bool, Principal | None]:
        found = self._remembered.get(_digest(text))
        if found is None or self._now() - found[0] >= REMEMBER_SECONDS:
            return False, None
        return True, found[1]

    def _remember(self, text: str, principal: Principal | None) -> None:
        self._remembered[_digest(text)] = self._now(), principal
        self._remembered.move_to_end(_digest(text))
        while len(self._remembered) > MAX_REMEMBERED:
            self._remembered.popitem(last=False)


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()
