"""What reproductions found: stored once each, listed, read, removed."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.platform.errors import ReproductionNotFound
from noisescale_server.storage import reproductions
from noisescale_server.storage.reproductions import Kind, NewReproduction, ReproductionRow

NAMESPACE = uuid5(NAMESPACE_URL, "noisescale/reproduction")


@dataclass(frozen=True, slots=True)
class ReproductionPage:
    """Reproductions, newest first, how many there are in all, and whether more follow."""

    rows: list[ReproductionRow]
    total: int
    has_more: bool


async def store(
    session: AsyncSession, *, project: str, kind: Kind, effort: str, seed: int, version: str, content: dict[str, Any]
) -> tuple[UUID, bool]:
    """Its id, and True if it was stored, False if the project had the same content already."""
    new = NewReproduction(
        id=content_id(project, kind, effort, seed, version, content),
        project=project,
        kind=kind,
        effort=effort,
        seed=seed,
        version=version,
        content=content,
    )
    return new.id, await reproductions.create_if_absent(session, new)


def content_id(*content: object) -> UUID:
    """An id that follows from the content, whatever the order of its fields."""
    return uuid5(NAMESPACE, json.dumps(content, sort_keys=True))


async def get(session: AsyncSession, reproduction_id: UUID) -> ReproductionRow:
    """The reproduction.

    Raises:
        ReproductionNotFound: When none has this id.
    """
    found = await reproductions.get_row(session, reproduction_id)
    if found is None:
        raise ReproductionNotFound(reproduction_id)
    return found


async def list_page(
    session: AsyncSession, *, project: str | None, kind: Kind | None, limit: int, after: UUID | None
) -> ReproductionPage:
    """A page of reproductions."""
    rows = await reproductions.list_page(session, project=project, kind=kind, limit=limit + 1, after=after)
    total = await reproductions.count(session, project=project, kind=kind)
    return ReproductionPage(rows[:limit], total, has_more=len(rows) > limit)


async def remove(session: AsyncSession, reproduction_id: UUID) -> None:
    """Delete a reproduction; its runs and sweeps stay.

    Raises:
        ReproductionNotFound: When none has this id.
    """
    if not await reproductions.remove(session, reproduction_id):
        raise ReproductionNotFound(reproduction_id)
