"""A few reads of one sender are worked on at a time; how long each of them works is what it is charged."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from starlette.types import Message, Send

from noisescale_server.services.errors import DomainError

AT_ONCE: Final = 4
"""Reads of one sender that are worked on at the same time; further ones wait for these."""
LONGEST_WAIT_SECONDS: Final = 5.0
FAILED: Final = 500
"""From this status on it was not the sender who let the server work: a frozen database is not at its cost."""


class Busy(DomainError):
    """The sender's own reads have kept this one waiting; the same request may succeed soon."""

    retry_after_seconds = 2

    def __init__(self) -> None:
        super().__init__(
            f"this read has waited {LONGEST_WAIT_SECONDS:g} s for others of the same key or person, of which {AT_ONCE} "
            "are worked on at once: try again in 2 s, with fewer at a time"
        )


class WorkingTime:
    """Divides the time in which reads of one sender are worked on among those that are."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._num_at_work = 0
        self._share_of_each = 0.0
        self._since = now()

    def change(self, num_more: int) -> float:
        """Note that so many more reads are worked on from now on; the share of one that would have been all along."""
        now = self._now()
        if self._num_at_work:
            self._share_of_each += (now - self._since) / self._num_at_work
        self._since = now
        self._num_at_work += num_more
        return self._share_of_each


class Turn:
    """One read that is worked on.

    Attributes:
        seconds: What it has worked, in shares with others of its sender, up to its last pause.
        has_failed: It was answered by a failure of the server.
    """

    def __init__(self, working_time: WorkingTime) -> None:
        self._working_time = working_time
        self._begun = 0.0
        self.seconds = 0.0
        self.has_failed = False

    def go_on(self) -> None:
        """Work from now on."""
        self._begun = self._working_time.change(1)

    def pause(self) -> None:
        """Wait for something that is not work."""
        self.seconds += self._working_time.change(-1) - self._begun

    def paused_while(self, send: Send) -> Send:
        """The same `send`: what a reader takes to read is no work."""

        async def send_in_a_pause(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.has_failed = message["status"] >= FAILED
            self.pause()
            try:
                await send(message)
            finally:
                self.go_on()

        return send_in_a_pause


class _Queue:
    """The reads of one sender that are here, and which of them it is the turn of."""

    def __init__(self, at_once: int, now: Callable[[], float]) -> None:
        self.num_here = 0
        self.places = asyncio.Semaphore(at_once)
        self.working_time = WorkingTime(now)


class Turns:
    """Lets a few requests of each sender through at once: the others of the process find a place between them."""

    def __init__(self, at_once: int = AT_ONCE, now: Callable[[], float] = time.monotonic) -> None:
        self._at_once, self._now = at_once, now
        self._queues: dict[str, _Queue] = {}

    @asynccontextmanager
    async def of(self, sender: str) -> AsyncIterator[Turn]:
        """Wait for the sender's turn, and hold it during the block.

        Raises:
            Busy: When it does not come in time.
        """
        queue = self._queues.setdefault(sender, _Queue(self._at_once, self._now))
        queue.num_here += 1
        try:
            await self._wait_for(queue.places)
            turn = Turn(queue.working_time)
            turn.go_on()
            try:
                yield turn
            finally:
                turn.pause()
                queue.places.release()
        finally:
            queue.num_here -= 1
            if not queue.num_here:
                del self._queues[sender]

    @staticmethod
    async def _wait_for(places: asyncio.Semaphore) -> None:
        try:
            async with asyncio.timeout(LONGEST_WAIT_SECONDS):
                await places.acquire()
        except TimeoutError:
            raise Busy from None
