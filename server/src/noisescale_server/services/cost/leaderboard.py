"""One's own runs by hours and USD to a target: the front, the line of records, and where each price comes from."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.analysis.cost.decomposition import Decomposition, decompose_line
from noisescale_server.analysis.cost.records import (
    NO_PRICE,
    Improvement,
    Record,
    SameHardware,
    hours,
    improvement,
    pareto_front,
    record_line,
    same_hardware,
    usd,
)
from noisescale_server.analysis.cost.trainings import Training
from noisescale_server.services.cost import board_rows
from noisescale_server.services.cost.board_rows import BoardRow, Wanted
from noisescale_server.services.sweeps import steady_batch
from noisescale_server.storage import cost
from noisescale_server.storage.cost import CostedRun

MAX_RUNS = 5_000
"""Of one board, the newest."""

SortedBy = Literal["hours", "usd", "device_hours", "day"]
KEPT_BOARDS = 16
"""As long as none of their runs changes."""
_kept_passes: LRUCache[Hashable, float] = LRUCache(MAX_RUNS)
LOSS_SAID = "training loss, mean of 32 steps"


@dataclass(frozen=True, slots=True)
class Board:
    """The whole answer.

    Attributes:
        rows: In the order asked for, as many as were asked for.
        num_runs: Runs that were looked at, at most 5,000.
        num_reached: Of these those that reached the target: rows in all.
        num_unpriced: Of these those without any price, which are on no front: `NO_PRICE`.
        front: Keys of the Pareto front, fastest first.
        records: In hours, by day.
        improvement: In hours; None without rows.
        improvement_usd: In USD; None without a price.
        same_hardware: Where only the rest changed.
        steps: What each step along the records consists of.
    """

    rows: tuple[BoardRow, ...]
    num_runs: int
    num_reached: int
    num_unpriced: int
    front: tuple[str, ...]
    records: tuple[Record, ...]
    improvement: Improvement | None
    improvement_usd: Improvement | None
    same_hardware: tuple[SameHardware, ...]
    steps: tuple[Decomposition, ...]
    why_unpriced: str = NO_PRICE


_kept_boards: LRUCache[Hashable, tuple[list[CostedRun], Board]] = LRUCache(KEPT_BOARDS)


async def of_runs(session: AsyncSession, wanted: Wanted, *, sorted_by: SortedBy, limit: int) -> Board:
    """The board of the newest runs.

    Raises:
        InvalidInput: When interruptions leave no time to work.
    """
    found = await cost.newest(session, project=wanted.project, task=wanted.task, most=MAX_RUNS)
    # a run's row changes with what it is told, and with all that its processes send
    asked = (repr(wanted), sorted_by, limit)
    kept = _kept_boards.get(asked)
    if kept is None or kept[0] != found:
        kept = (found, await _board(session, wanted, found, sorted_by=sorted_by, limit=limit))
        _kept_boards[asked] = kept
    return kept[1]


async def _board(
    session: AsyncSession, wanted: Wanted, found: Sequence[CostedRun], *, sorted_by: SortedBy, limit: int
) -> Board:
    rows = await board_rows.of_board(session, found, wanted)
    trainings = [row.training for row in rows]
    front, records = pareto_front(trainings), record_line(trainings)
    on_front, broke = {one.key for one in front}, {one.training.key for one in records}
    rows = [
        replace(row, is_on_front=row.training.key in on_front, is_record=row.training.key in broke)
        if row.training.key in on_front or row.training.key in broke
        else row
        for row in rows
    ]
    value_of = _VALUES[sorted_by]
    rows.sort(key=lambda row: _place(row, value_of))
    shown = await board_rows.with_techniques(session, rows[:limit])
    line = await _with_passes(session, rows, records)
    return Board(
        rows=tuple(shown),
        num_runs=len(found),
        num_reached=len(rows),
        num_unpriced=sum(one.usd is None for one in trainings),
        front=tuple(one.key for one in front),
        records=records,
        improvement=improvement(trainings, hours),
        improvement_usd=improvement(trainings, usd),
        same_hardware=same_hardware(trainings),
        # without matched pairs: of one's own runs nobody knows that nothing but the device differs
        steps=decompose_line(line, critical_batch=wanted.critical_batch),
    )


def _place(row: BoardRow, value_of: Callable[[BoardRow], float | None]) -> tuple[bool, float, str]:
    """Smallest first; what is not known last."""
    value = value_of(row)
    return value is None, value or 0.0, row.training.key


_VALUES: Final[Mapping[SortedBy, Callable[[BoardRow], float | None]]] = MappingProxyType(
    {
        "hours": lambda row: row.training.hours,
        "usd": lambda row: row.training.usd,
        "device_hours": lambda row: row.device_hours,
        "day": lambda row: -row.training.day.toordinal(),
    }
)
"""What a board is sorted by: the newest day first."""


async def _with_passes(
    session: AsyncSession, rows: Sequence[BoardRow], records: Sequence[Record]
) -> tuple[Training, ...]:
    """The records with their examples to the target, and the one batch that they took up to there."""
    broke = {one.training.key for one in records}
    keys = {
        row.training.key: (row.run.run_id, row.run.streams_written, row.reached.step)
        for row in rows
        if row.training.key in broke
    }
    passes = {key: known for key in keys.values() if (known := _kept_passes.get(key)) is not None}
    unknown = {key[0]: key for key in keys.values() if key not in passes}
    if unknown:
        places = [(run_id, step) for run_id, _, step in unknown.values()]
        for run_id, examples in (await cost.examples_at(session, places)).items():
            _kept_passes[unknown[run_id]] = passes[unknown[run_id]] = examples
    # a board shows a run's newest batch, at which one that changed it has not trained all along
    newest = {row.run.run_id: row.run.batch for row in rows if row.training.key in broke and row.run.batch}
    batches = await steady_batch.of_runs(session, newest, to_step={run_id: step for run_id, _, step in keys.values()})
    return tuple(
        replace(
            one.training, passes=passes.get(keys[one.training.key]), batch_size=batches.get(keys[one.training.key][0])
        )
        for one in records
    )
