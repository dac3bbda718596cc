"""What a rule would have told of the last days, had it been there: a dry run over what is stored.

Runs are looked at again as they stood at a few moments, from their rows alone, by the same cases and episodes as live
ones. A moment at which a recommendation is needed takes some 10 ms, so there are a few of each run.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.defaults import Defaults, filled
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.question import NOTHING_ASKED
from noisescale_core.advice.recommendation import decide
from noisescale_core.theory.cost import SECONDS_PER_HOUR
from noisescale_server.services import defaults as of_project
from noisescale_server.services.alerts import episodes, mentioning
from noisescale_server.services.alerts.episodes import NEVER
from noisescale_server.services.alerts.rules import Rule, Standing, sentence_of
from noisescale_server.services.alerts.watch import usd_left
from noisescale_server.services.recommendation import known_kappa
from noisescale_server.services.series import history as run_history
from noisescale_server.services.series import sparklines
from noisescale_server.services.series.history import Moment
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.sparklines import Sparkline
from noisescale_server.services.series.whole_run import WholeRuns
from noisescale_server.storage import comments
from noisescale_server.storage.alerts import late, watched
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs import streams
from noisescale_server.storage.runs.streams import SIMPLE

MAX_RUNS: Final = 20
MAX_POINTS: Final = 200
MOMENTS: Final = 12
OF_ADVICE: Final = frozenset({"batch_off", "saving"})
OF_A_WINDOW: Final = frozenset({"ranks_alike", "trace_cov_of_rounding"})

ON_TIME_AFTER: Final = timedelta(minutes=2)
"""Lateness is noted once a minute while it lasts."""


@dataclass(frozen=True, slots=True)
class Told:
    """What would have been told of."""

    run_id: UUID
    run: str
    at: datetime
    sentence: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """A rule over the last days.

    Attributes:
        told: What would have been told of, newest first.
        num_runs: Runs that were looked at: the newest, at most 20.
        has_more: Whether there were more.
    """

    told: tuple[Told, ...]
    num_runs: int
    has_more: bool


async def replay(session: AsyncSession, whole_runs: WholeRuns, rule: Rule, *, days: float, now: datetime) -> Replayed:
    """What the rule would have told of.

    Args:
        session: Where to read.
        whole_runs: What is known of runs that were read before.
        rule: That would have watched; it need not be stored.
        days: How far back.
        now: The server's clock.
    """
    began = now - timedelta(days=days)
    runs = await watched.past_runs(session, rule.project_id, heard_after=began, limit=MAX_RUNS + 1)
    looked_at, has_more = runs[:MAX_RUNS], len(runs) > MAX_RUNS
    if rule.kind == "spool_growing":
        noted = await late.of_runs(session, [run.id for run in looked_at], after=began)
        late_ones = [one for run in looked_at for one in _late(rule, run, noted.get(run.id, ()))]
        return Replayed(tuple(sorted(late_ones, key=lambda one: one.at, reverse=True)), len(looked_at), has_more)
    if rule.kind == "mentioned":
        return Replayed(tuple(await _mentions(session, looked_at, began)), len(looked_at), has_more)
    lines = await sparklines.of_runs(session, [run.id for run in looked_at], max_points=MAX_POINTS)
    defaults = await of_project.of_id(session, rule.project_id)
    told: list[Told] = []
    for run in looked_at:
        if run.id in lines:
            past = _Past(session, whole_runs, run, lines[run.id], defaults)
            told += [one async for one in _of_run(rule, past, now) if one.at >= began]
    return Replayed(tuple(sorted(told, key=lambda one: one.at, reverse=True)), len(looked_at), has_more)


@dataclass(frozen=True, slots=True)
class _Past:
    """A run with what its past is read from."""

    session: AsyncSession
    whole_runs: WholeRuns
    run: Run
    line: Sparkline
    defaults: Defaults

    @property
    def moments(self) -> list[tuple[int, datetime]]:
        """(place in the line, when) of each point whose time is known."""
        times = enumerate(self.line.wall_time)
        return [(place, datetime.fromtimestamp(at, UTC)) for place, at in times if at is not None]


async def _of_run(rule: Rule, past: _Past, now: datetime) -> AsyncIterator[Told]:
    before, run = NEVER, past.run
    async for at, standing in _standings(rule, past, now):
        sentence = sentence_of(rule, standing, at)
        before, is_told = episodes.step(rule, before, is_case=sentence is not None, now=at)
        if is_told and sentence is not None:
            yield Told(run.id, run.name, at, sentence)


async def _standings(rule: Rule, past: _Past, now: datetime) -> AsyncIterator[tuple[datetime, Standing]]:
    """The run at moments of its past, oldest first."""
    if rule.kind == "stalled":
        for one in _silences(rule, past, now):
            yield one
        return
    places = past.moments
    if rule.kind in OF_ADVICE | OF_A_WINDOW:
        places = _some(places)
    last: Standing | None = None
    for place, at in places:
        last = await _standing(rule, past, place)
        yield at, last
    if last is not None and places[-1][1] < past.run.updated_at:
        # as it was left, for as long as it went on
        yield past.run.updated_at, last


def _some(places: Sequence[tuple[int, datetime]]) -> list[tuple[int, datetime]]:
    """A few of them, the last one included."""
    if len(places) <= MOMENTS:
        return list(places)
    return [places[round(number * (len(places) - 1) / (MOMENTS - 1))] for number in range(MOMENTS)]


async def _standing(rule: Rule, past: _Past, place: int) -> Standing:
    run, line = past.run, past.line
    step = line.step[place]
    broken = [one for one in (run.loss_broken_since, run.gradients_broken_since) if one is not None and one <= step]
    known = Standing(
        run_id=run.id,
        name=run.name,
        state=line.state[place],
        value=line.value[place],
        batch_size=line.global_batch[place],
        diverged_step=min(broken, default=None),
    )
    return await _with_history(rule, past, known, step) if rule.kind in OF_ADVICE | OF_A_WINDOW else known


async def _with_history(rule: Rule, past: _Past, known: Standing, step: int) -> Standing:
    """The same with what takes the run's history up to the step."""
    run, session = past.run, past.session
    live = LiveSeries.of(run.id, SIMPLE, await streams.coverage_of_run(session, run.id))
    spent = await past.whole_runs.history_of(session, run, live, step)
    if rule.kind in OF_A_WINDOW:
        return Standing(run_id=run.id, name=run.name, flags=spent.flags, reason=spent.noise_scale.reason)
    moment = Moment(await run_history.batch_at(session, live, step))
    asked = filled(NOTHING_ASKED, past.defaults, own_price=run.usd_per_device_hour)
    stood = run_history.so_far(run, spent, moment=moment, usd_per_device_hour=asked.usd_per_device_hour)
    kappa = await known_kappa.of_run(session, run)
    # milliseconds of arithmetic, for which no request should wait
    found = await asyncio.to_thread(decide, stood, Measured(kappa), asked)
    saving = None
    known_all = (spent.hours, run.planned_steps, run.num_devices, stood.usd_per_device_hour, found.saving)
    if None not in known_all and run.num_devices != 1 and step:
        left = usd_left(
            steps_left=(run.planned_steps or 0) - step - 1,
            seconds_per_step=(spent.hours or 0.0) * SECONDS_PER_HOUR / step,
            devices=run.num_devices or 0,
            price=stood.usd_per_device_hour or 0.0,
        )
        saving = (found.saving or 0.0) * left
    return Standing(
        run_id=run.id,
        name=run.name,
        batch_size=stood.batch_size,
        recommended=found.batch_size,
        odds=found.probability,
        usd_saving=saving,
    )


