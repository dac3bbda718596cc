"""GET /api/v1/reference-values: published values with source and evidence."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict

from noisescale_server.api.platform.deps import Text
from noisescale_server.services.comparison import reference_values

router = APIRouter(tags=["reference values"])


class ReferenceValueQuery(BaseModel):
    """Which values."""

    model_config = ConfigDict(extra="forbid")

    task: Text | None = None
    quantity: Text | None = None


class ReferenceValueAnswer(BaseModel):
    """One published value."""

    task: str
    quantity: str
    value: Any
    unit: str
    source: str
    source_address: str
    evidence: str
    note: str | None
    kind: Literal["number", "range", "record", "text", "none"]
    details: dict[str, Any]


class ReferenceValueList(BaseModel):
    """Published values."""

    values: list[ReferenceValueAnswer]
    total: int


@router.get("/reference-values")
async def list_reference_values(request: Request, query: Annotated[ReferenceValueQuery, Query()]) -> ReferenceValueList:
    """Published values of a task, of a quantity, or all of them."""
    found = reference_values.find(request.app.state.reference_values, task=query.task, quantity=query.quantity)
    return ReferenceValueList(values=[ReferenceValueAnswer(**asdict(item)) for item in found], total=len(found))
