"""Not more reads and batches from one sender than agreed, and not all reads at once: the others must not starve.

Each server process counts for itself, so several of them let through that many times as much.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from cachetools import LRUCache
from fastapi import Request

from noisescale_server.api.access.route import principal_of
from noisescale_server.api.platform.refusals import Busy, TooManyBatches, TooManyReads

MAX_SENDERS: Final = 10_000


class Buckets:
    """A bucket of tokens for each sender: what is counted takes some, and they come back at an even pace.

    Our own, in a few lines: `limits` in memory starts a thread for each count, and the event loop waits for it.

    Args:
        per_minute: Tokens that come back.
        burst_seconds: A full bucket holds what comes back in so long, and at least one token.
        now: Seconds of a clock that never goes back.
    """

    def __init__(self, per_minute: int, burst_seconds: float, now: Callable[[], float]) -> None:
        self._per_second = per_minute / 60
        self._capacity = max(1.0, burst_seconds * self._per_second)
        self._now = now
        # whoever has not come for longest is forgotten: its bucket is the fullest
        self._known: LRUCache[str, tuple[float, float]] = LRUCache(MAX_SENDERS)

    def take(self, sender: str, tokens: int = 1) -> float:
        """Take tokens out of the sender's bucket if it holds as many; the seconds until it would, 0 if it did."""
        now = self._now()
        held, since = self._known.pop(sender, (self._capacity, now))
        held = min(self._capacity, held + (now - since) * self._per_second)
        missing = tokens - held
        self._known[sender] = (held if missing > 0 else -missing, now)
        return max(0.0, missing / self._per_second)

    def owe(self, sender: str, tokens: int) -> None:
        """Take tokens out of the sender's bucket, those that it does not hold as well: up to a bucket of them."""
        self.take(sender, 0)
        held, now = self._known[sender]
        self._known[sender] = (max(-self._capacity, held - tokens), now)


# Batches: one job that sends without end must not starve the others.

BATCHES_SECONDS: Final = 60
"""A full bucket holds the batches of so long: a job that comes back from a cut sends what it has kept at once."""
BATCHES_PER_TOO_LARGE: Final = 100
"""An honest sender halves its batch, and waits where few are left; one that throws bombs is soon not read any more."""


class BatchRate:
    """Who may send another batch now."""

    def __init__(self, per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._buckets = Buckets(per_minute, BATCHES_SECONDS, now)

    def count(self, sender: str) -> None:
        """Count the sender's batch.

        Raises:
            TooManyBatches: When it is one too many.
        """
        if wait := self._buckets.take(sender):
            raise TooManyBatches(self._per_minute, math.ceil(wait))

    def count_too_large(self, sender: str) -> None:
        """Count a batch that was refused for its size as many; those that follow wait.

        It is never answered by "wait" itself: whoever waits and sends it again would not learn that it is too large.
        """
        self._buckets.owe(sender, BATCHES_PER_TOO_LARGE)


async def count_batch(request: Request) -> None:
    """Count a batch of this sender.

    Raises:
        TooManyBatches: When it is one too many.
    """
    rate: BatchRate = request.app.state.batch_rate
    rate.count(sender_of(request))


def count_too_large(request: Request) -> None:
    """Count a body of this sender that was refused for its size as many batches."""
    rate: BatchRate = request.app.state.batch_rate
    rate.count_too_large(sender_of(request))


def sender_of(request: Request) -> str:
    """The key or person that sends."""
    principal = principal_of(request)
    return f"{principal.kind} {principal.id}"


# Reads: a script without end must not starve the others.

BURST_SECONDS: Final = 20
"""A full bucket holds the reads of so long: twenty tabs that a browser opens again at once ask for less."""
AT_ONCE: Final = 4
"""Reads of one sender that are worked on at the same time; further ones wait for these."""
LONGEST_WAIT_SECONDS: Final = 5.0
STREAMS: Final = "/api/v1/streams/"
"""Where jobs send: counted as batches."""
DESCRIPTIONS: Final = frozenset({"/openapi.json", "/openapi"})
PROBES: Final = frozenset({"/livez", "/readyz"})
"""Others behind the same address must not make a supervisor think that this process is dead."""


def is_read(method: str, path: str) -> bool:
    """Whether a request is one that people, pages and scripts send: not a job's, not a change, not a probe."""
    if path.startswith("/api/"):
        return method in ("GET", "HEAD") and not path.startswith(STREAMS)
    return path not in PROBES


def takes_a_turn(method: str, path: str) -> bool:
    """Whether a request waits for others of its sender; pages do not, as they read the API themselves meanwhile."""
    return (path.startswith("/api/") or path in DESCRIPTIONS) and is_read(method, path)


class ReadRate:
    """Who may read now."""

    def __init__(self, per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._buckets = Buckets(per_minute, BURST_SECONDS, now)

    def count(self, sender: str) -> None:
        """Count the sender's read.

        Raises:
            TooManyReads: When it is one too many.
        """
        if wait := self._buckets.take(sender):
            raise TooManyReads(self._per_minute, math.ceil(wait))


class Turns:
    """Lets a few requests of each sender through at once: the others of the process find a place between them."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._num_here: Counter[str] = Counter()

    @asynccontextmanager
    async def of(self, sender: str) -> AsyncIterator[None]:
        """Wait for the sender's turn, and hold it during the block.

        Raises:
            Busy: When it does not come in time.
        """
        turns = self._turns.setdefault(sender, asyncio.Semaphore(self._at_once))
        self._num_here[sender] += 1
        try:
            await self._wait_for(turns)
            try:
                yield
            finally:
                turns.release()
        finally:
            self._num_here[sender] -= 1
            if not self._num_here[sender]:
                del self._num_here[sender], self._turns[sender]

    @staticmethod
    async def _wait_for(turns: asyncio.Semaphore) -> None:
        try:
            async with asyncio.timeout(LONGEST_WAIT_SECONDS):
                await turns.acquire()
        except TimeoutError:
            raise Busy(LONGEST_WAIT_SECONDS, AT_ONCE) from None
