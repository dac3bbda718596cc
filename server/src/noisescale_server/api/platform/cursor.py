"""Cursors of paged lists: opaque to callers, checked when they come back."""

import base64
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import ConfigDict, Field, TypeAdapter

from noisescale_server.api.platform.deps import Number, Step, Text
from noisescale_server.services.platform.errors import refuse
from noisescale_server.storage.runs.listing import After, Sort

MAX_CURSOR_CHARACTERS = 2_000

# What a cursor holds: the sort it belongs to, the value of the sorted column in the last row, and that row's id.
Moment = Annotated[datetime, Field(ge=datetime(2000, 1, 1, tzinfo=UTC), lt=datetime(3000, 1, 1, tzinfo=UTC))]
STRICT = ConfigDict(strict=True)
A_NUMBER: TypeAdapter[Any] = TypeAdapter(tuple[str, Number | None, UUID], config=STRICT)
BY_COLUMN: dict[str, TypeAdapter[Any]] = {
    "name": TypeAdapter(tuple[str, Text, UUID], config=STRICT),
    "created_at": TypeAdapter(tuple[str, Moment, UUID], config=STRICT),
    "updated_at": TypeAdapter(tuple[str, Moment, UUID], config=STRICT),
    "last_step": TypeAdapter(tuple[str, Step | None, UUID], config=STRICT),
}


def encode(sort: Sort, value: Any, run_id: UUID) -> str:
    """The cursor behind a row with this value in the sorted column."""
    return _packed(_adapter(sort).dump_json((spelled(sort), value, run_id)))


def decode(cursor: str, sort: Sort) -> After:
    """The row that the cursor stands behind.

    Raises:
        InvalidInput: When it was not made by `encode` for the same sort.
    """
    try:
        made_for, value, run_id = _adapter(sort).validate_json(_unpacked(cursor))
    except ValueError as error:
        raise refuse("cursor", "is not a cursor of this list: start without one", cursor) from error
    if made_for != spelled(sort):
        raise refuse("cursor", f"belongs to another sort than {spelled(sort)}: start without one", cursor)
    return After(value, run_id)


def spelled(sort: Sort) -> str:
    """The sort as in the query: `-updated_at`."""
    return f"-{sort.column}" if sort.is_descending else sort.column


def _adapter(sort: Sort) -> TypeAdapter[Any]:
    return BY_COLUMN.get(sort.column, A_NUMBER)


def _unpacked(cursor: str) -> bytes:
    return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)


def _packed(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
