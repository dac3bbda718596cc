"""Runs side by side: what each shows at which progress, and the ratio of their noise scales where they stand equal."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, State
from noisescale_core.theory.trade_off import example_efficiency
from noisescale_server.analysis.comparison.ratio import Place, Ratio, first_at_each_loss, ratio_along
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.services.platform.errors import RunNotFound
from noisescale_server.services.series import series
from noisescale_server.services.series.series import Series
from noisescale_server.services.series.whole_run import WholeRuns

Progress = Literal["step", "units", "time", "loss"]
Share = tuple[float | None, float | None, float | None]


@dataclass(frozen=True, slots=True)
class AlignedRun:
    """A run along the axis.

    Attributes:
        found: Its series.
        x: How far it was at each point: step, units, seconds since its first point, or training loss.
        example_efficiency: Of the batch in use, (value, low, high) at each point; None where it is not known.
    """

    found: Series
    x: tuple[float | None, ...]
    example_efficiency: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """Runs along one axis.

    Attributes:
        x: What the axis counts.
        runs: In the order asked for.
        missing: Those that do not exist.
        ratios: Of each later run to the first.
    """

    x: Progress
    runs: tuple[AlignedRun, ...]
    missing: tuple[UUID, ...]
    ratios: tuple[Ratio, ...]


async def compare_runs(
    session: AsyncSession, whole_runs: WholeRuns, run_ids: Sequence[UUID], *, x: Progress, max_points: int
) -> ComparedRuns:
    """The runs along an axis; one that does not exist is named and left out."""
    runs, missing = [], []
    for run_id in dict.fromkeys(run_ids):
        try:
            found = await series.of_run(
                session, whole_runs, run_id, low=None, high=None, max_points=max_points, window=None
            )
        except RunNotFound:
            missing.append(run_id)
        else:
            runs.append(AlignedRun(found, progress(found, x), _efficiencies(found)))
    along = [_places(run, x) for run in runs]
    ratios = tuple(ratio_along(places, along[0]) for places in along[1:])
    return ComparedRuns(x, tuple(runs), tuple(missing), ratios)


def progress(found: Series, x: Progress) -> tuple[float | None, ...]:
    """How far the run was at each point."""
    points = found.points
    if x == "step":
        return tuple(float(step) for step in points.step_last)
    if x == "units":
        return tuple(None if n is None else n * found.run.units_per_example for n in points.examples_last)
    if x == "time":
        start = min((moment for moment in points.wall_time_last if moment is not None), default=0.0)
        return tuple(None if moment is None else moment - start for moment in points.wall_time_last)
    return tuple(total / n if n else None for total, n in zip(points.sum_loss, points.num_loss, strict=True))


def _places(run: AlignedRun, x: Progress) -> list[Place]:
    """The windows by rising progress; time stands still or runs back where a resumed job begins, and is sorted."""
    shown = zip(run.x, run.found.estimates, run.found.points.num_updates, strict=True)
    found = [
        Place(at, _bounded(one) if num_updates else None, one.state is State.RESOLVED)
        for at, one, num_updates in shown
        if at is not None
    ]
    return first_at_each_loss(found) if x == "loss" else sorted(found, key=lambda place: place.x)


def _bounded(one: NoiseScaleEstimate) -> Estimate | None:
    return None if one.value is None else Estimate(one.value, one.low, one.high, one.level)


def _efficiencies(found: Series) -> tuple[Share, ...]:
    points = found.points
    batches = zip(points.sum_global_batch, points.num_global_batch, points.num_updates, strict=True)
    return tuple(
        _efficiency(one, total / n) if n and num_updates else (None, None, None)
        for one, (total, n, num_updates) in zip(found.estimates, batches, strict=True)
    )


def _efficiency(one: NoiseScaleEstimate, batch_size: float) -> Share:
    """φ / (B + φ) with its interval; of an unresolved noise scale the lower bound alone."""

    def at(noise_scale: float | None) -> float | None:
        return None if noise_scale is None or noise_scale < 0 else example_efficiency(noise_scale, batch_size)

    return at(one.value), at(one.low), at(one.high)
