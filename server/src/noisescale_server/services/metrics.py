"""Metrics of a run along its steps: evaluation loss, accuracy, score."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.errors import RunNotFound
from noisescale_server.services.live import not_overtaken
from noisescale_server.services.resolution import Range, points_of
from noisescale_server.storage import metric_series, runs, streams
from noisescale_server.storage.streams import SIMPLE


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
class Metrics:
    """All names of a run, and the points of those asked for."""

    names: list[str]
    metrics: list[MetricSeries]


async def of_run(
    session: AsyncSession, run_id: UUID, *, name: str | None, low: int | None, high: int | None, max_points: int
) -> Metrics:
    """The metric asked for, or all; of a resumed run those values that no newer stream has overtaken.

    Only streams of kind simple carry metrics.

    Raises:
        RunNotFound: When no run has this id.
    """
    if await runs.get(session, run_id) is None:
        raise RunNotFound(run_id)
    logged = await metric_series.names(session, run_id)
    names = [one for one, _, _ in logged]
    chosen = [row for row in logged if name in (None, row[0])]
    if not chosen:
        return Metrics(names, [])
    first = max(low or 0, min(row[1] for row in chosen))
    last_logged = max(row[2] for row in chosen)
    last = last_logged if high is None else min(high, last_logged)
    if first > last:
        return Metrics(names, [])
    simple = [stream for stream in await streams.of_run(session, run_id) if stream.kind == SIMPLE]
    rows = await metric_series.points(
        session,
        run_id,
        not_overtaken(simple, first, last),
        [row[0] for row in chosen],
        steps_per_point=points_of(Range(first, last, first, last), max_points=max_points),
    )
    by_name = groupby(rows, key=itemgetter(0))
    return Metrics(names, [MetricSeries(one, *list(zip(*found, strict=True))[1:]) for one, found in by_name])
