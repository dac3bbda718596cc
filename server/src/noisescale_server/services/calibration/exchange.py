"""Calibrations that go from one server to another: what sweeps, branches and followed runs say, without the runs.

A calibration keeps the id of its sweep, so that the same file twice changes nothing, and a server that has measured the
sweep itself is not told otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.platform.errors import ProjectNotFound, refuse
from noisescale_server.storage import calibration as storage
from noisescale_server.storage import sweeps, tasks
from noisescale_server.storage.calibration import IMPORTED, NewCalibration, StoredCalibration
from noisescale_server.storage.sweeps import NewSweep

MAX_AT_ONCE = 1_000
"""Calibrations of one request; a project with more is exported in pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A calibration as it travels.

    Attributes:
        new: Its sweep as it is created where it is not known.
        says: Of B_crit, κ and learning rates: fields of `NewCalibration`.
    """

    new: NewSweep
    says: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of the calibrations of a request.

    Attributes:
        added: That were not known.
        updated: That had been imported before.
        left: Of sweeps that this server has measured itself, or another project has.
    """

    added: int
    updated: int
    left: int


async def export(session: AsyncSession, project: str) -> list[StoredCalibration]:
    """What a project's sweeps, branches and followed runs say, the newest 1,000, without those that say nothing.

    Args:
        session: Where to read.
        project: Its name.

    Raises:
        ProjectNotFound: When no project has this name.
    """
    if not await tasks.project_exists(session, project):
        raise ProjectNotFound(project)
    return await storage.of_project(session, project, MAX_AT_ONCE)


async def take_in(session: AsyncSession, given: Sequence[Carried]) -> Imported:
    """Keep calibrations of another server.

    Args:
        session: Where to write.
        given: Each of one project.

    Raises:
        InvalidInput: Where two have the same id.
    """
    ids = [one.new.id for one in given]
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise refuse("calibrations", "hold the same id twice: send each once", str(twice))
    counts = {"added": 0, "updated": 0, "left": 0}
    for one in given:
        is_new = await sweeps.create_if_absent(session, one.new)
        row = await sweeps.get_row(session, one.new.id)
        if row is None or row.project != one.new.project or IMPORTED not in row.sweep.details:
            counts["left"] += 1
            continue
        sweep = row.sweep
        says = NewCalibration(sweep_id=sweep.id, project_id=sweep.project_id, task_id=sweep.task_id, **one.says)
        await storage.keep(session, says)
        counts["added" if is_new else "updated"] += 1
    return Imported(**counts)
