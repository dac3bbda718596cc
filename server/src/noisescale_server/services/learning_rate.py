"""Whether a stored run's learning rate is too low, right or too high, now and along the run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.learning_rate.rate_coefficients import OwnLines, Schedule, family_of, schedule_of
from noisescale_core.advice.learning_rate.rate_verdict import RateVerdict, far_off, rate_verdict, with_promise
from noisescale_core.advice.parts.parts import RateOff
from noisescale_core.estimators.divergence import Divergence, divergence
from noisescale_core.estimators.path import Path, Promised, at_half, push_since
from noisescale_core.estimators.promise import LossMoment, PromiseMoment
from noisescale_server.analysis.calibration.kappa import optimizer_kind
from noisescale_server.analysis.calibration.rate_lines import KnownRate, KnownRates, own_lines
from noisescale_server.services.platform.errors import RunNotFound
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.newest_path import last_of_path
from noisescale_server.services.series.resolution import block, level_of
from noisescale_server.storage import calibration as storage
from noisescale_server.storage import learning_rate as path_sums
from noisescale_server.storage.calibration import WantedKappa
from noisescale_server.storage.learning_rate import PathPoint
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs import runs, streams
from noisescale_server.storage.runs.streams import SIMPLE

# The path of a stored run's parameters since θ_0, as moments along its steps.

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
        losses: That were logged since then, oldest first.
        promises: Of the updates since then, oldest first.
    """

    start: int | None
    moments: Sequence[Moment]
    losses: Sequence[LossMoment] = ()
    promises: Sequence[PromiseMoment] = ()


def planned_steps(run: Run) -> int | None:
    """Steps of the whole run: of one that has ended, what it did is what was planned; None where nobody knows.

    Args:
        run: As stored.
    """
    has_ended = run.finish_status is not None and run.latest_step is not None
    return run.planned_steps or (run.latest_step + 1 if has_ended and run.latest_step is not None else None)


async def path_of_run(session: AsyncSession, run: Run, *, max_points: int = FEWEST_POINTS) -> RunPath:
    """The newest path of a run, read in at most so many points, but no fewer than tell half of it.

    Args:
        session: Where to read.
        run: As stored.
        max_points: Most points.
    """
    live = LiveSeries.of(run.id, SIMPLE, await streams.coverage_of_run(session, run.id))
    if not live.covered:
        return RunPath(None, ())
    last = await last_of_path(session, live, live.newest_step)
    start = None if last is None else last.start
    found = [] if start is None else await _points_since(session, live, start, max(max_points, FEWEST_POINTS))
    return RunPath(
        start, tuple(_moments(found, planned_steps(run))), tuple(_losses(found, start or 0)), tuple(_promises(found))
    )


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


def _losses(found: Sequence[PathPoint], start: int) -> Iterator[LossMoment]:
    num, total = 0.0, 0.0
    yield LossMoment(start, num, total)
    for point in found:
        num, total = num + point.num_loss, total + point.total_loss
        yield LossMoment(point.step, num, total)


def _promises(found: Sequence[PathPoint]) -> Iterator[PromiseMoment]:
    now = Promised()
    for point in found:
        if point.num_promised > 0:
            now = Promised(
                now.num_updates + point.num_promised,
                now.total + point.promised,
                now.variance + point.promised_variance,
            )
            yield PromiseMoment(point.step, now)


# What the project's own runs say of how paths tell learning rates: read from what its sweeps have measured.


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
    """The verdict on a run's learning rate with at most so many points before it.

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
    walked = await path_of_run(session, run, max_points=max_points)
    if not walked.moments:
        nothing = with_promise(rate_verdict(None, optimizer=run.optimizer), walked.losses, walked.promises)
        return RateSeries(run, nothing, walked.start, ())
    own = await known_for(session, run)
    # of those that are shown the last one is always the newest
    shown = walked.moments[:: -max(1, -(-len(walked.moments) // max_points))][::-1]
    points = tuple(RateAtStep(one.step, one.learning_rate, one.path, _verdict(run, one, own)) for one in shown)
    broken = divergence(run.loss_broken_since, run.gradients_broken_since, run.latest_step)
    now = points[-1].verdict if broken is None else _verdict(run, shown[-1], own, broken)
    return RateSeries(run, with_promise(now, walked.losses, walked.promises), walked.start, points)


async def far_off_at(session: AsyncSession, run: Run, to_step: int | None = None) -> RateOff | None:
    """How far the learning rate of a run was off; None where it was not, or nobody knows.

    Args:
        session: Where to read.
        run: As stored.
        to_step: The last step that counts; None: all.
    """
    walked = await path_of_run(session, run)
    moments = [one for one in walked.moments if to_step is None or one.step <= to_step]
    if not moments:
        return None
    return far_off(_verdict(run, moments[-1], await known_for(session, run)))


def _verdict(run: Run, moment: Moment, own: OwnRates, broken: Divergence | None = None) -> RateVerdict:
    return rate_verdict(
        moment.path,
        optimizer=run.optimizer,
        planned_steps=planned_steps(run),
        schedule=moment.schedule,
        divergence=broken,
        own=own.lines(moment.path.momentum, moment.schedule),
    )
