"""Takes the rows of old runs away that the pyramid holds as well: run by run, stream by stream, some at a time.

The unit is 1,024 steps: a bucket of the pyramid of group records, and 32 of that of measurements. Of metrics, which
have no pyramid, each 32 steps keep their last, lowest and highest value, so that every point of 32 steps or more
stays as it was.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.driver import fetch, fetch_row, read
from noisescale_server.storage.series.group_pyramid import LOWEST_LEVEL
from noisescale_server.storage.series.pyramid import BITS_PER_LEVEL
from noisescale_server.storage.series.series import Piece

# Where rows of a stream are folded: units of 1,024 steps whose rows the pyramids alone hold.

UNIT_LEVEL: Final = LOWEST_LEVEL
"""A unit is a bucket of the pyramid of group records, which begins there, and 32 of that of measurements."""

UNIT_BITS: Final = BITS_PER_LEVEL * UNIT_LEVEL
"""Steps of a unit are 2 to this power."""

Steps = tuple[int, int]
"""First and last step, both included."""


def steps_of_units(folded: Sequence[int]) -> list[Steps]:
    """The steps of ranges of units, given as first and last in turn."""
    ranges = zip(folded[::2], folded[1::2], strict=True)
    return [(low << UNIT_BITS, ((high + 1) << UNIT_BITS) - 1) for low, high in ranges]


def rows_of(piece: Piece) -> Piece:
    """A piece of a level below `UNIT_LEVEL` as the rows it stands for; any other one as it is."""
    if piece.level == 0 or piece.level >= UNIT_LEVEL:
        return piece
    size = 1 << (BITS_PER_LEVEL * piece.level)
    return Piece(piece.stream_id, 0, piece.low * size, piece.high * size + size - 1)


def without_rows(found: Sequence[Piece], folded: Mapping[UUID, Sequence[Steps]], *, level: int) -> list[Piece]:
    """The pieces, with buckets of `level` in place of rows that are folded; no bucket twice.

    Args:
        found: Of each stream in the order of steps.
        folded: By stream, its folded steps, sorted; whole buckets of `level`.
        level: Lowest level that holds them.
    """
    if not folded:
        return list(found)
    kept: list[Piece] = []
    # of each stream: the first bucket that is not taken yet
    free: dict[UUID, int] = {}
    for piece in found:
        if piece.level or piece.stream_id not in folded:
            kept.append(piece)
            continue
        for part in _parts(piece, folded[piece.stream_id], level):
            if part.level:
                low = max(part.low, free.get(part.stream_id, 0))
                free[part.stream_id] = part.high + 1
                if low <= part.high:
                    kept.append(Piece(part.stream_id, level, low, part.high))
            else:
                kept.append(part)
    return kept


def _parts(piece: Piece, folded: Iterable[Steps], level: int) -> list[Piece]:
    """A piece of rows as rows that are there and buckets of those that are not."""
    parts: list[Piece] = []
    low, bits = piece.low, BITS_PER_LEVEL * level
    for first, last in folded:
        if last < low or first > piece.high:
            continue
        if first > low:
            parts.append(Piece(piece.stream_id, 0, low, first - 1))
        parts.append(Piece(piece.stream_id, level, max(first, low) >> bits, min(last, piece.high) >> bits))
        low = last + 1
    if low <= piece.high:
        parts.append(Piece(piece.stream_id, 0, low, piece.high))
    return parts


_LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended('noisescale retention', 0))"

# data that came after a run was folded are folded once more, as long after them
_DUE = """
SELECT run.id FROM run
WHERE run.project_id = $1::uuid AND run.updated_at < $2::timestamptz
  AND (run.folded_at IS NULL OR run.folded_at < run.updated_at)
  AND run.latest_step - run.first_step >= $4::bigint
