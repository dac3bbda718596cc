"""The rows of a board: when each run reached the target, at what price, and what it says of its techniques.

While one run logs, the others stay as they are: what is made of a run is kept until its row or its streams change.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, NamedTuple
from uuid import UUID

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.limits.pace import spot_of
from noisescale_core.advice.question import Question
from noisescale_core.errors import DomainError
from noisescale_core.theory.machines import Spot
from noisescale_server.analysis.cost.techniques import Logged, Technique, checklist
from noisescale_server.analysis.cost.trainings import Training
from noisescale_server.services.platform.errors import refuse
from noisescale_server.storage import cost as reached
from noisescale_server.storage.cost import CostedRun, LoggedRow, Reached

KEPT_ROWS = 4
"""Boards whose rows are kept."""
KEPT_REACHED = 20_000
"""When runs reached targets: four boards of the most runs."""
KEPT_SAID = 5_000
SECONDS_PER_HOUR = 3_600
NEVER: Final = "never"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs, and what they have to reach.

    Attributes:
        target: Value of the metric.
        metric: Name of a logged one; None: the training loss.
        rises: Whether larger is better.
        project: Name; None: all that the reader sees.
        task: Name; None: all.
        critical_batch: In examples, to part batch and algorithm; None: they stay together.
        prices: Price of a device-hour where a run and its project say none, and of interruptible machines.
    """

    target: float
    metric: str | None
    rises: bool
    project: str | None
    task: str | None
    critical_batch: float | None
    prices: Question


@dataclass(frozen=True, slots=True)
class OnSpot:
    """The same training on interruptible machines, to first order in interruptions.

    Attributes:
        hours: With what interruptions cost.
        usd: At the lower price.
        pays: Whether it is cheaper.
    """

    hours: float
    usd: float
    pays: bool


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A run on the board.

    Attributes:
        run: As stored.
        reached: When, at which step and value.
        training: To the target.
        device_hours: Hours in which its processes ran, times devices; None where their number is not known.
        paused_hours: Between its processes, in `training.hours` all the same.
        on_spot: None where nobody said a price of interruptible machines.
        is_on_front: No other is as fast and as cheap.
        is_record: It was the fastest when it came.
        techniques: What its config and what it logged say.
        engineering_hours: As its config says under that key.
        change: What was changed, as its config says under that key.
    """

    run: CostedRun
    reached: Reached
    training: Training
    device_hours: float | None
    paused_hours: float
    on_spot: OnSpot | None
    is_on_front: bool
    is_record: bool
    techniques: tuple[Technique, ...] = ()
    engineering_hours: float | None = None
    change: str | None = None


class Said(NamedTuple):
    """What a run's config and what it logged say of how it was made."""

    techniques: tuple[Technique, ...]
    engineering_hours: float | None
    change: str | None


Kept = tuple[CostedRun, BoardRow | None]
"""A run as it was, and its row; None where it had none."""
_kept_rows: LRUCache[Hashable, dict[UUID, Kept]] = LRUCache(KEPT_ROWS)
_kept_reached: LRUCache[Hashable, Reached | str] = LRUCache(KEPT_REACHED)
_kept_said: LRUCache[Hashable, Said] = LRUCache(KEPT_SAID)


async def of_board(session: AsyncSession, found: Sequence[CostedRun], wanted: Wanted) -> list[BoardRow]:
    """A row of each run that reached the target: as kept while nothing of the run has changed, or made."""
    asked = repr(wanted)
    kept = _kept_rows.get(asked, {})
    changed = [run for run in found if (known := kept.get(run.run_id)) is None or known[0] != run]
    made = await _made(session, changed, wanted)
    rows = {run.run_id: made[run.run_id] if run.run_id in made else kept[run.run_id] for run in found}
    _kept_rows[asked] = rows
    return [row for _, row in rows.values() if row is not None]


async def _made(session: AsyncSession, runs: Sequence[CostedRun], wanted: Wanted) -> dict[UUID, Kept]:
    """A row of each of these runs; None where it has not reached the target, or in no time."""
    if not runs:
        return {}
    hits = await _hits(session, runs, wanted)
    resumed = [run.run_id for run in runs if run.run_id in hits and run.num_streams > 1]
    processes = await reached.processes(session, resumed) if resumed else {}
    made: dict[UUID, Kept] = {}
    for run in runs:
        row = None
        if run.run_id in hits and run.began is not None:
            row = _row(run, hits[run.run_id], processes.get(run.run_id, ()), wanted.prices)
        made[run.run_id] = (run, row if row is not None and row.training.hours > 0 else None)
    return made


