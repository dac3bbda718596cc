"""/api/v1/projects/{project}/calibrations: what sweeps, branches and followed runs say, for another server.

Of κ, and of how the paths of runs tell their learning rates.
"""

import asyncio
import logging
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from fastapi import APIRouter, Path, Request
from pydantic import Field, model_validator
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from noisescale_core.advice.learning_rate.rate_coefficients import Schedule
from noisescale_server.analysis.calibration.kappa import optimizer_kind
from noisescale_server.analysis.calibration.rate_lines import REACH
from noisescale_server.api.platform.body import parse, read_body
from noisescale_server.api.platform.deps import ReadSession, Session, Text, body_of
from noisescale_server.api.platform.schemas import Answer, Body, Name
from noisescale_server.api.platform.transactions import commit_with_retry
from noisescale_server.api.sweeps.schemas import BatchSize, Value
from noisescale_server.services.calibration import calibration, followed, hindsight
from noisescale_server.services.calibration import exchange as exchange
from noisescale_server.services.calibration.exchange import Carried
from noisescale_server.services.sweeps import gathered as gathered_sweeps
from noisescale_server.services.sweeps.sweeps import AnyKind
from noisescale_server.storage.calibration import IMPORTED, StoredCalibration
from noisescale_server.storage.platform.driver import DATABASE_ERRORS
from noisescale_server.storage.sweeps import NewSweep

# a name may hold slashes
router = APIRouter(prefix="/projects/{project:path}/calibrations", tags=["sweeps"])

ProjectName = Annotated[Text, Path(description="name of the project")]
SAYS = (
    *("family", "target", "critical_batch", "critical_batch_low", "critical_batch_high", "noise_scale"),
    *("log_kappa_low", "log_kappa_high", "error", "num_runs", "squares", "run_error", "rates"),
)
"""What a calibration says; the rest describes its sweep."""

LogKappa = Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)]
Error = Annotated[float, Field(ge=1e-9, le=1e6, allow_inf_nan=False)]
Spread = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
PathFamilyName = Literal["SGD", "momentum", "Adam", "Muon"]
NUM_SHARES = 4
"""Shares of a plan at which a path is read: 12, 25, 50 and 100 %."""
MAX_READ = 100
"""Runs of one sweep."""
Reading = Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)]
AtShares = Field(min_length=NUM_SHARES, max_length=NUM_SHARES)


class RateReadingsBody(Body):
    """What the path of a run read at 12, 25, 50 and 100 % of its plan, and how far its rate was from the best one.

    `ratios` are q in octaves and `pushes` asinh(6 push), null where a share was not read; `octaves` is log₂ of the
    run's learning rate over the sweep's best one, `error` the standard error of that.
    """

    run_id: UUID
    family: PathFamilyName
    schedules: Annotated[list[Schedule], AtShares]
    octaves: Annotated[float, Field(ge=-REACH, le=REACH, allow_inf_nan=False)]
    error: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
    ratios: Annotated[list[Reading | None], AtShares]
    pushes: Annotated[list[Reading | None], AtShares]


class RateReadingsAnswer(Answer):
    """See `RateReadingsBody`."""

    run_id: UUID
    family: PathFamilyName
    schedules: list[Schedule]
    octaves: float
    error: float
    ratios: list[float | None]
    pushes: list[float | None]


