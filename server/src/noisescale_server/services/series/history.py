"""What a stored run has spent so far, stretch by stretch: examples, steps, time, learning rate and noise scale."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import or_

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.parts.known_noise_scale import KnownNoiseScale, known_noise_scale
from noisescale_core.advice.parts.parts import RunSoFar, SpentPoint
from noisescale_core.estimators.looks import Look, look_of, steps_of
from noisescale_core.estimators.step_sizes import SEEN, batch_in_use
from noisescale_core.estimators.uncertainty import NOTHING_MEASURED, NoiseScaleEstimate, State
from noisescale_core.theory.cost import SECONDS_PER_HOUR
from noisescale_server.services.series import windows
from noisescale_server.services.series.events import resumptions
from noisescale_server.services.series.latest import LATEST_SHARE, steps_of_window
from noisescale_server.services.series.live import LiveSeries, cut
from noisescale_server.services.series.resolution import Range, choose, level_of, spacing_of
from noisescale_server.services.series.so_far import run_so_far
from noisescale_server.services.series.windows import Windows
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.series import piece_sums, series
from noisescale_server.storage.series.series import PointColumns

NUM_STRETCHES = 100
"""Stretches that the run so far is cut into, each with its own noise scale."""


@dataclass(frozen=True, slots=True)
class History:
    """A run up to a step, from its rows alone: these never change, so neither does this.

    Attributes:
        spent: Stretch by stretch, oldest first.
        hours: Wall time without breaks between jobs; None with fewer than two moments.
        last_step: The last step that holds anything; None without any.
        noise_scale: Of the window that ends there.
        flags: Bits of its rows.
        known: The noise scale by all of its looks.
        momentum: Of SGD, as its path knows; None where there is none, and of others.
    """

    spent: tuple[SpentPoint, ...]
    hours: float | None
    last_step: int | None
    noise_scale: NoiseScaleEstimate
    flags: int
    known: KnownNoiseScale | None = None
    momentum: float | None = None


NOTHING_SPENT = History((), None, None, NOTHING_MEASURED, 0)


async def batch_at(session: AsyncSession, live: LiveSeries, step: int) -> float | None:
    """The batch in use at a step: that of most of the last steps, not of the rest of an epoch."""
    if not live.covered:
        return None
    pieces = live.pieces(live.first_step, step, 0)
    return batch_in_use(await piece_sums.last_sizes(session, live.run_id, pieces, SEEN))


async def read(
    session: AsyncSession, live: LiveSeries, wanted: Range, *, has_signal: Callable[[], Awaitable[bool]]
) -> History:
    """The history of a run from its first step up to the end of a range.

    Args:
        session: Where to read.
        live: The run's series.
        wanted: From the first step on.
        has_signal: Says whether the run up to the end has shown a gradient.
    """
    window = steps_of_window(wanted.num_steps, live.covered)
    how = choose(
        wanted,
        window=window,
        max_points=NUM_STRETCHES,
        spacing=spacing_of(live.covered),
        finest=live.finest_level(0, wanted.high),
    )
    looks = [look for _, look in await looks_of(session, live, wanted.high)]
    # milliseconds of arithmetic, for which no other request should wait, while Postgres adds up what comes next
    known = asyncio.create_task(asyncio.to_thread(known_noise_scale, looks))
    try:
        is_shown = await has_signal()
        found = await windows.read(session, live, wanted, how, has_signal=is_shown, read_points=series.spent)
    finally:
        said = await known
    resumed = resumptions(cut(live.intervals, found.low, wanted.high), run_low=wanted.run_low)
    return replace(_history(found, resumed, first_step=wanted.low), known=said)


async def looks_of(session: AsyncSession, live: LiveSeries, high: int) -> list[tuple[int, Look]]:
    """The looks of the live steps up to `high` that hold any estimate, with their numbers, oldest first.

    Args:
        session: Where to read.
        live: The run's series.
        high: The last step.
    """
    pieces, numbers = [], []
    for number in range(look_of(live.first_step), look_of(high) + 1):
        first, last = steps_of(number)
        found = live.pieces(max(first, live.first_step), min(last, high), level_of(last - first + 1))
        pieces += found
        numbers += [number] * len(found)
    return await piece_sums.looks(session, live.run_id, pieces, numbers, kind=live.kind) if pieces else []


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of the past.

    Attributes:
        batch_size: The batch in use then (`batch_at`).
    """

    batch_size: float | None


def so_far(
    run: Run, past: History, *, moment: Moment | None = None, usd_per_device_hour: float | None = None
) -> RunSoFar:
    """The run as it stands, or as it stood at the end of its history.

    Args:
        run: As stored.
        past: Up to that moment.
        moment: Where its history ends; None: now, and the run's row says how it stands.
        usd_per_device_hour: Price of a device in place of the run's own.
    """
    now = run_so_far(run)
    price = usd_per_device_hour or run.usd_per_device_hour
    return replace(
        now if moment is None else _at_end(now, past, moment),
        spent=past.spent,
        known=past.known,
        momentum=past.momentum,
        usd_spent=None if price is None or past.hours is None else price * (run.num_devices or 1) * past.hours,
        usd_per_device_hour=price,
        steps_done=0 if past.last_step is None else past.last_step + 1,
        step=past.last_step,
    )


def _at_end(now: RunSoFar, past: History, moment: Moment) -> RunSoFar:
    end = past.spent[-1] if past.spent else None
    scale = past.noise_scale
    return replace(
        now,
        noise_scale=scale,
        batch_size=moment.batch_size,
        learning_rate=None if end is None else end.learning_rate,
        reason=now.reason if end is None else scale.reason,
        flags=past.flags,
        noise_scale_step=None,
        divergence=None,
        has_ended=False,
    )


def _history(found: Windows, resumed: Sequence[int], *, first_step: int) -> History:
    points = found.points
    if not points:
        return NOTHING_SPENT
    seconds = _seconds(points, resumed)
    known = [one for one in seconds if one is not None]
    # the first stretch has no moment before it and counts as an average one
    hours = (sum(known) + sum(known) / len(known)) / SECONDS_PER_HOUR if known else None
    return History(
        spent=tuple(_spent(found, [None, *seconds], first_step=first_step)),
        hours=hours,
        last_step=points.step_last[-1],
        noise_scale=found.estimates[-1],
        flags=reduce(or_, points.flags[-(NUM_STRETCHES // LATEST_SHARE) :]),
    )


def _spent(found: Windows, seconds: Sequence[float | None], *, first_step: int) -> Iterator[SpentPoint]:
    points, before = found.points, first_step - 1
    for position, estimate in enumerate(found.estimates):
        step, num_updates = points.step_last[position], points.num_global_batch[position]
        examples = points.sum_global_batch[position]
        yield SpentPoint(
            examples=examples,
            batch_size=examples / num_updates if num_updates else None,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            num_steps=step - before if step > before else None,
            seconds=seconds[position],
            learning_rate=points.lr_last[position],
            is_resolved=estimate.state is State.RESOLVED,
        )
        before = step


def _seconds(points: PointColumns, resumed: Sequence[int]) -> list[float | None]:
    """Seconds of each stretch but the first; None where it is not known or holds a resumption."""
    moments = zip(points.step_last, points.wall_time_last, strict=True)
    return [
        None
        if before is None or after is None or any(step < first <= next_step for first in resumed)
        else max(0.0, after - before)
        for (step, before), (next_step, after) in pairwise(moments)
    ]
