"""When runs reached a value, for how long their processes ran, and what they logged of it: a thousand runs at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from asyncpg import Record
from cachetools import LRUCache
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.access.visibility import projects_of
from noisescale_server.storage.platform.driver import plan_anew, read
from noisescale_server.storage.runs.streams import SIMPLE

# xmin is the transaction that wrote a row: every batch writes its stream, and a batch of the kind looked at its run too
_RUNS = """
SELECT run.id, run.name, project.name AS project, task.name AS task, run.created_at, run.device, run.num_devices,
  run.usd_per_device_hour AS own_price, said.device_hour_price * said.usd_per_unit AS project_price,
  run.latest_global_batch AS batch, run.latest_examples AS examples, run.optimizer, run.unit, run.units_per_example,
  run.xmin::text AS written
FROM run JOIN project ON project.id = run.project_id JOIN task ON task.id = run.task_id
LEFT JOIN project_default AS said ON said.project_id = run.project_id
WHERE ($1::uuid[] IS NULL OR run.project_id = ANY ($1)) AND {which}
ORDER BY run.created_at DESC, run.id DESC LIMIT $2
"""
_STREAMS = """
SELECT run_id, extract(epoch FROM min(started_at))::float8, count(*), sum(stream.xmin::text::bigint)::text
FROM stream WHERE run_id = ANY ($1::uuid[]) AND kind = $2 GROUP BY run_id
"""
_NEWEST = _RUNS.format(
    which="NOT run.archived AND ($3::text IS NULL OR project.name = $3) AND ($4::text IS NULL OR task.name = $4)"
)
_OF_IDS = _RUNS.format(which="run.id = ANY ($3::uuid[])")

# along the index of each stream, in which steps and clock rise together; the sign turns a rising metric round
_BY_METRIC = """
SELECT run_id, hit[1], hit[2]::bigint, hit[3] FROM (
  SELECT stream.run_id, min(ARRAY[found.wall_time, found.step, found.value]) AS hit
  FROM stream CROSS JOIN LATERAL (
    SELECT wall_time, step, value FROM metric
    WHERE metric.run_id = stream.run_id AND metric.name = $3 AND metric.stream_id = stream.id
      AND $5::float8 * metric.value <= $5::float8 * $4::float8
    ORDER BY metric.step LIMIT 1
  ) AS found
  WHERE stream.run_id = ANY ($1::uuid[]) AND stream.kind = $2
  GROUP BY stream.run_id
) AS first
"""

# means of 32 steps: a single step's loss is mostly noise, and its first low value comes early
_BY_LOSS = """
SELECT run_id, hit[1], hit[2]::bigint, hit[3] FROM (
  SELECT stream.run_id, min(ARRAY[found.wall_time_last, found.step_last, found.loss]) AS hit
  FROM stream CROSS JOIN LATERAL (
    SELECT wall_time_last, step_last, sum_loss / num_loss AS loss FROM rollup
    WHERE rollup.run_id = stream.run_id AND rollup.stream_id = stream.id AND rollup.series = $2 AND rollup.level = 1
      AND rollup.num_loss > 0 AND $4::float8 * rollup.sum_loss <= $4::float8 * $3::float8 * rollup.num_loss
    ORDER BY rollup.bucket LIMIT 1
  ) AS found
  WHERE stream.run_id = ANY ($1::uuid[]) AND stream.kind = $2
  GROUP BY stream.run_id
) AS first
"""

_PROCESSES = """
SELECT stream.run_id, extract(epoch FROM stream.started_at)::float8, top.wall_time_last
FROM stream CROSS JOIN LATERAL (
  SELECT wall_time_last FROM rollup
  WHERE rollup.run_id = stream.run_id AND rollup.stream_id = stream.id AND rollup.series = $2 AND rollup.level = 5
  ORDER BY bucket DESC LIMIT 1
) AS top
WHERE stream.run_id = ANY ($1::uuid[]) AND stream.kind = $2 AND top.wall_time_last IS NOT NULL
ORDER BY stream.run_id, stream.started_at
"""

_STEP_ASKED = "($2::bigint[])[array_position($1::uuid[], run.id)]"
# rows that are folded are in buckets of 32 steps alone
_EXAMPLES = f"""
SELECT run.id, CASE WHEN folded.step_last > coalesce(kept.step, -1) THEN folded.examples_last ELSE kept.examples END
FROM run
LEFT JOIN LATERAL (
  SELECT step, examples FROM measurement
  WHERE measurement.run_id = run.id AND measurement.step <= {_STEP_ASKED} AND examples IS NOT NULL
  ORDER BY measurement.step DESC, seq DESC LIMIT 1
) AS kept ON true
LEFT JOIN LATERAL (
  SELECT top.step_last, top.examples_last FROM stream CROSS JOIN LATERAL (
    SELECT step_last, examples_last FROM rollup
    WHERE rollup.run_id = stream.run_id AND rollup.stream_id = stream.id AND rollup.series = stream.kind
      AND level = 1 AND bucket <= {_STEP_ASKED} >> 5 AND step_last <= {_STEP_ASKED} AND examples_last IS NOT NULL
    ORDER BY bucket DESC LIMIT 1
  ) AS top
  WHERE stream.run_id = run.id AND stream.num_folded > 0
  ORDER BY top.step_last DESC LIMIT 1
) AS folded ON true
WHERE run.id = ANY ($1::uuid[]) AND (kept.examples IS NOT NULL OR folded.examples_last IS NOT NULL)
"""  # noqa: S608 - an expression of ours

# of a long run in coarser buckets, 1,000 to 32,000 of them: finer ones of ten million steps took a fifth of a second
_LOGGED = """
SELECT run.id, run.config, logged.low, logged.high, logged.peak, first.lr, logged.number
FROM run
CROSS JOIN LATERAL (
  SELECT min(sums.low) AS low, max(sums.high) AS high, max(sums.peak) AS peak, count(*) AS number
  FROM stream CROSS JOIN LATERAL (
    SELECT min(global_batch_min) AS low, max(global_batch_max) AS high, max(lr_last) AS peak FROM rollup
    WHERE rollup.run_id = stream.run_id AND rollup.stream_id = stream.id AND rollup.series = $2
      AND rollup.level = CASE
        WHEN stream.last_step - stream.first_step >= 1 << 30 THEN 4
        WHEN stream.last_step - stream.first_step >= 1 << 25 THEN 3
        WHEN stream.last_step - stream.first_step >= 1 << 20 THEN 2 ELSE 1 END
  ) AS sums
  WHERE stream.run_id = run.id AND stream.kind = $2
) AS logged
LEFT JOIN LATERAL (
  SELECT measurement.lr FROM (
    SELECT id, first_step FROM stream WHERE stream.run_id = run.id AND stream.kind = $2 ORDER BY first_step LIMIT 1
  ) AS earliest
  JOIN measurement ON measurement.run_id = run.id AND measurement.stream_id = earliest.id
    AND measurement.step = earliest.first_step
  LIMIT 1
) AS first ON true
WHERE run.id = ANY ($1::uuid[])
"""

_NUMBERS = """
SELECT id, (config ->> $2)::float8 FROM run
WHERE id = ANY ($1::uuid[]) AND jsonb_typeof(config -> $2) = 'number'
"""

# along the index of each stream: of a long run there are millions of each name
_SHARES = """
SELECT name, avg(value) FROM (
  SELECT asked.name, found.value, row_number() OVER (PARTITION BY asked.name ORDER BY found.step DESC) AS place
  FROM stream CROSS JOIN unnest($2::text[]) AS asked (name) CROSS JOIN LATERAL (
    SELECT step, value FROM metric
    WHERE metric.run_id = stream.run_id AND metric.name = asked.name AND metric.stream_id = stream.id
      AND value IS NOT NULL
    ORDER BY metric.step DESC LIMIT $3
  ) AS found
  WHERE stream.run_id = $1
) AS newest
WHERE place <= $3 GROUP BY name
"""


NO_STREAMS: Final = (None, 0, "0")
_kept_streams: LRUCache[tuple[UUID, str], tuple[Any, ...]] = LRUCache(20_000)


class CostedRun(NamedTuple):
    """A run and what its cost is counted from; a tuple, as a thousand of them are made for each board.

    Attributes:
        own_price: USD of a device-hour as the run says.
        project_price: The same as its project says.
        batch: Newest global batch, in examples.
        examples: So far.
        written: Changes with the run's row.
        began: Unix seconds of its first process; None where none has reported.
        num_streams: Its processes.
        streams_written: Changes with all that they send.
    """

    run_id: UUID
    name: str
    project: str
    task: str
    created_at: datetime
    device: str | None
    num_devices: int | None
    own_price: float | None
    project_price: float | None
    batch: float | None
    examples: int | None
    optimizer: str | None
    unit: str
    units_per_example: float
    written: str
    began: float | None
    num_streams: int
    streams_written: str


class Reached(NamedTuple):
    """The first value at or past a target.

    Attributes:
        at: Unix seconds.
        step: Of the value.
        value: As logged.
    """

    at: float
    step: int
    value: float


@dataclass(frozen=True, slots=True)
class LoggedRow:
    """What a run says of its techniques.

    Attributes:
        config: As it was sent.
        batch_low: Smallest global batch.
        batch_high: Largest.
        rate_peak: Largest learning rate at the end of 32 steps.
        rate_first: Learning rate of its first row.
        num_streams: Its processes.
    """

    config: dict[str, Any]
    batch_low: float | None
    batch_high: float | None
    rate_peak: float | None
    rate_first: float | None
    num_streams: int


async def newest(session: AsyncSession, *, project: str | None, task: str | None, most: int) -> list[CostedRun]:
    """The newest runs that are not archived, of one project or task or of all that the session sees."""
    return await _with_streams(session, await read(session, _NEWEST, projects_of(session), most, project, task))


async def of_ids(session: AsyncSession, run_ids: Sequence[UUID]) -> dict[UUID, CostedRun]:
    """Those of the runs that the session sees, by id."""
    rows = await read(session, _OF_IDS, projects_of(session), len(run_ids), list(run_ids))
    return {run.run_id: run for run in await _with_streams(session, rows)}


async def _with_streams(session: AsyncSession, rows: Sequence[Record]) -> list[CostedRun]:
    """The runs with what their processes say: as kept while the run's row has not been written, or looked up."""
    known = {row["id"]: _kept_streams.get((row["id"], row["written"])) for row in rows}
    unknown = {row["id"]: row["written"] for row in rows if known[row["id"]] is None}
    if unknown:
        found = {row[0]: tuple(row)[1:] for row in await read(session, _STREAMS, list(unknown), SIMPLE)}
        for run_id, written in unknown.items():
            _kept_streams[run_id, written] = known[run_id] = found.get(run_id, NO_STREAMS)
    return [CostedRun(*row, *(known[row["id"]] or NO_STREAMS)) for row in rows]


