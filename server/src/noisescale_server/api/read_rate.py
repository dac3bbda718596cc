"""Not more reads from one sender than agreed: a script without end must not starve the others.

A read that works long is charged as several. Each server process counts for itself, so several of them let through
that many times as much.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from noisescale_server.services.errors import DomainError

BURST_SECONDS: Final = 20
"""A full bucket holds what comes in so long: twenty tabs that a browser opens again at once ask for less."""
SECONDS_OF_A_READ: Final = 0.01
"""Work that one read pays for, twice what the list of runs takes; at the usual rate half of a sender's time."""
MAX_SENDERS: Final = 10_000
STREAMS: Final = "/api/v1/streams/"
"""Where jobs send: counted as batches."""
DESCRIPTIONS: Final = frozenset({"/openapi.json", "/docs"})
PROBES: Final = frozenset({"/livez", "/readyz"})
"""Others behind the same address must not make a supervisor think that this process is dead."""


class TooManyReads(DomainError):
    """A sender reads more than its share; it may go on when it has waited."""

    members = ("limit_per_minute",)

    def __init__(self, limit_per_minute: int, retry_after_seconds: int) -> None:
        super().__init__(
            f"more than {limit_per_minute} reads a minute from one key, person or address, each "
            f"{1_000 * SECONDS_OF_A_READ:g} ms of work counted as one: try again in {retry_after_seconds} s, or raise "
            "NOISESCALE_READS_PER_MINUTE"
        )
        self.limit_per_minute = limit_per_minute
        self.retry_after_seconds = retry_after_seconds


def is_read(method: str, path: str) -> bool:
    """Whether a request is one that people, pages and scripts send: not a job's, not a change, not a probe."""
    if path.startswith("/api/"):
        return method in ("GET", "HEAD") and not path.startswith(STREAMS)
    return path not in PROBES


def takes_a_turn(method: str, path: str) -> bool:
    """Whether a request waits for others of its sender; pages do not, as they read the API themselves meanwhile."""
    return (path.startswith("/api/") or path in DESCRIPTIONS) and is_read(method, path)


class ReadRate:
    """A bucket of tokens for each sender: a read takes one or, by its work, several; they come back at an even pace."""

    def __init__(self, per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._per_second = per_minute / 60
        self._capacity = max(1.0, BURST_SECONDS * self._per_second)
        self._now = now
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, sender: str) -> None:
        """Take a token out of the sender's bucket.

        Raises:
            TooManyReads: When it is empty.
        """
        tokens = self._tokens(sender)
        if tokens < 1:
            raise TooManyReads(self._per_minute, max(1, math.ceil((1 - tokens) / self._per_second)))
        self._take(sender, 1)

    def charge(self, sender: str, seconds: float) -> None:
        """Take what a read has worked beyond the token that it has paid; the bucket may owe some then."""
        self._take(sender, max(0.0, seconds / SECONDS_OF_A_READ - 1))

    def _take(self, sender: str, tokens: float) -> None:
        self._known[sender] = (self._tokens(sender) - tokens, self._now())

    def _tokens(self, sender: str) -> float:
        now = self._now()
        tokens, since = self._known.pop(sender, (self._capacity, now))
        tokens = min(self._capacity, tokens + (now - since) * self._per_second)
        self._known[sender] = tokens, now
        if len(self._known) > MAX_SENDERS:
            # whoever has not come for longest: its bucket is the fullest
            self._known.popitem(last=False)
        return tokens
