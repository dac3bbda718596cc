"""The recommendation for a stored run: its row, its noise scale, and what it has spent so far."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.answer import Recommendation
from noisescale_core.advice.decision import may_wait_for_the_rate
from noisescale_core.advice.defaults import NO_DEFAULTS, filled
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.evidence.kappa import Kappa
from noisescale_core.advice.parts.parts import RateOff, RunSoFar
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import recommend
from noisescale_core.errors import DomainError
from noisescale_server.services import defaults, learning_rate
from noisescale_server.services.ingest import stale_windows
from noisescale_server.services.platform.errors import RunNotFound, refuse
from noisescale_server.services.recommendation import known_kappa
from noisescale_server.services.series import history as run_history
from noisescale_server.services.series.history import History, Moment
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.whole_run import WholeRuns
from noisescale_server.storage import comparison
from noisescale_server.storage import defaults as default_rows
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs import runs, streams
from noisescale_server.storage.runs.streams import SIMPLE


@dataclass(frozen=True, slots=True)
class RunAdvice:
    """A recommendation with what it was made from.

    Attributes:
        run: The run as stored.
        so_far: What the recommendation was made from.
        recommendation: The advice.
        asked: What was asked, with what the run's project says where nobody has.
    """

    run: Run
    so_far: RunSoFar
    recommendation: Recommendation
    asked: Question


async def advise(
    session: AsyncSession,
    whole_runs: WholeRuns,
    run_id: UUID,
    asked: Question,
    *,
    to_step: int | None = None,
    crashed_before: datetime | None = None,
) -> RunAdvice:
    """The advice for a run, now or as if it stood at a step, inside what the reader has, with the project's own κ.

    Args:
        session: Where to read.
        whole_runs: What is known of runs that were read before.
        run_id: Of the run.
        asked: What the reader values and has.
        to_step: Where it stands; None: now.
        crashed_before: A run without data since then has crashed, and takes no more steps; None: nobody knows.

    Raises:
        RunNotFound: When no run has this id.
        InvalidInput: If the interruptions of spot devices leave no time to work.
    """
    run = await runs.get(session, run_id)
    if run is None:
        raise RunNotFound(run_id)
    live = LiveSeries.of(run.id, SIMPLE, await streams.coverage_of_run(session, run.id))
    newest = await stale_windows.show_all_rows(session, run, live)
    has_signal = None if newest is None else newest.has_signal
    past = await whole_runs.history_of(session, run, live, to_step, has_signal=has_signal)
    moment = None if to_step is None else Moment(await run_history.batch_at(session, live, to_step))
    kappa = await known_kappa.of_run(session, run)
    asked = filled(asked, await defaults.of_id(session, run.project_id), own_price=run.usd_per_device_hour)
    has_crashed = crashed_before is not None and run.updated_at <= crashed_before and moment is None
    found = _advice(whole_runs, run, past, kappa, asked, moment, has_crashed=has_crashed)
    if not may_wait_for_the_rate(found.recommendation.decision):
        return found
    rate_off = await learning_rate.far_off_at(session, run, to_step)
    if rate_off is None:
        return found
    return _advice(whole_runs, run, past, kappa, asked, moment, has_crashed=has_crashed, rate_off=rate_off)


async def advise_several(
    session: AsyncSession, whole_runs: WholeRuns, run_ids: Sequence[UUID], asked: Question
) -> list[RunAdvice]:
    """The advice for each of the runs that exists, now, in their order; without the parts that no list shows.

    Raises:
        InvalidInput: As `advise`.
    """
    found = await runs.several(session, run_ids)
    kappas = await known_kappa.of_runs(session, found)
    measured = await comparison.measured_runs(session, [run.id for run in found])
    said = await default_rows.of_projects(session, [run.project_id for run in found])
    advice = []
    for run, kappa in zip(found, kappas, strict=True):
        live = LiveSeries.of(run.id, SIMPLE, measured[run.id].coverage if run.id in measured else ())
        wanted = filled(asked, said.get(run.project_id, NO_DEFAULTS), own_price=run.usd_per_device_hour)
        past = await whole_runs.history_of(session, run, live)
        one = _advice(whole_runs, run, past, kappa, wanted, is_of_list=True)
        if may_wait_for_the_rate(one.recommendation.decision):
            rate_off = await learning_rate.far_off_at(session, run)
            one = _advice(whole_runs, run, past, kappa, wanted, is_of_list=True, rate_off=rate_off)
        advice.append(one)
    return advice


def _advice(
    whole_runs: WholeRuns,
    run: Run,
    past: History,
    kappa: Kappa,
    asked: Question,
    moment: Moment | None = None,
    *,
    is_of_list: bool = False,
    has_crashed: bool = False,
    rate_off: RateOff | None = None,
) -> RunAdvice:
    found = run_history.so_far(run, past, moment=moment, usd_per_device_hour=asked.usd_per_device_hour)
    found = replace(found, has_ended=found.has_ended or has_crashed, rate_off=rate_off)
    premises = found, kappa, asked
    kept = whole_runs.recommendations.get((run.id, is_of_list, rate_off is None))
    if kept is not None and kept[0] == premises:
        return RunAdvice(run, found, kept[1], asked)
    try:
        advice = recommend(found, Measured(kappa), asked, is_of_list=is_of_list)
    except DomainError as error:
        # all else was checked where the question was read; how often the run is interrupted depends on its devices
        raise refuse("interruptions_per_device_hour", str(error)) from error
    whole_runs.recommendations[run.id, is_of_list, rate_off is None] = premises, advice
    return RunAdvice(run, found, advice, asked)