async def _hits(session: AsyncSession, runs: Sequence[CostedRun], wanted: Wanted) -> dict[UUID, Reached]:
    """When each run reached the target: as kept for what it has logged so far, or looked up."""
    asked = (wanted.metric, wanted.target, wanted.rises)
    keys = {run.run_id: (run.run_id, run.created_at, run.streams_written, asked) for run in runs}
    known = {run_id: _kept_reached.get(key) for run_id, key in keys.items()}
    unknown = [run_id for run_id, hit in known.items() if hit is None]
    if unknown:
        found = await reached.reached(session, unknown, metric=wanted.metric, target=wanted.target, rises=wanted.rises)
        for run_id in unknown:
            _kept_reached[keys[run_id]] = hit = found.get(run_id, NEVER)
            known[run_id] = hit
    return {run_id: hit for run_id, hit in known.items() if isinstance(hit, Reached)}


def _row(run: CostedRun, hit: Reached, processes: Sequence[tuple[float, float]], prices: Question) -> BoardRow:
    assert run.began is not None, "others are left out"
    taken, paused = (hit.at - run.began) / SECONDS_PER_HOUR, _paused(processes, hit.at) / SECONDS_PER_HOUR
    price, said = price_of(run, prices)
    device_hours = None if run.num_devices is None else (taken - paused) * run.num_devices
    cost = None if price is None or device_hours is None else price * device_hours
    training = Training(
        key=str(run.run_id),
        name=run.name,
        origin="own",
        day=datetime.fromtimestamp(run.began, UTC).date(),
        hours=taken,
        usd=cost,
        price_said=said,
        device=run.device,
        num_devices=run.num_devices,
        batch_size=run.batch,
        software=run.optimizer or "",
        model=run.task,
    )
    return BoardRow(run, hit, training, device_hours, paused, _on_spot(run, taken, cost, prices), False, False)


def price_of(run: CostedRun, prices: Question) -> tuple[float | None, str]:
    """USD of a device-hour and who says so: the run, else its project, else the reader."""
    for price, who in (
        (run.own_price, "the run says"),
        (run.project_price, "the project's default"),
        (prices.usd_per_device_hour, "as asked"),
    ):
        if price is not None:
            return price, f"{price:.4g} USD a device-hour: {who}"
    return None, "no price: say it in the run, in the project's defaults or here"


def _paused(processes: Sequence[tuple[float, float]], at: float) -> float:
    """Seconds before this moment in which none of the processes ran."""
    paused, until = 0.0, None
    for began, last in processes:
        if until is not None and began > until:
            paused += max(0.0, min(began, at) - min(until, at))
        until = last if until is None else max(until, last)
    return paused


def _on_spot(run: CostedRun, taken: float, cost: float | None, prices: Question) -> OnSpot | None:
    spot = spot_or_refuse(prices, run.num_devices or 1)
    if spot is None or cost is None:
        return None
    return OnSpot(taken * spot.time_factor, cost * spot.cost_share, spot.pays)


def spot_or_refuse(prices: Question, num_devices: int) -> Spot | None:
    """Interruptible machines as asked for; None where nobody asked.

    Raises:
        InvalidInput: When interruptions leave no time to work.
    """
    try:
        return spot_of(prices, num_devices)
    except DomainError as error:
        raise refuse("interruptions_per_device_hour", str(error), prices.interruptions_per_device_hour) from error


async def with_techniques(session: AsyncSession, rows: Sequence[BoardRow]) -> list[BoardRow]:
    """The rows with what their runs say of how they were made."""
    keys = {row.run.run_id: (row.run.run_id, row.run.written, row.run.streams_written) for row in rows}
    known = {run_id: said for run_id, key in keys.items() if (said := _kept_said.get(key)) is not None}
    unknown = [run_id for run_id in keys if run_id not in known]
    if unknown:
        for run_id, found in (await reached.logged(session, unknown)).items():
            _kept_said[keys[run_id]] = known[run_id] = _said(found)
    return [replace(row, **known[row.run.run_id]._asdict()) if row.run.run_id in known else row for row in rows]


def _said(logged: LoggedRow) -> Said:
    spent, change = logged.config.get("engineering_hours"), logged.config.get("change")
    return Said(
        techniques_of(logged),
        float(spent) if isinstance(spent, int | float) and not isinstance(spent, bool) else None,
        change[:200] if isinstance(change, str) else None,
    )


def techniques_of(said: LoggedRow) -> tuple[Technique, ...]:
    """The checklist of a run."""
    return checklist(
        said.config,
        Logged(said.batch_low, said.batch_high, said.rate_first, said.rate_peak, said.num_streams),
    )
