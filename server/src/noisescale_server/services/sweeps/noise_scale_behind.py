"""The noise scale behind a measured critical batch: of the tuned runs of a sweep, or of the run that branches left."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.uncertainty import NOTHING_MEASURED
from noisescale_core.theory.temperature import windows_to_use
from noisescale_server.analysis.calibration.measurement import TypicalNoiseScale, typical_noise_scale
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.series.averages import Window, averages
from noisescale_server.analysis.series.estimates import Estimates
from noisescale_server.analysis.series.steady_batch import is_same_batch
from noisescale_server.services.series import averages as task_averages
from noisescale_server.services.series.windows import Windows
from noisescale_server.storage import comparison
from noisescale_server.storage.comparison import MeasuredRun

KEPT = 1_000
"""Runs whose windows are kept, at most as many each as an average is taken over."""

_kept: LRUCache[Hashable, tuple[Window, ...]] = LRUCache(KEPT)


@dataclass(frozen=True, slots=True)
class RunBehind:
    """A stored run whose noise scale counts.

    Attributes:
        run_id: The run.
        batch_size: That the sweep names; None where any will do.
        to_step: Step that reached the target; None for all.
    """

    run_id: UUID
    batch_size: float | None
    to_step: int | None


@dataclass(frozen=True, slots=True)
class Behind:
    """What the runs say together.

    Attributes:
        noise_scale: In examples; None where it is not known.
        optimizer: As the runs logged it.
        missing: Why there is none; None where there is one.
    """

    noise_scale: TypicalNoiseScale | None
    optimizer: str | None
    missing: str | None


async def of_runs(session: AsyncSession, runs: Sequence[RunBehind]) -> Behind:
    """The geometric mean over the runs' averages, each over the steps up to the target."""
    if not runs:
        return Behind(
            None, None, "No run of it is stored with a noise scale: attach stored runs that reach the target."
        )
    known = await comparison.measured_runs(session, [run.run_id for run in runs])
    found, counted_otherwise = [], []
    for run in runs:
        stored = known.get(run.run_id)
        resolved = [] if stored is None else await resolved_windows(session, stored, run.to_step)
        if run.batch_size is not None and any(not is_same_batch(one.batch_size, run.batch_size) for one in resolved):
            counted_otherwise.append((run.batch_size, resolved[0].batch_size))
            continue
        average = averages(resolved)
        if average is not None:
            found.append(average.run_average)
    optimizer = next((one.optimizer for one in known.values() if one.optimizer), None)
    scale = typical_noise_scale(found)
    return Behind(scale, optimizer, None if scale else _why_not(counted_otherwise))


async def of_branching_point(session: AsyncSession, run_id: UUID) -> Behind:
    """The newest resolved window of the run as it stands."""
    known = await comparison.measured_runs(session, [run_id])
    resolved = await resolved_windows(session, known[run_id], None) if run_id in known else []
    newest = [Estimate(one.value, one.low, one.high, one.level) for one in resolved[-1:]]
    scale = typical_noise_scale(newest)
    optimizer = known[run_id].optimizer if run_id in known else None
    return Behind(scale, optimizer, None if scale else _why_not([]))


async def resolved_windows(session: AsyncSession, run: MeasuredRun, to_step: int | None) -> list[Window]:
    """Resolved windows whose learning rate is at least a tenth of the largest so far, oldest first.

    Deep in a warm-up or decay the noise scale is that of the learning rate (McCandlish et al. 2018, appendix C).
    """
    # stored rows never change: the same steps give the same windows
    key = (run.run_id, run.created_at, run.coverage, to_step)
    known = _kept.get(key)
    if known is None:
        _kept[key] = known = tuple(await _computed(session, run, to_step))
    return list(known)


async def _computed(session: AsyncSession, run: MeasuredRun, to_step: int | None) -> list[Window]:
    found = await all_windows(session, run, to_step)
    return task_averages.resolved_windows(found.points, found.estimates)


async def all_windows(session: AsyncSession, run: MeasuredRun, to_step: int | None) -> Windows:
    """The run's windows up to a step; those whose learning rate is below a tenth of the largest are unresolved."""
    found = await task_averages.read_windows(session, run, to_step)
    rates = found.points.lr_last
    peak = max((rate for rate in rates if rate), default=None)
    if peak is None:
        return found
    # a rate that was not logged says nothing against its window
    used = windows_to_use([peak if rate is None else rate for rate in rates], peak_learning_rate=peak)
    kept = [one if is_used else NOTHING_MEASURED for one, is_used in zip(found.estimates, used, strict=True)]
    return replace(found, estimates=Estimates.of(kept))


def _why_not(counted_otherwise: Sequence[tuple[float, float]]) -> str:
    if counted_otherwise:
        named, logged = counted_otherwise[0]
        return (
            f"The sweep names a batch of {named:g} where its run logged {logged:g}: "
            "give batch sizes in examples, as the runs count them."
        )
    return "No run behind it has a resolved noise scale: let them measure longer, or in more micro-batches."
