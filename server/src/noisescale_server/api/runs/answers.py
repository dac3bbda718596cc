"""Runs and estimates as JSON answers; see docs/rest.md."""

from dataclasses import asdict
from uuid import UUID

from noisescale_core.advice.evidence.kappa import Kappa
from noisescale_core.advice.parts import parts as advice
from noisescale_core.advice.parts.parts import LatestNoiseScale
from noisescale_core.advice.words import of_divergence
from noisescale_core.estimators.divergence import Divergence
from noisescale_server.api.platform import cursor
from noisescale_server.api.runs.schemas import (
    FoldAnswer,
    Interval,
    Notice,
    RowDecision,
    RunAnswer,
    RunDivergence,
    RunKappa,
    RunPage,
    RunStatusAnswer,
)
from noisescale_server.services.runs.runs import Page, RunView
from noisescale_server.storage.runs.folding import Fold
from noisescale_server.storage.runs.listing import Sort
from noisescale_server.storage.runs.streams import KINDS


def run_answer(view: RunView) -> RunAnswer:
    """One run."""
    run = view.row.run
    return RunAnswer(
        id=run.id,
        project=view.row.project,
        task=view.row.task,
        name=run.name,
        tags=run.tags,
        config=run.config,
        unit=run.unit,
        example=run.example or "example",
        units_per_example=run.units_per_example,
        num_devices=run.num_devices,
        device=run.device,
        usd_per_device_hour=run.usd_per_device_hour,
        family=run.family,
        planned_steps=run.planned_steps,
        archived=run.archived,
        is_baseline=view.is_baseline,
        status=view.status,
        created_at=run.created_at,
        updated_at=run.updated_at,
        finished_at=run.finished_at,
        optimizer=run.optimizer,
        estimator=run.estimator,
        num_ranks=run.num_ranks,
        measure_every=run.measure_every,
        notes=run.notes,
        remarks=run.remarks,
        notices=[Notice(code=notice.code, text=notice.text) for notice in view.notices],
        kinds=[kind for kind in KINDS if kind in run.kinds],
        lr=run.latest_lr,
        loss_reduction=run.loss_reduction,
        first_step=run.first_step,
        last_step=run.latest_step,
        examples=run.latest_examples,
        global_batch=run.latest_global_batch,
        num_micro_batches=run.latest_num_micro_batches,
        loss=None if view.divergence is not None and view.divergence.loss else run.latest_loss,
        noise_scale=LatestNoiseScale.of(view.noise_scale, view.reason, run.noise_scale_step),
        divergence=divergence_answer(view.divergence, run.noise_scale_step),
        example_efficiency=interval_answer(view.example_efficiency),
        step_efficiency=interval_answer(view.step_efficiency),
        decision=decision_answer(view.decision),
        kappa=kappa_answer(view.kappa, view.noise_scale.level),
    )


def divergence_answer(found: Divergence | None, until_step: int | None) -> RunDivergence | None:
    """Since when a run is not finite, in words too."""
    if found is None:
        return None
    text = of_divergence.sentence(found, until_step=until_step)
    return RunDivergence(step=found.step, loss=found.loss, gradients=found.gradients, text=text)


def status_answer(view: RunView) -> RunStatusAnswer:
    """A run's status alone."""
    return RunStatusAnswer(id=view.row.run.id, project=view.row.project, status=view.status)


def page_answer(page: Page, sort: Sort) -> RunPage:
    """A page of runs with the cursor of the next."""
    next_cursor = None
    if page.has_more:
        last = page.runs[-1].row
        next_cursor = cursor.encode(sort, last.sorted_by, last.run.id)
    rows = [view.row for view in page.runs]
    return RunPage(
        runs=[run_answer(view) for view in page.runs],
        folds=[fold_answer(row.run.id, row.fold) for row in rows if row.fold is not None],
        next_cursor=next_cursor,
        total=page.count.rows,
        num_runs=page.count.runs,
        is_total_exact=page.count.is_exact,
    )


def fold_answer(run_id: UUID, fold: Fold) -> FoldAnswer:
    """The trials behind a run."""
    return FoldAnswer(run_id=run_id, **asdict(fold))


def interval_answer(interval: advice.Interval | None) -> Interval | None:
    """A value with its interval, or null."""
    return None if interval is None else Interval(value=interval.value, low=interval.low, high=interval.high)


def decision_answer(decision: advice.Decision) -> RowDecision:
    """The decision of a table row."""
    return RowDecision(
        decision=decision.decision,
        batch_size=decision.batch_size,
        low=decision.low,
        high=decision.high,
        reason=decision.reason,
        probability=decision.probability,
        saving=decision.saving,
    )


def kappa_answer(kappa: Kappa, level: float) -> RunKappa:
    """What is known of κ, with its interval."""
    low, high = kappa.interval(level)
    return RunKappa(value=kappa.value, low=low, high=high, level=level, measurements=kappa.measurements)
