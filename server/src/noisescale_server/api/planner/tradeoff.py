"""GET /api/v1/tradeoff: steps, examples, hours, money and energy at any batch size, limits, and schedules."""

from typing import Annotated

from fastapi import APIRouter, Query

from noisescale_core.advice.defaults import price_sentence
from noisescale_core.advice.limits.pace import Pace
from noisescale_core.advice.limits.predictions import Banded, banded
from noisescale_core.advice.question import Question
from noisescale_core.theory.schedule import Stretch
from noisescale_core.theory.trade_off import TradeOff
from noisescale_server.api.planner.query import TradeOffQuery
from noisescale_server.api.platform.deps import KnownWholeRuns, ReadSession
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.services.planner import source as tradeoff_source
from noisescale_server.services.planner import tradeoff
from noisescale_server.services.planner.asked import EXACT, AskedPlan, Machines
from noisescale_server.services.planner.beyond import Beyond, beyond_the_batch
from noisescale_server.services.planner.limits import Allowed, Reach
from noisescale_server.services.planner.policies import Policy, Terrain, policies, profile_of
from noisescale_server.services.planner.rows import Row
from noisescale_server.services.planner.source import Source, SweepTargets
from noisescale_server.services.planner.tradeoff import WhatIf
from noisescale_server.services.planner.worth import worth_of
from noisescale_server.services.platform.errors import refuse

router = APIRouter(tags=["recommendation"])


class StepAnswer(Answer):
    """What a step takes and costs, as the table has it."""

    batch_size: float
    seconds: float
    num_devices: int | None
    usd_per_device_hour: float | None
    are_devices_added: bool


class TradeOffAnswer(Answer):
    """The planner's table. What each field means: docs/rest.md."""

    critical_batch: Banded
    critical_batch_text: str
    example: str
    unit: str
    units_per_example: float
    target: str
    targets: SweepTargets | None
    min_steps: float | None
    min_examples: float | None
    examples_per_step: float
    price_text: str
    best_batch: Banded
    limited_batch: float | None
    limited_interval: Reach | None
    recommended: Row | None
    present: Row | None
    binding: tuple[str, ...]
    limit_text: str
    limits: tuple[Allowed, ...]
    step: StepAnswer | None
    assumes: str | None
    rows: tuple[Row, ...]
    pareto: tuple[float, ...]
    what_ifs: tuple[WhatIf, ...]
    growth: float
    policies: tuple[Policy, ...]
    policies_missing: str | None
    beyond: Beyond


@router.get("/tradeoff", response_model=TradeOffAnswer)
async def get_tradeoff(
    query: Annotated[TradeOffQuery, Query()], session: ReadSession, whole_runs: KnownWholeRuns
) -> TradeOffAnswer:
    """What a target takes at any batch size, for a critical batch that is said or read from a run."""
    query.checked()
    source = None
    if query.run_id is not None:
        source = await tradeoff_source.of_run(session, whole_runs, query.run_id, query.asked())
    if query.project is not None and query.task is not None:
        source = await tradeoff_source.of_task(
            session,
            whole_runs,
            query.project,
            query.task,
            optimizer=query.optimizer,
            asked=query.asked(),
            sweep_target=query.sweep_target,
        )
    return tradeoff_answer(query, source)


def tradeoff_answer(query: TradeOffQuery, source: Source | None) -> TradeOffAnswer:
    """The table as JSON.

    Raises:
        InvalidInput: Where its numbers contradict each other.
    """
    asked = _asked(query, source)
    critical, pace = asked.critical_batch, asked.machines.pace
    try:
        found = tradeoff.table(asked)
    except ValueError as error:
        raise refuse("critical_batch", str(error)) from error
    to_target, rate = asked.trade_off_at(critical.value), asked.rate.at(critical.value)
    profile = _profile(query, source, to_target)
    at_batch = None if asked.plan is None else asked.plan.batch
    terrain = Terrain(profile, critical, at_batch, pace, asked.plan_error)
    schedules = policies(terrain, examples_per_step=rate) if profile else []
    inside = found.inside
    return TradeOffAnswer(
        critical_batch=banded(critical.through(lambda batch: batch)),
        critical_batch_text="The critical batch is the one you gave." if source is None else source.said,
        example=asked.example,
        unit="examples" if source is None else source.unit,
        units_per_example=1.0 if source is None else source.units_per_example,
        target=asked.target,
        targets=None if source is None else source.targets,
        min_steps=None if to_target is None else to_target.min_steps,
        min_examples=None if to_target is None else to_target.min_examples,
        examples_per_step=rate,
        price_text=asked.rate.said,
        best_batch=found.best_batch,
        limited_batch=inside.choice.batch,
        limited_interval=inside.reach,
        recommended=found.recommended,
        present=found.present,
        binding=tuple(limit.kind.value for limit in inside.choice.binding),
        limit_text=inside.text,
        limits=inside.limits,
        step=None if pace is None else _step(pace),
        assumes=_assumes(found.assumes, query.asked_with(source)),
        rows=found.rows,
        pareto=tuple(row.batch_size for row in found.rows if row.is_pareto),
        what_ifs=found.what_ifs,
        growth=_growth(query, source),
        policies=tuple(schedules),
        policies_missing=None if schedules else "Schedules need a target: give steps and at_batch.",
        beyond=beyond_the_batch(asked, inside, unit="" if source is None else source.unit),
    )


def _asked(query: TradeOffQuery, source: Source | None) -> AskedPlan:
    critical, plan = query.critical(source), query.plan(source)
    value = critical.estimate.value
    pace = query.pace(source, plan)
    present_batch = None if source is None else source.present_batch
    machines = Machines(pace, query.usd_per_hour_besides, query.kilowatts_per_device, query.max_devices)
    return AskedPlan(
        critical=critical,
        plan=plan,
        batches=query.batches(value, pace, present_batch),
        machines=machines,
        rate=worth_of(query.asked_with(source), pace),
        given=query.asked_with(source),
        target=query.target if source is None or query.steps is not None else source.target,
        present_batch=present_batch,
        example="example" if source is None else source.example,
        num_examples=None if source is None else source.num_examples,
        plan_error=EXACT if source is None or query.steps is not None else source.plan_error,
    )


def _assumes(of_steps: str | None, asked: Question) -> str | None:
    """What is assumed of a step's time, and of its price where it is the project's."""
    money = price_sentence(asked)
    return of_steps if of_steps is None or money is None else f"{of_steps} {money}"


def _step(pace: Pace) -> StepAnswer:
    return StepAnswer(
        batch_size=pace.batch,
        seconds=pace.step_seconds,
        num_devices=pace.num_devices,
        usd_per_device_hour=pace.usd_per_device_hour,
        are_devices_added=pace.hardware == "devices_with_the_batch",
    )


def _growth(query: TradeOffQuery, source: Source | None) -> float:
    if query.growth is not None:
        return query.growth
    return 0.0 if source is None or query.steps is not None else source.growth


def _profile(query: TradeOffQuery, source: Source | None, to_target: TradeOff | None) -> list[Stretch]:
    """The noise scale up to the target: as the run predicts it, or by the growth that was said."""
    if source is not None and source.profile and query.growth is None and query.steps is None:
        return source.profile
    return [] if to_target is None else profile_of(to_target, _growth(query, source))
