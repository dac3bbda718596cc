"""`noisescale.branch`: a few short arms from the present state, compared on the same held-out batches."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from noisescale.guard import announce
from noisescale.options import inside, takes_older
from noisescale.run import active_run
from noisescale.run.run import Run
from noisescale_core.errors import ConfigError
from noisescale_lab import branch as package
from noisescale_lab.branch.comparison import changed_to, compare, rate_now, set_rates, warning
from noisescale_lab.branch.plan import Arm, Length, arms
from noisescale_lab.branch.random_states import RandomStates
from noisescale_lab.branch.result import (
    ArmResult,
    BranchCost,
    BranchResult,
    kappa_bounds,
    local_critical_batch,
    meaning,
    point_of,
)
from noisescale_lab.branch.storing import BranchLabels, store

if TYPE_CHECKING:
    import torch

    from noisescale_lab.branch.torch_snapshot import Stateful

TrainSteps = Callable[[int, float, int, int], object]
"""`train_steps(batch_size, lr, num_steps, seed)`: so many optimizer steps on examples in the order of the seed."""

Evaluate = Callable[[], Sequence[float]]
"""Losses of the present weights on fixed held-out batches, always the same ones."""

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class _State:
    """The start state: how to come back to it, and the optimizer whose learning rate an arm sets."""

    restore: Callable[[], None]
    forget: Callable[[], None]
    optimizer: "torch.optim.Optimizer | None"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What comes back after each arm beside model and optimizer, and how.

    Attributes:
        others: Further objects with a state_dict: schedules, a GradScaler, a data loader.
        keep_in: File for the start state; None: in memory, on its devices.
        snapshot: Instead of `model`: gives the start state.
        restore: Puts it back.
    """

    others: "Sequence[Stateful]" = ()
    keep_in: str | os.PathLike[str] | None = None
    snapshot: Callable[[], Any] | None = None
    restore: Callable[[Any], None] | None = None


@takes_older(inside("checkpoint", Checkpoint, "others", "keep_in", "snapshot", "restore"))
def branch(
    train_steps: TrainSteps,
    evaluate: Evaluate,
    *,
    batch_size: int,
    model: "torch.nn.Module | None" = None,
    optimizer: "torch.optim.Optimizer | None" = None,
    checkpoint: Checkpoint | None = None,
    lr: float | None = None,
    batch_sizes: Sequence[int] = (),
    learning_rates: Sequence[float] = (),
    num_steps: int | None = None,
    num_examples: int | None = None,
    margin: float = 0.01,
    level: float = 0.95,
    seed: int = 0,
    usd_per_hour: float | None = None,
    run: Run | None = None,
    progress: Callable[[str], None] = announce,
) -> BranchResult:
    """Short arms over batch size or learning rate from the present state, which is then put back bit for bit.

    Every arm starts from the same weights, optimizer state and random generators, is given the same seed for its
    examples, and is evaluated on the same held-out batches, where a paired one-sided t test says whether it is worse
    than the present setting by more than a margin. Call it between two steps, without hooks of `watch()`.

    Args:
        train_steps: `train_steps(batch_size, lr, num_steps, seed)` trains; with `optimizer` its groups already have
            the arm's learning rate.
        evaluate: Losses on fixed held-out batches, one each, at least two; 8 to 32 are a start.
        batch_size: The present one, in examples.
        model: Put back afterwards, with gradients, buffers and modes.
        optimizer: Put back afterwards, too; needed with `model`.
        checkpoint: What else comes back, and how; None: model and optimizer, from memory.
        lr: The present one; None: of the optimizer's first group.
        batch_sizes: Arms; their learning rates follow by k (SGD) or √k (others) unless `learning_rates` are given.
        learning_rates: Arms, at each of the batch sizes.
        num_steps: Length of every arm in steps.
        num_examples: Or in examples, whole batches of every arm.
        margin: How much worse does not matter, in units of the loss.
        level: Confidence of each one-sided limit.
        seed: Of the examples, the same for all arms.
        usd_per_hour: Price of the job; None: of the run, where it is known.
        run: Whose branches these are, on the server; None: the active run, if there is one.
        progress: Is told each arm, and the result.

    Returns:
        The arms with their comparisons, a sentence, and the cost; errors of the training pass through, after the
        start state was put back.

    Raises:
        ConfigError: For a wrong argument, or while the run watches gradients.
    """
    run = run or active_run.current()
    _refuse_while_watched(run)
    if not (0.5 <= level <= 0.9999 and margin >= 0):
        raise ConfigError(f"level must be from 0.5 to 0.9999 and margin at least 0, got {level} and {margin}")
    planned = arms(
        batch_size=batch_size,
        lr=_present_lr(lr, optimizer),
        batch_sizes=batch_sizes,
        learning_rates=learning_rates,
        length=Length(num_steps, num_examples),
        optimizer=None if optimizer is None else type(optimizer).__name__,
    )
    point = point_of(run)
    state = _state(model, optimizer, checkpoint or Checkpoint())
    start = time.perf_counter()
    try:
        before = _losses(evaluate)
        state.restore()
        found = [_train(arm, planned[0].lr, train_steps, evaluate, state, seed, progress) for arm in planned]
    finally:
        state.restore()
        state.forget()
    seconds = time.perf_counter() - start
    price = usd_per_hour if usd_per_hour is not None else _price(run)
    cost = BranchCost(
        steps=sum(arm.num_steps for arm in planned),
        examples=sum(arm.examples for arm in planned),
        seconds=seconds,
        usd=None if price is None else price * seconds / SECONDS_PER_HOUR,
    )
    result = _judged(before, found, cost, margin=margin, level=level, is_equal_examples=num_examples is not None)
    local = result.local_critical_batch
    low, high = (None, None) if local is None else (local.low, local.high)
    result = replace(result, point=point, kappa=kappa_bounds(point, low, high))
    result = _stored(result, run, seed, None if optimizer is None else type(optimizer).__name__)
    progress(str(result))
    return result