async def _mentions(session: AsyncSession, runs: Sequence[Run], began: datetime) -> list[Told]:
    """What would have been told of comments, newest first."""
    names = {run.id: run.name for run in runs}
    found = await comments.that_mention(session, list(names), since=began)
    return [
        Told(one.run_id, names[one.run_id], one.created_at, mentioning.sentence(one, one.mentions)) for one in found
    ]


def _late(rule: Rule, run: Run, noted: Sequence[tuple[datetime, float]]) -> Iterator[Told]:
    """What would have been told of records that came late."""
    before = NEVER
    last = datetime.min.replace(tzinfo=UTC)
    for at, seconds in noted:
        if at - last > ON_TIME_AFTER:
            before, _ = episodes.step(rule, before, is_case=False, now=at)
        last = at
        sentence = sentence_of(rule, Standing(run_id=run.id, name=run.name, delay=timedelta(seconds=seconds)), at)
        before, is_told = episodes.step(rule, before, is_case=sentence is not None, now=at)
        if is_told and sentence is not None:
            yield Told(run.id, run.name, at, sentence)


def _silences(rule: Rule, past: _Past, now: datetime) -> Iterator[tuple[datetime, Standing]]:
    """The run where nothing came for longer than a point of its line takes, and after it has been heard again."""
    times = [at for _, at in past.moments]
    minutes = timedelta(minutes=rule.number("minutes"))
    usual = timedelta(seconds=median([(after - at).total_seconds() for at, after in pairwise(times)] or [0.0]))
    run = past.run
    for heard, again in pairwise(times):
        if again - heard - usual >= minutes:
            yield heard + minutes, Standing(run_id=run.id, name=run.name, heard=heard)
            yield again, Standing(run_id=run.id, name=run.name, heard=again)
    if run.finish_status is None and now - run.updated_at >= minutes:
        yield run.updated_at + minutes, Standing(run_id=run.id, name=run.name, heard=run.updated_at)
