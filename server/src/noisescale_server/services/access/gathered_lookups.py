"""Questions to the database that are asked in one go, so that a flood of them costs one connection."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Generic, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class GatheredLookups(Generic[Question, Answer]):
    """Looks things up one look after the other: all that is asked for during one is answered by the next.

    So a question is never answered by a look that began before it was asked, and nobody waits for more than two.
    """

    def __init__(self, look: Callable[[Collection[Question]], Awaitable[Mapping[Question, Answer]]]) -> None:
        self._look = look
        self._asked: set[Question] = set()
        self._running: asyncio.Task[Mapping[Question, Answer]] | None = None
        self._next: asyncio.Task[Mapping[Question, Answer]] | None = None

    async def answer(self, question: Question) -> Answer | None:
        """What is known; None where there is nothing. Everybody whose look failed gets its error."""
        self._asked.add(question)
        if self._next is None or self._next.done():
            self._next = asyncio.create_task(self._look_after(self._running))
        # others wait for the same look: it goes on when one of them is cancelled
        return (await asyncio.shield(self._next)).get(question)

    async def _look_after(self, before: "asyncio.Task[Mapping[Question, Answer]] | None") -> Mapping[Question, Answer]:
        if before is not None and not before.done():
            await asyncio.wait([before])
        questions, self._asked = self._asked, set()
        self._running, self._next = self._next, None
        return await self._look(questions)