class CalibrationBody(Body):
    """What one sweep, branch or followed run says of B_crit and κ = B_crit / noise scale; batches in examples.

    And, in `rates`, what the runs of a sweep say of how paths tell learning rates.

    `log_kappa_low` and `log_kappa_high` are one value, or the ends of an interval, null where it is open. `error` is
    the standard error of the value, null where no noise scale is known.
    """

    id: UUID
    task: Name
    family: Name | None = None
    optimizer: Annotated[Name | Literal[""], Field(description="its kind: sgd, adam, or the name of another; or empty")]
    kind: AnyKind = "sweep"
    name: Name
    metric: Name | None = None
    target: Value | None = None
    unit: Name = "examples"
    critical_batch: BatchSize | None = None
    critical_batch_low: BatchSize | None = None
    critical_batch_high: BatchSize | None = None
    noise_scale: BatchSize | None = None
    log_kappa_low: LogKappa | None = None
    log_kappa_high: LogKappa | None = None
    error: Error | None = None
    num_runs: Annotated[int, Field(ge=0, le=10_000)] = 0
    squares: Spread = 0.0
    run_error: Spread = 0.0
    rates: Annotated[list[RateReadingsBody], Field(max_length=MAX_READ, default_factory=list)]
    measured_at: datetime | None = None
    is_imported: bool = False

    @model_validator(mode="after")
    def check(self) -> Self:
        """The calibration itself.

        Raises:
            ValueError: Where its numbers contradict each other, or say nothing.
        """
        for low, value, high in (
            (self.critical_batch_low, self.critical_batch, self.critical_batch_high),
            (self.log_kappa_low, None, self.log_kappa_high),
        ):
            rising = [one for one in (low, value, high) if one is not None]
            if rising != sorted(rising):
                raise ValueError("has an interval whose low end lies above its value or its high end")
        if self.critical_batch is not None and None in (self.critical_batch_low, self.critical_batch_high):
            raise ValueError("has a critical_batch without both ends of its interval: give its low and its high end")
        if self.error is not None and not self.num_runs:
            raise ValueError("has a κ of no run: give num_runs, 1 or more")
        if self.error is not None and self.log_kappa_low is None and self.log_kappa_high is None:
            raise ValueError("has an error of κ and no κ: give log_kappa_low or log_kappa_high")
        says_kappa = self.error is not None or {self.critical_batch_low, self.critical_batch_high} != {None}
        if not says_kappa and not self.rates:
            raise ValueError("says nothing: give log_kappa_low, log_kappa_high and error, a critical batch, or rates")
        return self


class CalibrationsBody(Body):
    """Body of POST /api/v1/projects/{project}/calibrations; what GET answers can be sent as it is."""

    version: Literal[1] = 1
    calibrations: Annotated[list[CalibrationBody], Field(max_length=exchange.MAX_AT_ONCE)]


class CalibrationAnswer(Answer):
    """One sweep, branch or followed run; see `CalibrationBody`."""

    id: UUID
    task: str
    family: str | None
    optimizer: str
    kind: AnyKind
    name: str
    metric: str | None
    target: float | None
    unit: str
    critical_batch: float | None
    critical_batch_low: float | None
    critical_batch_high: float | None
    noise_scale: float | None
    log_kappa_low: float | None
    log_kappa_high: float | None
    error: float | None
    num_runs: int
    squares: float
    run_error: float
    rates: list[RateReadingsAnswer]
    measured_at: datetime
    is_imported: bool


class CalibrationList(Answer):
    """The newest 1,000 of a project."""

    version: Literal[1] = 1
    calibrations: list[CalibrationAnswer]


class ImportedAnswer(Answer):
    """How many were added, had been imported before, and were left as this server has measured them itself."""

    added: int
    updated: int
    left: int


@router.get("")
async def list_calibrations(project: ProjectName, session: ReadSession) -> CalibrationList:
    """What the project's sweeps, branches and followed runs say, for another server to import."""
    found = await exchange.export(session, project)
    return CalibrationList(calibrations=[_answer(one) for one in found])


@router.post("", openapi_extra=body_of(CalibrationsBody))
async def import_calibrations(project: ProjectName, request: Request, session: Session) -> ImportedAnswer:
    """Import calibrations of another server; the same again changes nothing."""
    body = parse(CalibrationsBody, await read_body(request))
    found = await exchange.take_in(session, [_carried(project, one) for one in body.calibrations])
    return ImportedAnswer(**asdict(found))


