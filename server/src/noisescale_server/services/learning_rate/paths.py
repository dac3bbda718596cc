"""The path of a stored run's parameters since θ_0, as moments along its steps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.learning_rate.rate_coefficients import Schedule, schedule_of
from noisescale_core.estimators.path import Path, at_half, push_since
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.resolution import block, level_of
from noisescale_server.storage import learning_rate as path_sums
from noisescale_server.storage.learning_rate import PathPoint
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs import streams
from noisescale_server.storage.runs.streams import SIMPLE

FEWEST_POINTS = 200
"""That are read: fewer would not tell the schedule of the learning rate, nor half of the path."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A path as it stood at a step.

    Attributes:
        step: The last one that is in it.
        learning_rate: Then; None where none was logged.
        path: Since θ_0, with the push of its last half.
        schedule: Of the learning rate until then.
    """

    step: int
    learning_rate: float | None
    path: Path
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class RunPath:
    """The newest path of a run.

    Attributes:
        start: Step whose update was the first since θ_0; None where no path is known.
        moments: Since then, oldest first.
    """

    start: int | None
    moments: Sequence[Moment]


def planned_steps(run: Run) -> int | None:
    """Steps of the whole run: of one that has ended, what it did is what was planned; None where nobody knows.

    Args:
        run: As stored.
    """
    has_ended = run.finish_status is not None and run.latest_step is not None
    return run.planned_steps or (run.latest_step + 1 if has_ended and run.latest_step is not None else None)


async def of_run(session: AsyncSession, run: Run, *, max_points: int = FEWEST_POINTS) -> RunPath:
    """The newest path of a run, read in at most so many points, but no fewer than tell half of it.

    Args:
        session: Where to read.
        run: As stored.
        max_points: Most points.
    """
    live = LiveSeries.of(run.id, SIMPLE, await streams.coverage_of_run(session, run.id))
    if not live.covered:
        return RunPath(None, ())
    start = await path_sums.last_start(session, run.id, live.pieces(live.first_step, live.newest_step, 0))
    found = [] if start is None else await _points_since(session, live, start, max(max_points, FEWEST_POINTS))
    return RunPath(start, tuple(_moments(found, planned_steps(run))))


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


def _moments(found: Sequence[PathPoint], planned: int | None) -> Iterator[Moment]:
    num_updates = total = variance = 0.0
    rates: list[tuple[int, float]] = []
    paths: list[Path] = []
    for point in found:
        num_updates, total = num_updates + point.num_updates, total + point.sum_sq_norm
        variance += point.variance
        if point.learning_rate is not None:
            rates.append((point.step, point.learning_rate))
        if point.path_step is None or point.sq_distance is None:
            continue
        path = Path(num_updates, total, variance, point.sq_distance, point.momentum or 0.0)
        paths.append(path)
        half = at_half(paths, path)
        path = path if half is None else path._replace(push=push_since(half, path))
        yield Moment(point.path_step, point.learning_rate, path, schedule_of(rates, planned))
