"""How often was the advice right here? Runs of sweeps, as they were advised, held against the B_crit of the sweep.

The advice is that of a run of a task that nobody has calibrated: what the sweep says must not be in it.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.evidence.critical_belief import critical_of, near
from noisescale_core.advice.evidence.kappa import UNCALIBRATED
from noisescale_core.advice.hindsight import Hindsight, hindsight
from noisescale_core.advice.parts.known_noise_scale import known_noise_scale
from noisescale_core.estimators.looks import Look, steps_of
from noisescale_core.theory.learning_rate import averages_gradients
from noisescale_server.analysis.robust import interval_of_share
from noisescale_server.services.series import history as run_history
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.newest_path import momentum_of
from noisescale_server.storage import calibration
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs import streams
from noisescale_server.storage.runs.streams import SIMPLE

MAX_RUNS = 50
"""Of one answer: some 50 ms each."""

SHARES = (0.1, 0.25, 0.5)
"""Of a run's plan, or of its steps where nobody has said one."""

PRICES = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
"""What a step is worth, in critical batches."""

EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
DECIDED = ("increase", "decrease", "keep")
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Bin:
    """Changes whose odds were said alike.

    Attributes:
        low: Lower edge of the odds.
        high: Upper edge.
        num_answers: How many.
        said: Mean of the odds, as they were said.
        came_true: Share whose batch is cheaper.
        came_true_low: Lower end of its interval, as if the answers were independent.
        came_true_high: Upper end.
    """

    low: float
    high: float
    num_answers: int
    said: float
    came_true: float
    came_true_low: float
    came_true_high: float


@dataclass(frozen=True, slots=True)
class RecordAtShare:
    """What was said at one share of the plan, and what became of it.

    Attributes:
        share: Of the plan.
        num_answers: Runs × prices.
        decided: Share that was told to raise, lower or keep.
        right: Share of these that was right; None where nothing was decided.
        regret: Median extra cost of the recommended batch over the best one, as a share.
        regret_kept: The same of the batch in use.
        regret_of_price: The same of a batch as large as the price, which knows nothing of the run.
    """

    share: float
    num_answers: int
    decided: float
    right: float | None
    regret: float
    regret_kept: float
    regret_of_price: float


@dataclass(frozen=True, slots=True)
class Account:
    """The whole answer.

    Attributes:
        num_runs: Runs of sweeps that could be judged, at most 50, the newest.
        bins: By the odds that were said.
        records: By the share of the plan.
    """

    num_runs: int
    bins: tuple[Bin, ...]
    records: tuple[RecordAtShare, ...]


async def of_project(session: AsyncSession, project: str | None) -> Account:
    """What the advice was worth in the runs of a project's sweeps.

    Args:
        session: Where to read.
        project: None: all that the reader sees.
    """
    by_share: dict[float, list[Hindsight]] = {share: [] for share in SHARES}
    judged: set[UUID] = set()
    for run, batch_size, critical_batch in await calibration.swept_runs(session, project, MAX_RUNS):
        live = LiveSeries.of(run.id, SIMPLE, await streams.coverage_of_run(session, run.id))
        if not live.covered:
            continue
        looks = await run_history.looks_of(session, live, live.newest_step)
        momentum = await momentum_of(session, run, live, live.newest_step)
        setting = Setting(_planned(run, live), batch_size, averages_gradients(run.optimizer, momentum))
        # milliseconds of arithmetic, for which no other request should wait
        found = await asyncio.to_thread(_of_run, looks, setting, critical_batch)
        for share in SHARES:
            by_share[share] += found[share]
        judged |= {run.id} if any(found.values()) else set()
    everything = [one for answers in by_share.values() for one in answers]
    records = tuple(_record(share, answers) for share, answers in by_share.items() if answers)
    return Account(len(judged), tuple(_bins(everything)), records)


def _planned(run: Run, live: LiveSeries) -> int:
    return run.planned_steps or live.newest_step + 1


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run was made with.

    Attributes:
        planned: Optimizer steps.
        batch_size: In examples.
        averages_gradients: Whether its optimizer does, over steps; None where nobody knows.
    """

    planned: int
    batch_size: float
    averages_gradients: bool | None


def _of_run(looks: Sequence[tuple[int, Look]], setting: Setting, critical_batch: float) -> dict[float, list[Hindsight]]:
    """What was said at each share of the plan."""
    return {share: list(_at(share, looks, setting, critical_batch)) for share in SHARES}


def _at(
    share: float, looks: Sequence[tuple[int, Look]], setting: Setting, critical_batch: float
) -> Iterator[Hindsight]:
    """What was said when this share of the plan was done, by the looks that were complete; nothing before 8 steps."""
    so_far = [look for number, look in looks if steps_of(number)[1] < share * setting.planned]
    phi = known_noise_scale(so_far)
    if phi is None:
        return
    known = critical_of(
        phi.belief,
        log_mean=UNCALIBRATED.log_mean_at(
            share * phi.share, relative_rate=phi.relative_rate, averages_gradients=setting.averages_gradients
        ),
        odds_log_sd=UNCALIBRATED.odds_log_sd,
        shown_log_sd=UNCALIBRATED.log_sd,
        usual=(near(setting.batch_size),),
    )
    for ratio in PRICES:
        found = hindsight(known, batch_size=setting.batch_size, critical_batch=critical_batch, price_ratio=ratio)
        if found is not None:
            yield found


def _bins(found: Iterable[Hindsight]) -> Iterator[Bin]:
    changes = [one for one in found if one.is_change]
    for low, high in pairwise(EDGES):
        is_last = high == EDGES[-1]
        inside = [one for one in changes if low <= one.probability and (is_last or one.probability < high)]
        if inside:
            num_true = sum(one.is_cheaper for one in inside)
            said, ends = fmean(one.probability for one in inside), interval_of_share(num_true, len(inside), LEVEL)
            yield Bin(low, high, len(inside), said, num_true / len(inside), *ends)


def _record(share: float, found: Sequence[Hindsight]) -> RecordAtShare:
    decided = [one for one in found if one.word in DECIDED]
    return RecordAtShare(
        share=share,
        num_answers=len(found),
        decided=len(decided) / len(found),
        right=fmean(bool(one.is_right) for one in decided) if decided else None,
        regret=median(one.regret for one in found),
        regret_kept=median(one.kept for one in found),
        regret_of_price=median(one.control for one in found),
    )
