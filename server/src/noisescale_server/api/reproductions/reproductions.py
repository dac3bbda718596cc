"""/api/v1/reproductions: what `noisescale reproduce` found; store, list, read, delete."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from noisescale_server.api.access.route import enter_project
from noisescale_server.api.platform.body import parse, read_body
from noisescale_server.api.platform.deps import ReadSession, Session, Text, body_of
from noisescale_server.api.reproductions.schemas import (
    NewReproductionBody,
    ReproductionAnswer,
    ReproductionList,
    ReproductionWithFindings,
    WrittenReproduction,
)
from noisescale_server.services import reproductions
from noisescale_server.storage.reproductions import Kind, ReproductionRow

router = APIRouter(prefix="/reproductions", tags=["reproductions"])

ReproductionId = Annotated[UUID, Path(description="UUID of the reproduction")]


class ReproductionQuery(BaseModel):
    """Which reproductions, from where."""

    model_config = ConfigDict(extra="forbid")

    project: Text | None = None
    kind: Kind | None = None
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    cursor: UUID | None = None


@router.post("", status_code=201, openapi_extra=body_of(NewReproductionBody))
async def store_reproduction(request: Request, response: Response, session: Session) -> WrittenReproduction:
    """Store what a campaign found; the same content again is the same reproduction."""
    body = parse(NewReproductionBody, await read_body(request))
    await enter_project(request, body.project)
    found = body.claim or body.advice
    assert found is not None, "the body has checked that it is one of both"
    stored_id, is_created = await reproductions.store(
        session,
        project=body.project,
        kind=body.kind,
        effort=body.effort,
        seed=body.seed,
        version=body.version,
        content=found.model_dump(),
    )
    response.status_code = 201 if is_created else 200
    return WrittenReproduction(id=stored_id, project=body.project, kind=body.kind)


@router.get("")
async def list_reproductions(query: Annotated[ReproductionQuery, Query()], session: ReadSession) -> ReproductionList:
    """Reproductions in pages, newest first, without what they found."""
    page = await reproductions.list_page(
        session, project=query.project, kind=query.kind, limit=query.limit, after=query.cursor
    )
    return ReproductionList(
        reproductions=[ReproductionAnswer(**_fields(row)) for row in page.rows],
        next_cursor=str(page.rows[-1].reproduction.id) if page.has_more else None,
        total=page.total,
    )


@router.get("/{reproduction_id}")
async def get_reproduction(reproduction_id: ReproductionId, session: ReadSession) -> ReproductionWithFindings:
    """One reproduction with what it found."""
    row = await reproductions.get(session, reproduction_id)
    found = {"claim": None, "advice": None, row.reproduction.kind: row.reproduction.content}
    return ReproductionWithFindings(**_fields(row), **found)


@router.delete("/{reproduction_id}", status_code=204)
async def delete_reproduction(reproduction_id: ReproductionId, session: Session) -> None:
    """Delete the reproduction; runs and sweeps that it made stay."""
    await reproductions.remove(session, reproduction_id)


def _fields(row: ReproductionRow) -> dict[str, Any]:
    names = ("id", "kind", "effort", "seed", "version", "created_at")
    return {name: getattr(row.reproduction, name) for name in names} | {"project": row.project}
