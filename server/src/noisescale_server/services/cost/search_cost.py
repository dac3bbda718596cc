"""What the search of a sweep cost, what fewer trials would have found, and B_crit with fewer of them."""

import asyncio
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.question import Question
from noisescale_server.analysis.cost.search import (
    BestOf,
    FewerTrials,
    Strategy,
    best_of_n,
    critical_with_fewer,
    strategies,
)
from noisescale_server.analysis.sweeps.steps_to_target.seed_average import seed_average
from noisescale_server.analysis.sweeps.steps_to_target.setting import Setting, by_batch_size
from noisescale_server.services.cost.board_rows import price_of
from noisescale_server.services.platform.errors import refuse
from noisescale_server.services.sweeps import curves as sweep_curves
from noisescale_server.services.sweeps import sweeps
from noisescale_server.services.sweeps.curves import targets_of
from noisescale_server.storage import cost
from noisescale_server.storage import sweeps as sweep_table
from noisescale_server.storage import sweeps as sweep_version
from noisescale_server.storage.platform.tables import SweepRun
from noisescale_server.storage.sweeps import SweepRow

SECONDS_PER_HOUR = 3_600
KEPT = 128


@dataclass(frozen=True, slots=True)
class Bill:
    """Every trial of a sweep, in hours and USD.

    Attributes:
        num_trials: All that were attached, those that diverged included.
        num_infeasible: Those that diverged.
        num_timed: Those whose processes are stored, so that their hours are known.
        hours: Of these.
        device_hours: Of these, where their devices are known.
        usd: Of these, where a price is known; None where none is.
        num_priced: Trials behind `usd`.
        prices_said: Each price once.
        winner_hours: Of the best trial at the best batch size; None where it is not known.
        winner_usd: Of the same.
    """

    num_trials: int
    num_infeasible: int
    num_timed: int
    hours: float
    device_hours: float
    usd: float | None
    num_priced: int
    prices_said: tuple[str, ...]
    winner_hours: float | None
    winner_usd: float | None


@dataclass(frozen=True, slots=True)
class OfBatchSize:
    """The search at one batch size.

    Attributes:
        batch_size: In examples.
        num_rates: Learning rates tried.
        best_rate: Of the fewest steps; None where none reached the target.
        best_steps: To the target.
        best_of: Best of n rates against n.
        strategies: Random, grid and informed search over the same trials.
        foreseen: The rate that informed search begins with.
    """

    batch_size: float
    num_rates: int
    best_rate: float | None
    best_steps: float | None
    best_of: tuple[BestOf, ...]
    strategies: Strategy
    foreseen: float | None


@dataclass(frozen=True, slots=True)
class SearchCost:
    """The whole answer.

    Attributes:
        target: At which steps are counted; None where the sweep has none.
        bill: Of all trials.
        sizes: By batch size.
        critical_batches: B_crit with n trials a batch size.
    """

    target: float | None
    bill: Bill
    sizes: tuple[OfBatchSize, ...]
    critical_batches: tuple[FewerTrials, ...]


Found = tuple[tuple[OfBatchSize, ...], tuple[FewerTrials, ...]]
_kept: LRUCache[Hashable, Found] = LRUCache(KEPT)


async def of_sweep(
    session: AsyncSession, sweep_id: UUID, *, target: float | None, prices: Question
) -> tuple[SweepRow, SearchCost]:
    """What searching cost.

    Args:
        session: Where to read.
        sweep_id: Which.
        target: None: the hardest of the sweep's own.
        prices: The reader's price of a device-hour where neither run nor project says one.

    Raises:
        SweepNotFound: When no sweep has this id.
        InvalidInput: For branches of a run, which are no search.
    """
    row = await sweeps.row(session, sweep_id)
    if row.sweep.kind != "sweep":
        raise refuse("sweep_id", "is of branches of one run, which search for nothing: take a sweep")
    version = await sweep_version.version_of(session, sweep_id)
    attached = await sweep_table.runs_of(session, sweep_id)
    settings = await sweep_curves.settings_of_sweep(session, row.sweep)
    known = list(row.sweep.targets) or targets_of(row.sweep, settings)
    rises = row.sweep.goal == "max"
    wanted = target if target is not None else (max(known) if rises else min(known)) if known else None
    key = (sweep_id, version, wanted)
    found = _kept.get(key)
    if found is None:
        # four hundred fits for each number of trials: off the event loop
        _kept[key] = found = await asyncio.to_thread(_searched, settings, wanted)
    bill = await _bill(session, attached, found[0], prices)
    return row, SearchCost(wanted, bill, *found)


