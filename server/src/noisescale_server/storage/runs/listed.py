"""Runs as lists read them: tuples of their columns, past the mapper, which takes longer than Postgres to find them."""

import json
from collections import namedtuple
from collections.abc import Sequence
from typing import Any, Final, cast
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import read
from noisescale_server.storage.platform.tables import Run

_NAMES: Final = tuple(Run.__table__.columns.keys())
# large, and seldom another one: parsed where it is looked at
_CONFIG: Final = "run.config::text AS config_text"

_ROWS: Final = f"""
SELECT {", ".join(_CONFIG if name == "config" else f"run.{name}" for name in _NAMES)}, project.name, task.name
FROM run JOIN project ON project.id = run.project_id JOIN task ON task.id = run.task_id
WHERE run.id = ANY($1::uuid[])
"""  # noqa: S608 - names of columns

_FIELDS: Final = ["config_text" if name == "config" else name for name in _NAMES]


class _Columns(namedtuple("_Stored", _FIELDS)):  # type: ignore[misc]  # the table says which
    __slots__ = ()

    config_text: str

    @property
    def config(self) -> dict[str, Any]:
        return dict(json.loads(self.config_text))


async def named(session: AsyncSession, run_ids: Sequence[UUID]) -> list[tuple[Run, str, str]]:
    """The runs with the names of their projects and tasks, in the order of the ids; of those that the session sees.

    A run is read by the names of its columns as ever, cannot be changed, and equals what was read before as long as
    nothing of it has changed.
    """
    rows = {row["id"]: row for row in await read(session, _ROWS, list(run_ids))}
    found = (rows[run_id] for run_id in run_ids if run_id in rows)
    return [(cast("Run", _Columns._make(row[: len(_NAMES)])), *row[len(_NAMES) :]) for row in found]
