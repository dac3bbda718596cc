"""Which project something belongs to, looked up before anybody is let in."""

from typing import Final, Literal
from uuid import UUID

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.access import belonging

Kind = Literal["run", "stream", "sweep", "reproduction", "project"]
FOR_EVER: Final = ("run", "project")
"""A run's id and a project's name never come to mean another one; those of the others may."""


class Belonging:
    """What this process knows of where things belong; the ones not asked for longest are forgotten."""

    def __init__(self, capacity: int = 50_000) -> None:
        self._known: LRUCache[tuple[Kind, UUID | str], UUID] = LRUCache(capacity)

    async def project_of(self, session: AsyncSession, kind: Kind, name: UUID | str) -> UUID | None:
        """The project of a thing of this kind, or that of this name; None where there is no such thing."""
        found = self._known.get((kind, name))
        if found is None:
            found = await belonging.project_of(session, kind, name)
            if found is not None and kind in FOR_EVER:
                self._known[kind, name] = found
        return found
