"""What the project's own runs say of how paths tell learning rates: read from what its sweeps have measured."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.learning_rate.rate_coefficients import OwnLines, Schedule, family_of
from noisescale_server.analysis.calibration.kappa import optimizer_kind
from noisescale_server.analysis.calibration.rate_lines import KnownRate, KnownRates, own_lines
from noisescale_server.storage import calibration as storage
from noisescale_server.storage.calibration import WantedKappa
from noisescale_server.storage.platform.tables import Run


@dataclass(frozen=True, slots=True)
class OwnRates:
    """What is known for a run.

    Attributes:
        run: Of it: what it says itself does not count.
        sweeps: (task, readings of the runs of a sweep), one task's together, its newest first.
    """

    run: Run
    sweeps: Sequence[tuple[UUID, Sequence[dict[str, Any]]]]
    _lines: dict[tuple[str, Schedule], OwnLines | None] = field(default_factory=dict)

    def lines(self, momentum: float, schedule: Schedule) -> OwnLines | None:
        """The lines that the run's path is read against; None where no run of one's own says anything.

        Args:
            momentum: Of the run's optimizer.
            schedule: Of its learning rate.
        """
        family = family_of(self.run.optimizer, momentum)
        if family is None or not self.sweeps:
            return None
        if (family, schedule) not in self._lines:
            self._lines[family, schedule] = self._lines_of(family, schedule)
        return self._lines[family, schedule]

    def _lines_of(self, family: str, schedule: Schedule) -> OwnLines | None:
        counted = {str(self.run.id)}
        told = [
            (task, known)
            for task, rows in self.sweeps
            if (known := _known([one for one in rows if one["run_id"] not in counted], family, schedule, counted)).runs
        ]
        by_task = {task: tuple(known for _, known in of) for task, of in groupby(told, lambda one: one[0])}
        return own_lines(family, schedule, by_task.pop(self.run.task_id, ()), tuple(by_task.values()))


def _known(rows: Sequence[dict[str, Any]], family: str, schedule: Schedule, counted: set[str]) -> KnownRates:
    """What the runs of a sweep read under this schedule; a run counts once, in whichever sweep it stands first."""
    known, error = list[KnownRate](), 0.0
    for one in rows:
        ratios, pushes = (
            tuple(
                value if under == schedule else None for value, under in zip(one[name], one["schedules"], strict=True)
            )
            for name in ("ratios", "pushes")
        )
        if one["family"] == family and any(value is not None for value in (*ratios, *pushes)):
            counted.add(one["run_id"])
            known.append(KnownRate(one["octaves"], ratios, pushes))
            error = max(error, one["error"])
    return KnownRates(error, tuple(known))


async def known_for(session: AsyncSession, run: Run) -> OwnRates:
    """What runs of the task, and of its family, say for a run.

    Args:
        session: Where to read.
        run: As stored.
    """
    wanted = WantedKappa(run.project_id, optimizer_kind(run.optimizer), run.task_id, run.family)
    found = await storage.rates(session, wanted)
    # one task's sweeps stand together
    return OwnRates(run, sorted(found, key=lambda one: str(one[0])))
