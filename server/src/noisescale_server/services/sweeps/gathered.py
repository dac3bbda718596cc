"""Sweeps that nobody declared: finished runs of one task whose configs differ by batch size, rate and seed alone.

What calibrates κ without being asked for. Runs whose configs differ in anything else are of another sweep, those whose
configs say nothing else are of none, and a batch size counts once two learning rates were tried there: one rate alone
says nothing of the steps that a tuned run takes. Three rates at one size are a sweep, too: it knows the best of them,
though no critical batch. A run whose batch changed while it trained is of no batch size.
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.analysis.calibration.kappa import optimizer_kind
from noisescale_server.analysis.series.steady_batch import is_same_batch
from noisescale_server.services.sweeps import steady_batch
from noisescale_server.storage import sweeps as storage
from noisescale_server.storage.platform import placement
from noisescale_server.storage.platform.tables import Run, Sweep
from noisescale_server.storage.runs import runs
from noisescale_server.storage.sweeps import NewSweep, NewSweepRun

FEWEST_BATCH_SIZES = 3
"""As the fit of a sweep needs."""

FEWEST_RATES = 2
FEWEST_RATES_OF_ONE_SIZE = 3
"""The best of fewer is the smallest or the largest tried, and a better one may lie beyond."""

MOST_RUNS = 500
"""Of one task that are looked through, the newest."""

VARIED = frozenset(
    {
        *("batch", "batch_size", "global_batch_size", "train_batch_size", "micro_batch_size"),
        *("per_device_train_batch_size", "gradient_accumulation_steps", "accumulation"),
        *("lr", "learning_rate", "max_lr", "peak_lr", "base_lr", "seed", "random_seed"),
        *("steps", "num_steps", "max_steps", "total_steps", "planned_steps", "max_iters", "warmup", "warmup_steps"),
        *("epochs", "num_epochs", "num_train_epochs"),
        *("name", "run_name", "output_dir", "out_dir", "save_dir", "log_dir", "argv"),
    }
)
"""Keys of a config that may differ inside one sweep."""

MOST_SEED = 2**63
LEAST_RATE = 1e-30

RATES = ("lr", "learning_rate", "max_lr", "peak_lr", "base_lr")

EVALUATIONS = ("val_loss", "eval_loss", "validation_loss", "test_loss", "val/loss", "eval/loss", "validation/loss")
"""Metrics that a sweep is compared by, before the training loss."""

GATHERED = "gathered"
"""Among the details of a sweep that made itself."""

OF_GATHERED = UUID("5b3f1f6e-7f0a-4a53-9d0c-7f5b5c0f2d11")


async def gather(session: AsyncSession, run_id: UUID) -> UUID | None:
    """The sweep that a finished run makes with others of its task, as it is stored now; None where there is none.

    Args:
        session: Where to read and write.
        run_id: Of a run that no sweep has.
    """
    # runs of every node are read before a sweep is written down
    await placement.one_connection_a_node(session)
    run = await runs.get(session, run_id)
    if run is None or run.finish_status != "finished" or run.archived:
        return None
    own = (await _as_swept_each(session, [run])).get(run.id)
    if own is None:
        return None
    rest = rest_of(run.config)
    if not rest:  # nothing says that runs of the task train the same
        return None
    alike = await storage.unswept_runs(session, run.task_id, MOST_RUNS, of_optimizer=run)
    each = await _as_swept_each(session, [one for one in alike if rest_of(one.config) == rest])
    found = swept(list(each.values()))
    key = json.dumps([str(run.task_id), optimizer_kind(run.optimizer), rest], sort_keys=True, default=str)
    sweep_id = uuid5(OF_GATHERED, key)
    if own not in found:
        # one more of a sweep that there is counts at any size; alone it makes none
        found = [own] if await storage.hold(session, sweep_id) else []
    if not found:
        return None
    created = await _described(session, run, sweep_id)
    await storage.create_if_absent(session, created)
    await storage.attach(session, sweep_id, found)
    return sweep_id


async def leave_changed(session: AsyncSession, sweep: Sweep) -> None:
    """Take the runs whose batch changed out of a sweep that made itself, as of one that was resumed at another."""
    if not sweep.details.get(GATHERED):
        return
    attached = {run.run_id: run.batch_size for run in await storage.runs_of(session, sweep.id) if run.is_stored}
    batches = await steady_batch.of_runs(session, attached)
    changed = [
        run_id for run_id, batch in batches.items() if batch is None or not is_same_batch(batch, attached[run_id])
    ]
    await storage.detach(session, sweep.id, changed)


def swept(runs: Sequence[NewSweepRun]) -> list[NewSweepRun]:
    """Those at batch sizes where several learning rates were tried: two at three sizes or more, else three.

    Args:
        runs: Alike but for batch size, learning rate and seed.
    """
    at_size: defaultdict[float, list[NewSweepRun]] = defaultdict(list)
    for one in runs:
        at_size[one.batch_size].append(one)
    num_rates = {size: len({one.lr for one in some}) for size, some in at_size.items()}
    are_tuned = sum(number >= FEWEST_RATES for number in num_rates.values()) >= FEWEST_BATCH_SIZES
    fewest = FEWEST_RATES if are_tuned else FEWEST_RATES_OF_ONE_SIZE
    return [one for size, some in at_size.items() if num_rates[size] >= fewest for one in some]


async def _described(session: AsyncSession, run: Run, sweep_id: UUID) -> NewSweep:
    project, task = await storage.names_of(session, run)
    logged = await storage.logged(session, run.id, EVALUATIONS)
    return NewSweep(
        id=sweep_id,
        project=project,
        task=task,
        name=f"Runs of {task}",
        kind="sweep",
        run_id=None,
        metric=next((name for name in EVALUATIONS if name in logged), None),
        goal="min",
        targets=[],
        unit=run.unit,
        optimizer=run.optimizer,
        details={GATHERED: True},
    )


def rest_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a config says of the training beside what runs of one sweep may differ in."""
    return {name: value for name, value in config.items() if name.lower() not in VARIED}


async def _as_swept_each(session: AsyncSession, runs: Sequence[Run]) -> dict[UUID, NewSweepRun]:
    """The runs as those of a sweep, by id, without those whose batch changed or is not known."""
    newest = {run.id: run.latest_global_batch for run in runs if run.latest_global_batch}
    batches = await steady_batch.of_runs(session, newest)
    return {run.id: one for run in runs if (one := as_swept(run, batches.get(run.id))) is not None}


def as_swept(run: Run, batch: float | None) -> NewSweepRun | None:
    """The run as one of a sweep; None without a batch size or a learning rate.

    Args:
        run: As stored.
        batch: That it trained at all along, in examples.
    """
    rate = _rate(run)
    if rate is None or batch is None or not batch > 0:
        return None
    seed = run.config.get("seed")
    is_seed = isinstance(seed, int) and not isinstance(seed, bool) and abs(seed) < MOST_SEED
    return NewSweepRun(
        run_id=run.id,
        is_stored=True,
        batch_size=batch,
        lr=rate,
        seed=seed if is_seed else None,
        status="complete",
    )


def _rate(run: Run) -> float | None:
    """The learning rate as the config says it, as a schedule ends near zero; else the last one that was logged."""
    named = (run.config.get(name) for name in RATES)
    for value in (*named, run.latest_lr):
        if isinstance(value, int | float) and not isinstance(value, bool) and LEAST_RATE <= value < math.inf:
            return float(value)
    return None
