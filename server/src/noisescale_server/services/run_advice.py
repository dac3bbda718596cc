"""The recommendation for a stored run: its row, its noise scale, and what it has spent so far."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import or_
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale.theory.advice.hyperparameters import rescaling
from noisescale.theory.advice.kappa import UNCALIBRATED, Kappa
from noisescale.theory.advice.parts import Preference, Recommendation, RunSoFar, SpentPoint
from noisescale.theory.advice.plan import Constraints, Plan, plan
from noisescale.theory.advice.recommendation import recommend
from noisescale.theory.rescaling import Rescaling
from noisescale_server.services import series
from noisescale_server.services.errors import RunNotFound
from noisescale_server.services.latest import LATEST_SHARE
from noisescale_server.services.runs import run_so_far
from noisescale_server.services.series import Series
from noisescale_server.services.whole_run import WholeRuns
from noisescale_server.storage import runs
from noisescale_server.storage.tables import Run

NUM_STRETCHES = 100
"""Stretches that the run so far is cut into, each with its own noise scale."""

SECONDS_PER_HOUR = 3_600

NOTHING_LIMITS = Constraints()


@dataclass(frozen=True, slots=True)
class RunAdvice:
    """A recommendation with what it was made from.

    Attributes:
        run: The run as stored.
        step: The step it stands at, or the last one before `to_step`.
        so_far: What the recommendation was made from.
        recommendation: The advice.
        plan: What limits allow, and the schedule for the rest.
        rescaling: What to set with the recommended batch.
    """

    run: Run
    step: int | None
    so_far: RunSoFar
    recommendation: Recommendation
    plan: Plan
    rescaling: Rescaling | None


async def advise(
    session: AsyncSession,
    whole_runs: WholeRuns,
    run_id: UUID,
    wish: Preference,
    *,
    to_step: int | None,
    given: Constraints = NOTHING_LIMITS,
    kappa: Kappa = UNCALIBRATED,
) -> RunAdvice:
    """The advice for a run, now or as if it stood at `to_step`, inside what the reader has.

    Raises:
        RunNotFound: When no run has this id.
    """
    run = await runs.get(session, run_id)
    if run is None:
        raise RunNotFound(run_id)
    window = latest_window(run, to_step)
    past = await series.of_run(
        session, whole_runs, run_id, low=None, high=to_step, max_points=NUM_STRETCHES, window=window
    )
    now = run_so_far(run) if to_step is None else so_far_at_end(past)
    so_far = replace(now, spent=list(spent(past)), usd_spent=usd_spent(past))
    advice, last = recommend(so_far, wish, kappa), last_step(past)
    steps_done = 0 if last is None else last + 1
    rest = plan(
        so_far,
        given,
        best=None if advice.interval is None else advice.interval.value,
        rate=None if advice.exchange_rate is None else advice.exchange_rate.examples_per_step,
        steps_done=steps_done,
        steps_left=(run.planned_steps or 0) - steps_done,
    )
    together = rescaling(so_far, run.config, advice.recommended_batch_size)
    return RunAdvice(run, last, so_far, advice, rest, together)


def latest_window(run: Run, to_step: int | None) -> int | None:
    """Steps of the latest window of a run that stands at `to_step`; None without any step."""
    if run.first_step is None or run.latest_step is None:
        return None
    last = run.latest_step if to_step is None else max(run.first_step, min(to_step, run.latest_step))
    return -(-(last - run.first_step + 1) // LATEST_SHARE)


def last_step(past: Series) -> int | None:
    """The last step that holds anything."""
    return past.points.step_last[-1] if past.points else None


def so_far_at_end(past: Series) -> RunSoFar:
    """The run as it was at the end of the series."""
    now = run_so_far(past.run)
    if not past.estimates:
        return replace(now, noise_scale=past.latest, batch_size=None, learning_rate=None, flags=0)
    estimate = past.estimates[-1]
    return replace(
        now,
        noise_scale=estimate,
        batch_size=batch_size_of(past, -1),
        learning_rate=past.points.lr_last[-1],
        reason=estimate.reason,
        flags=reduce(or_, past.points.flags[-(NUM_STRETCHES // LATEST_SHARE) :]),
    )


def spent(past: Series) -> Iterator[SpentPoint]:
    """Examples, batch size and noise scale of each stretch, oldest first."""
    for position, estimate in enumerate(past.estimates):
        yield SpentPoint(
            examples=past.points.sum_global_batch[position],
            batch_size=batch_size_of(past, position),
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
        )


def batch_size_of(past: Series, position: int) -> float | None:
    """Mean global batch of a stretch, over the updates whose batch is known."""
    num_updates = past.points.num_global_batch[position]
    return past.points.sum_global_batch[position] / num_updates if num_updates else None


def usd_spent(past: Series) -> float | None:
    """Price of the devices' hours so far; None without a price or with fewer than two moments.

    The time between a job and the one that resumed it is not counted; the first stretch counts as an average one.
    """
    run = past.run
    resumptions = [event.step for event in past.events if event.kind == "resumed"]
    moments = zip(past.points.step_last, past.points.wall_time_last, strict=True)
    seconds = [
        max(0.0, after - before)
        for (step, before), (next_step, after) in pairwise(moments)
        if before is not None and after is not None
        if not any(step < resumed <= next_step for resumed in resumptions)
    ]
    if run.usd_per_device_hour is None or not seconds:
        return None
    hours = (sum(seconds) + sum(seconds) / len(seconds)) / SECONDS_PER_HOUR
    return run.usd_per_device_hour * (run.num_devices or 1) * hours
