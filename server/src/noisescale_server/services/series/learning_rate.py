"""Whether a stored run's learning rate is too low, right or too high, now and along the run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.learning_rate.rate_schedule import schedule_of
from noisescale_core.advice.learning_rate.rate_verdict import RateVerdict, rate_verdict
from noisescale_core.estimators.divergence import Divergence, divergence
from noisescale_core.estimators.path import Path, at_half, push_since
from noisescale_server.services.platform.errors import RunNotFound
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.resolution import block, level_of
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs import runs, streams
from noisescale_server.storage.runs.streams import SIMPLE
from noisescale_server.storage.series import path_sums
from noisescale_server.storage.series.path_sums import PathPoint

FEWEST_POINTS = 200
"""That are read: fewer would not tell the schedule of the learning rate, nor half of the path."""


@dataclass(frozen=True, slots=True)
class RateAtStep:
    """What was known at a step.

    Attributes:
        step: The last one that is in it.
        learning_rate: Then; None where none was logged.
        path: Since θ_0.
        verdict: As it would have been.
    """

    step: int
    learning_rate: float | None
    path: Path
    verdict: RateVerdict


@dataclass(frozen=True, slots=True)
class RateSeries:
    """The verdict on a run's learning rate, and how it came about.

    Attributes:
        run: As stored.
        verdict: Now.
        start: Step whose update was the first since θ_0; None where no path is known.
        points: Since then, oldest first.
    """

    run: Run
    verdict: RateVerdict
    start: int | None
    points: tuple[RateAtStep, ...]


async def of_run(session: AsyncSession, run_id: UUID, *, max_points: int) -> RateSeries:
    """The verdict on a run with at most so many points before it.

    Args:
        session: Where to read.
        run_id: Of the run.
        max_points: Most points.

    Raises:
        RunNotFound: When no run has this id.
    """
    run = await runs.get(session, run_id)
    if run is None:
        raise RunNotFound(run_id)
    live = LiveSeries.of(run.id, SIMPLE, await streams.coverage_of_run(session, run.id))
    start = None
    if live.covered:
        start = await path_sums.last_start(session, run.id, live.pieces(live.first_step, live.newest_step, 0))
    found = [] if start is None else await _points_since(session, live, start, max(max_points, FEWEST_POINTS))
    every = tuple(_verdicts(run, found))
    # of those that are shown the last one is always the newest
    points = every[:: -max(1, -(-len(every) // max_points))][::-1]
    broken = divergence(run.loss_broken_since, run.gradients_broken_since, run.latest_step)
    return RateSeries(run, _verdict_now(run, points, found, broken), start, points)


async def _points_since(session: AsyncSession, live: LiveSeries, start: int, max_points: int) -> list[PathPoint]:
    """The points of the newest path: the row of its first step was logged before the update."""
    low, high = max(start + 1, live.first_step), live.newest_step
    if low > high:
        return []
    steps_per_point = -(-(high - low + 1) // max_points)
    # where rows are folded no point is shorter than a bucket
    steps_per_point = max(steps_per_point, block(live.finest_level(low, high)))
    level = level_of(steps_per_point)
    steps_per_point = -(-steps_per_point // block(level)) * block(level)
    pieces = live.pieces(low, high, level)
    return await path_sums.points(session, live.run_id, pieces, steps_per_point=steps_per_point)


def _verdicts(run: Run, found: Sequence[PathPoint]) -> Iterator[RateAtStep]:
    num_updates = total = variance = 0.0
    rates: list[tuple[int, float]] = []
    moments: list[Path] = []
    for point in found:
        num_updates, total = num_updates + point.num_updates, total + point.sum_sq_norm
        variance += point.variance
        if point.learning_rate is not None:
            rates.append((point.step, point.learning_rate))
        if point.path_step is None or point.sq_distance is None:
            continue
        path = Path(num_updates, total, variance, point.sq_distance, point.momentum or 0.0)
        moments.append(path)
        half = at_half(moments, path)
        path = path if half is None else path._replace(push=push_since(half, path))
        yield RateAtStep(point.path_step, point.learning_rate, path, _verdict(run, path, rates))


def _verdict(run: Run, path: Path, rates: Sequence[tuple[int, float]], broken: Divergence | None = None) -> RateVerdict:
    # of a run that has ended, what it did is what was planned
    has_ended = run.finish_status is not None
    planned = run.planned_steps or (run.latest_step + 1 if has_ended and run.latest_step is not None else None)
    return rate_verdict(
        path,
        optimizer=run.optimizer,
        planned_steps=planned,
        schedule=schedule_of(rates, planned),
        divergence=broken,
    )


def _verdict_now(
    run: Run, points: Sequence[RateAtStep], found: Sequence[PathPoint], broken: Divergence | None
) -> RateVerdict:
    if not points:
        return rate_verdict(None, optimizer=run.optimizer)
    if broken is None:
        return points[-1].verdict
    return _verdict(run, points[-1].path, [], broken)
