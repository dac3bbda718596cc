"""What a stored run has spent so far, stretch by stretch: examples, steps, time, learning rate and noise scale."""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import or_

from noisescale.estimators.uncertainty import State
from noisescale.theory.advice.parts import RunSoFar, SpentPoint
from noisescale_server.services.latest import LATEST_SHARE
from noisescale_server.services.runs import run_so_far
from noisescale_server.services.series import Series
from noisescale_server.storage.tables import Run

NUM_STRETCHES = 100
"""Stretches that the run so far is cut into, each with its own noise scale."""

SECONDS_PER_HOUR = 3_600


def so_far(past: Series, *, is_now: bool) -> RunSoFar:
    """The run as it stands, or as it stood at the end of the series, with its history.

    Args:
        past: The series up to that moment.
        is_now: The run's row says how it stands; otherwise the end of the series does.
    """
    found = run_so_far(past.run) if is_now else _at_end(past)
    last = last_step(past)
    return replace(
        found,
        spent=list(spent(past)),
        usd_spent=usd_spent(past),
        steps_done=0 if last is None else last + 1,
    )


def latest_window(run: Run, to_step: int | None) -> int | None:
    """Steps of the latest window of a run that stands at `to_step`; None without any step."""
    if run.first_step is None or run.latest_step is None:
        return None
    last = run.latest_step if to_step is None else max(run.first_step, min(to_step, run.latest_step))
    return -(-(last - run.first_step + 1) // LATEST_SHARE)


def last_step(past: Series) -> int | None:
    """The last step that holds anything."""
    return past.points.step_last[-1] if past.points else None


def spent(past: Series) -> Iterator[SpentPoint]:
    """Examples, steps, time, batch size and noise scale of each stretch, oldest first."""
    seconds = [None, *_seconds(past)]
    before = (past.run.first_step or 0) - 1
    for position, estimate in enumerate(past.estimates):
        step = past.points.step_last[position]
        yield SpentPoint(
            examples=past.points.sum_global_batch[position],
            batch_size=batch_size_of(past, position),
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            num_steps=step - before if step > before else None,
            seconds=seconds[position],
            learning_rate=past.points.lr_last[position],
            is_resolved=estimate.state is State.RESOLVED,
        )
        before = step


def batch_size_of(past: Series, position: int) -> float | None:
    """Mean global batch of a stretch, over the updates whose batch is known."""
    num_updates = past.points.num_global_batch[position]
    return past.points.sum_global_batch[position] / num_updates if num_updates else None


def usd_spent(past: Series) -> float | None:
    """Price of the devices' hours so far; None without a price or with fewer than two moments.

    The time between a job and the one that resumed it is not counted; the first stretch counts as an average one.
    """
    run = past.run
    seconds = [one for one in _seconds(past) if one is not None]
    if run.usd_per_device_hour is None or not seconds:
        return None
    hours = (sum(seconds) + sum(seconds) / len(seconds)) / SECONDS_PER_HOUR
    return run.usd_per_device_hour * (run.num_devices or 1) * hours


def _at_end(past: Series) -> RunSoFar:
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


def _seconds(past: Series) -> list[float | None]:
    """Seconds of each stretch but the first; None where it is not known or holds a resumption."""
    resumptions = [event.step for event in past.events if event.kind == "resumed"]
    moments = zip(past.points.step_last, past.points.wall_time_last, strict=True)
    return [
        None
        if before is None or after is None or any(step < resumed <= next_step for resumed in resumptions)
        else max(0.0, after - before)
        for (step, before), (next_step, after) in pairwise(moments)
    ]