ORDER BY run.updated_at LIMIT $3::bigint
"""
_PROJECTS = "SELECT project_id, fold_after_days FROM project_retention ORDER BY project_id"
_DONE = "UPDATE run SET folded_at = statement_timestamp() WHERE id = $1::uuid"

_STREAM = "SELECT folded, folded_groups FROM stream WHERE run_id = $1::uuid AND id = $2::uuid FOR UPDATE"
_IN_PYRAMID = f"""
SELECT coalesce(sum(num_rows), 0)::bigint FROM rollup
WHERE run_id = $1::uuid AND stream_id = $2::uuid AND series = $3::text AND level = {UNIT_LEVEL}
  AND bucket BETWEEN $4::bigint AND $5::bigint
"""  # noqa: S608 - a number of ours
_ROWS = """
SELECT count(*) FROM {table}
WHERE run_id = $1::uuid AND stream_id = $2::uuid AND step BETWEEN $3::bigint AND $4::bigint
"""
_TAKE = """
DELETE FROM {table}
WHERE run_id = $1::uuid AND stream_id = $2::uuid AND step BETWEEN $3::bigint AND $4::bigint
"""
_NUM_MEASUREMENTS = _ROWS.format(table="measurement")
_NUM_GROUPS = _ROWS.format(table="group_measurement")

# a sweep's own metric stays whole: its fit looks for the first value at or past a target
_DOOMED_METRICS = f"""
SELECT seq, name FROM (
  SELECT seq, name,
    row_number() OVER (PARTITION BY name, step >> {BITS_PER_LEVEL} ORDER BY step DESC, seq DESC) AS from_last,
    row_number() OVER (PARTITION BY name, step >> {BITS_PER_LEVEL} ORDER BY value, step, seq) AS from_lowest,
    row_number() OVER (PARTITION BY name, step >> {BITS_PER_LEVEL} ORDER BY value DESC NULLS LAST, step, seq)
      AS from_highest
  FROM metric
  WHERE run_id = $1::uuid AND stream_id = $2::uuid AND step BETWEEN $3::bigint AND $4::bigint
    AND NOT name = ANY ($5::text[])
) AS placed
WHERE from_last > 1 AND from_lowest > 1 AND from_highest > 1
"""  # noqa: S608 - a number of ours
_NUM_METRICS = f"SELECT count(*) FROM ({_DOOMED_METRICS}) AS doomed"  # noqa: S608 - a query of our own
# by their keys: joined with the query above, Postgres may run through all of them for each
_TAKE_METRICS = """
DELETE FROM metric USING unnest($3::bigint[], $4::text[]) AS doomed(seq, name)
WHERE metric.run_id = $1::uuid AND metric.stream_id = $2::uuid AND metric.seq = doomed.seq
  AND metric.name = doomed.name
"""
_SWEPT = """
SELECT DISTINCT sweep.metric FROM sweep_run JOIN sweep ON sweep.id = sweep_run.sweep_id
WHERE sweep_run.run_id = $1::uuid AND sweep_run.is_stored AND sweep.metric IS NOT NULL
UNION SELECT metric FROM sweep WHERE run_id = $1::uuid AND kind = 'followed' AND metric IS NOT NULL
"""
_FOLDED = """
UPDATE stream SET folded = $3::bigint[], folded_groups = $4::bigint[], num_folded = num_folded + $5::bigint
WHERE run_id = $1::uuid AND id = $2::uuid
"""


class PyramidLacksRows(Exception):
    """The pyramid does not hold all of the rows; they stay."""


@dataclass(frozen=True, slots=True)
class Units:
    """Neighbouring units of one stream, both ends included.

    Attributes:
        run_id: The run.
        stream_id: The stream.
        kind: Of its sums.
        first: First unit.
        last: Last unit.
        has_groups: Group records go as well.
    """

    run_id: UUID
    stream_id: UUID
    kind: str
    first: int
    last: int
    has_groups: bool = False

    @property
    def steps(self) -> tuple[int, int]:
        """First and last step."""
        return self.first << UNIT_BITS, (self.last + 1 << UNIT_BITS) - 1


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows that went, or would go, by table."""

    measurements: int = 0
    groups: int = 0
    metrics: int = 0

    def plus(self, other: "Taken") -> "Taken":
        """Both together."""
        return Taken(self.measurements + other.measurements, self.groups + other.groups, self.metrics + other.metrics)

    @property
    def total(self) -> int:
        """Rows of all tables."""
        return self.measurements + self.groups + self.metrics


