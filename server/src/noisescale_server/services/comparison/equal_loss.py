"""What a task's runs say at equal loss: of the model's size, and of learning rate and batch."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.theory.temperature import windows_to_use
from noisescale_server.analysis.comparison.equal_loss import LossWindow, NotKnown
from noisescale_server.analysis.comparison.model_size import SizedRun, SizeEffect, size_effect
from noisescale_server.analysis.comparison.temperature_effect import TemperatureEffect, temperature_effect
from noisescale_server.services.series import evidence
from noisescale_server.services.series import separate_windows as run_windows
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.separate_windows import RunWindow
from noisescale_server.storage import comparison as storage
from noisescale_server.storage.comparison import MeasuredRun, SizedTask
from noisescale_server.storage.runs.streams import SIMPLE, Coverage

MAX_RUNS = 100
"""Longest runs of the task that are read."""


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run in the regression.

    Attributes:
        run_id: The run.
        name: Its name.
        size: Of its model; None where nobody asked for sizes.
        windows: Resolved ones with a loss.
    """

    run_id: UUID
    name: str
    size: float | None
    windows: tuple[LossWindow, ...]


class KnownWindows:
    """Windows of the runs read last, by what their streams cover."""

    def __init__(self, capacity: int = 1_000) -> None:
        self._known: LRUCache[tuple[UUID, object, tuple[Coverage, ...]], tuple[LossWindow, ...]] = LRUCache(capacity)

    async def of_run(self, session: AsyncSession, run: MeasuredRun) -> tuple[LossWindow, ...]:
        """The resolved windows of a run that have a loss, oldest first."""
        key = (run.run_id, run.created_at, run.coverage)
        windows = self._known.get(key)
        if windows is None:
            live = LiveSeries.of(run.run_id, SIMPLE, run.coverage)
            has_signal = await evidence.has_signal(session, live, live.newest_step)
            found = await run_windows.of_run(session, live, has_signal=has_signal)
            self._known[key] = windows = loss_windows(found)
        return windows


MAX_TASKS = 200


async def sized_tasks(session: AsyncSession, *, size_key: str) -> list[SizedTask]:
    """Tasks for which the effect of size can be asked: their runs have two sizes or more."""
    return await storage.sized_tasks(session, config_key=size_key, limit=MAX_TASKS)


async def of_sizes(
    session: AsyncSession, known: KnownWindows, *, project: str, task: str, size_key: str, level: float
) -> tuple[list[ComparedRun], SizeEffect | NotKnown]:
    """The runs of a task whose config holds a number under the key, and the effect of it at equal loss."""
    runs = await _runs(session, known, project=project, task=task, config_key=size_key)
    sized = [SizedRun(run.size, run.windows) for run in runs if run.size is not None and run.size > 0]
    return runs, await asyncio.to_thread(size_effect, sized, level=level)


async def of_temperature(
    session: AsyncSession, known: KnownWindows, *, project: str, task: str, level: float
) -> tuple[list[ComparedRun], TemperatureEffect | NotKnown]:
    """The runs of a task, and the exponents of learning rate and batch at equal loss."""
    runs = await _runs(session, known, project=project, task=task, config_key=None)
    return runs, await asyncio.to_thread(temperature_effect, [run.windows for run in runs], level=level)


async def _runs(
    session: AsyncSession, known: KnownWindows, *, project: str, task: str, config_key: str | None
) -> list[ComparedRun]:
    rows = await storage.runs_of_task(session, project=project, task=task, config_key=config_key, limit=MAX_RUNS)
    measured = await storage.measured_runs(session, [run_id for run_id, _, _ in rows]) if rows else {}
    return [
        ComparedRun(run_id, name, size, await known.of_run(session, measured[run_id]))
        for run_id, name, size in rows
        if run_id in measured
    ]


def loss_windows(windows: Sequence[RunWindow]) -> tuple[LossWindow, ...]:
    """The resolved windows with a positive loss, and whether each is warm enough to inform B_crit."""
    known = [one for one in windows if one.is_resolved and one.loss is not None and one.loss > 0]
    rates = [one.learning_rate for one in known if one.learning_rate is not None]
    is_warm = windows_to_use(rates) if len(rates) == len(known) and any(rates) else [True] * len(known)
    return tuple(_loss_window(one, warm) for one, warm in zip(known, is_warm, strict=True))


def _loss_window(window: RunWindow, is_warm: bool) -> LossWindow:
    assert window.loss is not None, "windows without a loss are left out"
    assert window.estimate.value is not None, "so are unresolved ones"
    return LossWindow(
        loss=window.loss,
        log_value=math.log(window.estimate.value),
        standard_error=window.log_standard_error,
        learning_rate=window.learning_rate,
        batch_size=window.batch_size,
        is_warm=is_warm,
    )