def _searched(settings: Sequence[Setting], target: float | None) -> Found:
    if target is None:
        return (), ()
    trials = {size: _steps(here, target) for size, here in by_batch_size(settings)}
    sizes: list[OfBatchSize] = []
    known: tuple[float, float] | None = None
    for size, by_rate in sorted(trials.items()):
        foreseen = None if known is None else known[1] * math.sqrt(size / known[0])
        sizes.append(_of_size(size, by_rate, foreseen))
        best = sizes[-1].best_rate
        if best is not None:
            known = size, best
    return tuple(sizes), critical_with_fewer({size: tuple(by_rate.values()) for size, by_rate in trials.items()})


def _steps(settings: Sequence[Setting], target: float) -> dict[float, float]:
    """Steps to the target of each learning rate; infinite where it diverged or did not come so far."""
    found = {}
    for setting in settings:
        steps = seed_average(setting.curves, target, with_repeats=False).steps.steps if setting.curves else None
        found[setting.lr] = math.inf if steps is None else steps
    return found


def _of_size(size: float, by_rate: Mapping[float, float], foreseen: float | None) -> OfBatchSize:
    best = min(by_rate, key=lambda rate: by_rate[rate])
    reaches = math.isfinite(by_rate[best])
    return OfBatchSize(
        batch_size=size,
        num_rates=len(by_rate),
        best_rate=best if reaches else None,
        best_steps=by_rate[best] if reaches else None,
        best_of=best_of_n(list(by_rate.values())),
        strategies=strategies(by_rate, foreseen),
        foreseen=foreseen,
    )


async def _bill(
    session: AsyncSession, attached: Sequence[SweepRun], sizes: Sequence[OfBatchSize], prices: Question
) -> Bill:
    stored = [run.run_id for run in attached if run.is_stored]
    rows = await cost.of_ids(session, stored) if stored else {}
    processes = await cost.processes(session, list(rows)) if rows else {}
    taken = {run_id: sum(last - began for began, last in parts) for run_id, parts in processes.items()}
    # what was imported without times came at one moment: that is no duration
    hours = {run_id: seconds / SECONDS_PER_HOUR for run_id, seconds in taken.items() if seconds > 0}
    device_hours = {run_id: each * (rows[run_id].num_devices or 1) for run_id, each in hours.items()}
    priced = {run_id: price_of(rows[run_id], prices) for run_id in hours}
    usd = {run_id: price * device_hours[run_id] for run_id, (price, _) in priced.items() if price is not None}
    reaching = [one for one in sizes if one.best_steps is not None]
    best = min(reaching, key=lambda one: one.best_steps or math.inf) if reaching else None
    winner = next((run.run_id for run in attached if best and (run.batch_size, run.lr) == _place(best)), None)
    return Bill(
        num_trials=len(attached),
        num_infeasible=sum(run.status == "infeasible" for run in attached),
        num_timed=len(hours),
        hours=math.fsum(hours.values()),
        device_hours=math.fsum(device_hours.values()),
        usd=math.fsum(usd.values()) if usd else None,
        num_priced=len(usd),
        prices_said=tuple(sorted({said for _, said in priced.values()})),
        winner_hours=None if winner is None else hours.get(winner),
        winner_usd=None if winner is None else usd.get(winner),
    )


def _place(best: OfBatchSize) -> tuple[float, float | None]:
    return best.batch_size, best.best_rate
