"""Metrics of a run along its steps: evaluation loss, accuracy, score."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.platform.errors import RunNotFound
from noisescale_server.services.series.live import not_overtaken
from noisescale_server.services.series.resolution import Range, block, points_of
from noisescale_server.storage.runs import runs, streams
from noisescale_server.storage.runs.streams import SIMPLE
from noisescale_server.storage.series import metric_series

MAX_POINTS = 50_000
"""Of one answer, over all its metrics: 4 MB, 30 ms of a process that others wait for."""


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """One metric; `value` is the last of each point, `lowest` and `highest` are over the point's steps."""

    name: str
    step: Sequence[int]
    value: Sequence[float | None]
    lowest: Sequence[float | None]
    highest: Sequence[float | None]
    wall_time: Sequence[float]


@dataclass(frozen=True, slots=True)
class MetricPage:
    """A page of a run's metrics, by name; `next_name` is that of the last one where there are more."""

    names: list[str]
    metrics: list[MetricSeries]
    next_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedMetrics:
    """Which metrics of a run, and what of each.

    Attributes:
        name: The only one; None: any.
        max_points: Of each.
        after: Those behind this name; None: from the first on.
        max_names: How many of them.
        low: First step; None: the first there is.
        high: Last step; None: the last there is.
    """

    name: str | None
    max_points: int
    after: str | None = None
    max_names: int = 1
    low: int | None = None
    high: int | None = None


async def of_run(session: AsyncSession, run_id: UUID, asked: AskedMetrics) -> MetricPage:
    """The metric asked for, or a page of all; of a resumed run those values that no newer stream has overtaken.

    Only streams of kind simple carry metrics.

    Raises:
        RunNotFound: When no run has this id.
    """
    if await runs.get(session, run_id) is None:
        raise RunNotFound(run_id)
    at_most = max(1, min(asked.max_names, MAX_POINTS // asked.max_points))
    logged = await metric_series.names(session, run_id, after=asked.after, at_most=at_most + 1, only=asked.name)
    chosen = logged[:at_most]
    names = [name for name, _, _ in chosen]
    next_name = names[-1] if len(logged) > at_most else None
    return MetricPage(names, await _series(session, run_id, chosen, asked) if chosen else [], next_name)


async def _series(
    session: AsyncSession, run_id: UUID, chosen: Sequence[tuple[str, int, int]], asked: AskedMetrics
) -> list[MetricSeries]:
    first = max(asked.low or 0, min(row[1] for row in chosen))
    last_logged = max(row[2] for row in chosen)
    last = last_logged if asked.high is None else min(asked.high, last_logged)
    if first > last:
        return []
    simple = [stream for stream in await streams.of_run(session, run_id) if stream.kind == SIMPLE]
    rows = await metric_series.points(
        session,
        run_id,
        not_overtaken(simple, first, last),
        [row[0] for row in chosen],
        steps_per_point=_steps_per_point(Range(first, last, first, last), asked.max_points),
    )
    by_name = groupby(rows, key=itemgetter(0))
    return [MetricSeries(one, *list(zip(*found, strict=True))[1:]) for one, found in by_name]


def _steps_per_point(shown: Range, max_points: int) -> int:
    """Whole buckets of 32 steps where a point has so many: then it says the same once old values are folded."""
    steps = points_of(shown, max_points=max_points)
    return steps if steps < block(1) else points_of(shown, max_points=max_points, steps_per_block=block(1))
