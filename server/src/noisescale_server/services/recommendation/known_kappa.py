"""What is known of κ for runs: read from what the project's sweeps, branches and followed runs have measured."""

import math
from collections.abc import Sequence
from itertools import groupby
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.analysis.calibration.calibration import Kappa
from noisescale_server.analysis.calibration.kappa import NAMES, KappaMeasurement, kappa_of, optimizer_kind
from noisescale_server.analysis.calibration.levels import Observation
from noisescale_server.storage import calibration as storage
from noisescale_server.storage.calibration import StoredKappa, WantedKappa
from noisescale_server.storage.platform.tables import Run


async def of_run(session: AsyncSession, run: Run) -> Kappa:
    """What is known of κ for a run."""
    (found,) = await of_runs(session, [run])
    return found


async def of_runs(session: AsyncSession, runs: Sequence[Run]) -> list[Kappa]:
    """What is known of κ for each run; runs of one task and optimizer share it."""
    asked = [(run.project_id, run.optimizer, run.task_id, run.family) for run in runs]
    distinct = list(dict.fromkeys(asked))
    wanted = [
        WantedKappa(project, optimizer_kind(optimizer), task, family) for project, optimizer, task, family in distinct
    ]
    stored = await storage.kappas(session, wanted)
    known = {one: of_rows(rows, one[2]) for one, rows in zip(distinct, stored, strict=True)}
    return [known[one] for one in asked]


def of_rows(stored: Sequence[StoredKappa], task_id: UUID) -> Kappa:
    """κ for a new run of the task, from the rows of its family, by task."""
    by_task = {task: tuple(map(_measurement, rows)) for task, rows in groupby(stored, lambda row: row.task_id)}
    return kappa_of(by_task.pop(task_id, ()), tuple(by_task.values()))


def _measurement(row: StoredKappa) -> KappaMeasurement:
    low = -math.inf if row.log_kappa_low is None else row.log_kappa_low
    high = math.inf if row.log_kappa_high is None else row.log_kappa_high
    observation = Observation(low, high, row.error, row.num_runs, row.squares, row.run_error)
    return KappaMeasurement(row.kind if row.kind in NAMES else "sweep", observation)  # type: ignore[arg-type]