async def reached(
    session: AsyncSession, run_ids: Sequence[UUID], *, metric: str | None, target: float, rises: bool
) -> dict[UUID, Reached]:
    """When each of the runs was first at or past the target, by the clock; those that never were are left out.

    Args:
        session: Where to read; the caller has looked whether it sees the runs.
        run_ids: Which.
        metric: Name of a logged metric; None: the training loss, averaged over 32 steps.
        target: Its value.
        rises: Whether larger is better.
    """
    await plan_anew(session)
    sign = -1.0 if rises else 1.0
    if metric is None:
        rows = await read(session, _BY_LOSS, list(run_ids), SIMPLE, target, sign)
    else:
        rows = await read(session, _BY_METRIC, list(run_ids), SIMPLE, metric, target, sign)
    return {run_id: Reached(*rest) for run_id, *rest in rows}


async def processes(session: AsyncSession, run_ids: Sequence[UUID]) -> dict[UUID, list[tuple[float, float]]]:
    """(began, last row) of each process of the runs in Unix seconds, in the order in which they began."""
    found: dict[UUID, list[tuple[float, float]]] = {}
    for run_id, began, last in await read(session, _PROCESSES, list(run_ids), SIMPLE):
        found.setdefault(run_id, []).append((began, last))
    return found


async def examples_at(session: AsyncSession, places: Sequence[tuple[UUID, int]]) -> dict[UUID, float]:
    """Examples that each run had seen at a step."""
    rows = await read(session, _EXAMPLES, [run_id for run_id, _ in places], [step for _, step in places])
    return {run_id: float(examples) for run_id, examples in rows}


async def logged(session: AsyncSession, run_ids: Sequence[UUID]) -> dict[UUID, LoggedRow]:
    """What runs say of their techniques; the caller has looked whether the session sees them."""
    # planned once: to plan for sixteen partitions takes longer than to read a hundred runs
    await session.execute(text("SET LOCAL plan_cache_mode = auto"))
    rows = await read(session, _LOGGED, list(run_ids), SIMPLE)
    return {run_id: LoggedRow(*rest) for run_id, *rest in rows}


async def numbers(session: AsyncSession, run_ids: Sequence[UUID], key: str) -> dict[UUID, float]:
    """The number that each run's config has under this key."""
    return dict(map(tuple, await read(session, _NUMBERS, list(run_ids), key)))


async def mean_of_newest(session: AsyncSession, run_id: UUID, names: Sequence[str], most: int) -> dict[str, float]:
    """The mean of the newest values of each of these metrics."""
    return dict(map(tuple, await read(session, _SHARES, run_id, list(names), most)))
