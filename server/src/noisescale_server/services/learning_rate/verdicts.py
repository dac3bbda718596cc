"""Whether a stored run's learning rate is too low, right or too high, now and along the run."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.learning_rate.rate_verdict import RateVerdict, far_off, rate_verdict
from noisescale_core.advice.parts.parts import RateOff
from noisescale_core.estimators.divergence import Divergence, divergence
from noisescale_core.estimators.path import Path
from noisescale_server.services.learning_rate import own_rates, paths
from noisescale_server.services.learning_rate.own_rates import OwnRates
from noisescale_server.services.learning_rate.paths import Moment, planned_steps
from noisescale_server.services.platform.errors import RunNotFound
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs import runs


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
    walked = await paths.of_run(session, run, max_points=max_points)
    if not walked.moments:
        return RateSeries(run, rate_verdict(None, optimizer=run.optimizer), walked.start, ())
    own = await own_rates.known_for(session, run)
    # of those that are shown the last one is always the newest
    shown = walked.moments[:: -max(1, -(-len(walked.moments) // max_points))][::-1]
    points = tuple(RateAtStep(one.step, one.learning_rate, one.path, _verdict(run, one, own)) for one in shown)
    broken = divergence(run.loss_broken_since, run.gradients_broken_since, run.latest_step)
    now = points[-1].verdict if broken is None else _verdict(run, shown[-1], own, broken)
    return RateSeries(run, now, walked.start, points)


async def far_off_at(session: AsyncSession, run: Run, to_step: int | None = None) -> RateOff | None:
    """How far the learning rate of a run was off; None where it was not, or nobody knows.

    Args:
        session: Where to read.
        run: As stored.
        to_step: The last step that counts; None: all.
    """
    walked = await paths.of_run(session, run)
    moments = [one for one in walked.moments if to_step is None or one.step <= to_step]
    if not moments:
        return None
    return far_off(_verdict(run, moments[-1], await own_rates.known_for(session, run)))


def _verdict(run: Run, moment: Moment, own: OwnRates, broken: Divergence | None = None) -> RateVerdict:
    return rate_verdict(
        moment.path,
        optimizer=run.optimizer,
        planned_steps=planned_steps(run),
        schedule=moment.schedule,
        divergence=broken,
        own=own.lines(moment.path.momentum, moment.schedule),
    )