async def is_ours(session: AsyncSession) -> bool:
    """Whether no other server folds or purges at the moment; then none does until the transaction ends."""
    ((found,),) = await fetch(session, _LOCK)
    return bool(found)


async def projects(session: AsyncSession) -> list[tuple[UUID, int]]:
    """(project, days) of those that fold."""
    return [(row[0], row[1]) for row in await fetch(session, _PROJECTS)]


async def due_runs(
    session: AsyncSession, project_id: UUID, *, before: datetime, min_steps: int, limit: int
) -> list[UUID]:
    """Runs of a project from which nothing has come since, and that have not been folded after that; oldest first.

    Only those of `min_steps` or more.
    """
    return [row[0] for row in await read(session, _DUE, project_id, before, limit, min_steps - 1)]


async def note_done(session: AsyncSession, run_id: UUID) -> None:
    """All of the run that can be folded is."""
    await fetch(session, _DONE, run_id)


async def swept_metrics(session: AsyncSession, run_id: UUID) -> list[str]:
    """Names of metrics by which a sweep compares the run."""
    return [row[0] for row in await fetch(session, _SWEPT, run_id)]


async def count(session: AsyncSession, units: Units, kept_metrics: Sequence[str]) -> Taken:
    """Rows that folding these units would take away."""
    keys = (units.run_id, units.stream_id, *units.steps)
    return Taken(
        (await fetch(session, _NUM_MEASUREMENTS, *keys))[0][0],
        (await fetch(session, _NUM_GROUPS, *keys))[0][0] if units.has_groups else 0,
        (await fetch(session, _NUM_METRICS, *keys, list(kept_metrics)))[0][0],
    )


async def fold(session: AsyncSession, units: Units, kept_metrics: Sequence[str]) -> Taken:
    """Take the rows of these units away; what went.

    The stream's row is locked meanwhile, as ingestion does: late records of it wait, and come before or after.

    Raises:
        PyramidLacksRows: Where the pyramid holds fewer rows than there are; nothing must be committed then.
    """
    found = await fetch_row(session, _STREAM, units.run_id, units.stream_id)
    if found is None:
        return Taken()  # deleted meanwhile
    taken = await count(session, units, kept_metrics)
    held = (await fetch(session, _IN_PYRAMID, units.run_id, units.stream_id, units.kind, units.first, units.last))[0][0]
    if held < taken.measurements:
        raise PyramidLacksRows(
            f"run {units.run_id}, stream {units.stream_id}: the pyramid holds {held} of {taken.measurements} rows of "
            f"steps {units.steps[0]} to {units.steps[1]}"
        )
    keys = (units.run_id, units.stream_id, *units.steps)
    await fetch(session, _TAKE.format(table="measurement"), *keys)
    groups = list(found[1])
    if units.has_groups:
        await fetch(session, _TAKE.format(table="group_measurement"), *keys)
        groups = joined(groups, units.first, units.last)
    doomed = await read(session, _DOOMED_METRICS, *keys, list(kept_metrics))
    await fetch(
        session, _TAKE_METRICS, units.run_id, units.stream_id, [row[0] for row in doomed], [r[1] for r in doomed]
    )
    folded = joined(found[0], units.first, units.last)
    await fetch(session, _FOLDED, units.run_id, units.stream_id, folded, groups, taken.measurements)
    return taken


def joined(folded: Sequence[int], first: int, last: int) -> list[int]:
    """The ranges with another one: first and last in turn, sorted, none touching the next."""
    ranges = sorted([*zip(folded[::2], folded[1::2], strict=True), (first, last)])
    found: list[tuple[int, int]] = []
    for low, high in ranges:
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return [end for one in found for end in one]