def _train(
    arm: Arm,
    present_lr: float,
    train_steps: TrainSteps,
    evaluate: Evaluate,
    state: _State,
    seed: int,
    progress: Callable[[str], None],
) -> ArmResult:
    start = time.perf_counter()
    set_rates(state.optimizer, arm.lr / present_lr)
    begun_with = rate_now(state.optimizer)
    train_steps(arm.batch_size, arm.lr, arm.num_steps, seed)
    lr_at_end = changed_to(begun_with, rate_now(state.optimizer))
    losses = _losses(evaluate)
    state.restore()
    found = ArmResult(arm, losses, time.perf_counter() - start, lr_at_end=lr_at_end)
    if lr_at_end is not None:
        progress(f"branch: {warning(arm.batch_size, arm.lr, lr_at_end)}")
    progress(f"branch: batch {arm.batch_size:,}, learning rate {arm.lr:.4g}: held-out loss {found.mean_loss:.5g}")
    return found


def _losses(evaluate: Evaluate) -> tuple[float, ...]:
    """The losses as numbers, also where they came as tensors with a gradient."""
    return tuple(float(loss.detach() if hasattr(loss, "detach") else loss) for loss in evaluate())


def _judged(
    before: Sequence[float],
    found: Sequence[ArmResult],
    cost: BranchCost,
    *,
    margin: float,
    level: float,
    is_equal_examples: bool,
) -> BranchResult:
    present, *others = found
    compared = [
        replace(other, comparison=compare(other.losses, present.losses, margin=margin, level=level)) for other in others
    ]
    judged = (present, *compared)
    sizes = {arm.arm.batch_size for arm in judged}
    local = None
    if is_equal_examples and len(sizes) == len(judged):
        local = local_critical_batch(judged, margin=margin, level=level)
    mean_before = sum(before) / len(before)
    return BranchResult(mean_before, judged, local, margin, cost, meaning(judged, local, margin))


def _state(
    model: "torch.nn.Module | None",
    optimizer: "torch.optim.Optimizer | None",
    checkpoint: Checkpoint,
) -> _State:
    """How to come back to this moment.

    Raises:
        ConfigError: Unless a model with its optimizer is given, or both functions.
    """
    random_states = RandomStates.now()
    snapshot, restore = checkpoint.snapshot, checkpoint.restore
    if snapshot is not None and restore is not None and model is None:
        kept, put_back = snapshot(), restore

        def restore_own() -> None:
            put_back(kept)
            random_states.restore()

        return _State(restore_own, lambda: None, None)
    if model is None or optimizer is None or snapshot is not None or restore is not None:
        raise ConfigError("branch() needs model and optimizer to come back to, or snapshot and restore: give one pair")
    saved = package.TorchSnapshot(model, optimizer, checkpoint.others, checkpoint.keep_in)

    def restore_torch() -> None:
        saved.restore()
        random_states.restore()

    return _State(restore_torch, saved.forget, optimizer)


def _present_lr(lr: float | None, optimizer: "torch.optim.Optimizer | None") -> float:
    if lr is not None:
        return lr
    if optimizer is None:
        raise ConfigError("branch() knows no learning rate: give lr, the present one")
    return float(optimizer.param_groups[0]["lr"])


def _refuse_while_watched(run: Run | None) -> None:
    """Raise where hooks would take the arms' steps for the run's own.

    Raises:
        ConfigError: While the run watches.
    """
    if run is not None and run.is_watching:
        raise ConfigError("branch() would be logged as steps of the run: call run.unwatch() before, watch() after it")


def _price(run: Run | None) -> float | None:
    if run is None or run.description.usd_per_device_hour is None:
        return None
    return run.description.usd_per_device_hour * run.description.num_devices


def _stored(result: BranchResult, run: Run | None, seed: int, optimizer: str | None) -> BranchResult:
    if run is None or run.config.mode != "online":
        return replace(result, not_stored="there is no run that is sent to a server")
    if run.config.rank != 0:
        return replace(result, not_stored="rank 0 stores")
    named = run.description
    labels = BranchLabels(named.project, named.task, run.id, named.unit, optimizer)
    sweep_id, problem = store(run.config, labels, seed=seed, result=result)
    return replace(result, sweep_id=sweep_id, not_stored=problem)