def _answer(one: StoredCalibration) -> CalibrationAnswer:
    row, sweep = one.row, one.sweep
    own = {name: getattr(row, name) for name in CalibrationAnswer.model_fields if hasattr(row, name)}
    described = {name: getattr(sweep, name) for name in ("id", "kind", "name", "metric", "unit")}
    return CalibrationAnswer(**own | described, task=one.task, is_imported=IMPORTED in sweep.details)


def _carried(project: str, body: CalibrationBody) -> Carried:
    given = body.model_dump() | {"rates": [one.model_dump(mode="json") for one in body.rates]}
    new = NewSweep(
        id=body.id,
        project=project,
        task=body.task,
        name=body.name,
        kind=body.kind,
        run_id=None,
        metric=body.metric,
        goal="min",
        targets=[],
        unit=body.unit,
        optimizer=body.optimizer or None,
        details={IMPORTED: {"measured_at": None if body.measured_at is None else body.measured_at.isoformat()}},
    )
    says = {name: given[name] for name in SAYS}
    return Carried(new=new, says=says | {"optimizer": optimizer_kind(body.optimizer)})


# After a run has finished: what its sweeps say of κ is measured anew, behind the answer to the job.

_logger = logging.getLogger(__name__)


class Recalibrations:
    """Sweeps that wait to be measured, one at a time.

    A sweep's runs often finish together. Those that wait hold no connection, and a sweep that waits already is not
    measured twice.
    """

    def __init__(self, *, gathers: bool = True) -> None:
        self._gathers = gathers
        self._waiting: set[UUID] = set()
        self._turn = asyncio.Lock()

    async def after_finish(self, sessions: async_sessionmaker[AsyncSession], run_id: UUID) -> None:
        """Measure every sweep of the run; the log says which could not be."""
        try:
            async with sessions() as session:
                touched = await calibration.sweeps_with(session, run_id)
            if not touched and self._gathers:
                gathered = await commit_with_retry(sessions, lambda session: gathered_sweeps.gather(session, run_id))
                touched = [] if gathered is None else [gathered]
            if not touched:
                async with sessions() as session:
                    held_against = await followed.sweep_for(session, run_id)
                touched = [] if held_against is None else [held_against]
            for sweep_id in touched:
                await self._measure(sessions, sweep_id)
        except DATABASE_ERRORS:
            # the job has its answer already, so nobody else hears of it
            _logger.warning(
                "run %s has finished, but κ of its sweeps is as before: attach it again", run_id, exc_info=True
            )

    async def _measure(self, sessions: async_sessionmaker[AsyncSession], sweep_id: UUID) -> None:
        if sweep_id in self._waiting:
            return
        self._waiting.add(sweep_id)
        async with self._turn:
            # from here on its runs are read: one that finishes now has to ask again
            self._waiting.remove(sweep_id)
            await commit_with_retry(sessions, lambda session: calibration.after_finish(session, sweep_id))


# GET /api/v1/hindsight: how often was the advice right here?

hindsight_router = APIRouter(tags=["recommendation"])


class BinAnswer(Answer):
    """Changes whose odds were said alike: what was said and what came true, with a 95 % interval."""

    low: float
    high: float
    num_answers: int
    said: float
    came_true: float
    came_true_low: float
    came_true_high: float


class ShareAnswer(Answer):
    """What was said at one share of the plan: decided and right as shares, median costs over the best batch."""

    share: float
    num_answers: int
    decided: float
    right: float | None
    regret: float
    regret_kept: float
    regret_of_price: float


class HindsightAnswer(Answer):
    """Stated odds against what came true, over runs of sweeps, at prices from 1/16 to 16 critical batches."""

    num_runs: int
    bins: list[BinAnswer]
    records: list[ShareAnswer]


@hindsight_router.get("/hindsight")
async def get_hindsight(session: ReadSession, project: Text | None = None) -> HindsightAnswer:
    """What the advice of then was worth, by what sweeps say now: the newest 50 runs of sweeps that were fitted."""
    found = await hindsight.of_project(session, project)
    return HindsightAnswer.model_validate(asdict(found))
