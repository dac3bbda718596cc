"""`noisescale.learning_rate_range`: between which learning rates a training learns from here, by one short ramp.

The rate grows from step to step by one factor over many decades while the loss is watched: Smith 2017,
arXiv:1506.01186, section 3.3. Departure: every batch is also looked at with the rate 0, and the loss of the ramp is
compared with that of the same batch at the start. What makes one batch harder than another goes with the difference.
"""

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noisescale.guard import announce
from noisescale.run import active_run
from noisescale.run.run import Run
from noisescale_core.errors import ConfigError
from noisescale_lab import branch as package
from noisescale_lab.branch.comparison import rate_now, set_rates
from noisescale_lab.branch.random_states import RandomStates

if TYPE_CHECKING:
    import torch

    from noisescale_lab.branch.torch_snapshot import Stateful

TrainStep = Callable[[int], object]
"""`train_step(number)`: one optimizer step on the batch of this number; returns its loss before the step, a number or a
tensor of one."""

LEAST_STEPS = 20
KEPT = 0.8
"""Of the smoothed difference at each step: it lags some four steps behind."""
BEGINS = 0.1
"""Of the deepest fall, at the lower end of the range."""
LOST_AGAIN = 0.2
"""Of the deepest fall, at the upper end."""
LEAST_FALL = 0.01
"""Of the loss at the start: a smaller fall says nothing."""
TOO_HIGH = 3.0
"""Losses at the start by which the ramp's may be higher: it ends there."""


@dataclass(frozen=True, slots=True)
class RateRange:
    """What a ramp over the learning rate found.

    Attributes:
        low: Smallest rate that lowers the loss clearly; None where none did.
        high: Largest rate before the loss rises again; None where none lowered it.
        steepest: Rate at which the loss falls fastest: where to begin.
        rates: Of the ramp, rising, until it ended.
        falls: Smoothed fall of the loss against the start on the same batch, at each rate.
        start_loss: Mean loss at the start.
        reached_the_end: The loss never rose again, so the range may go beyond `high`.
        seconds: That it took.
    """

    low: float | None
    high: float | None
    steepest: float | None
    rates: tuple[float, ...]
    falls: tuple[float, ...]
    start_loss: float
    reached_the_end: bool
    seconds: float

    def __str__(self) -> str:
        """Answer in one sentence."""
        if self.low is None or self.high is None or self.steepest is None:
            return (
                f"No learning rate from {self.rates[0]:.3g} to {self.rates[-1]:.3g} lowered the loss clearly: take "
                "more steps or a larger batch."
            )
        beyond = " and perhaps beyond" if self.reached_the_end else ""
        return (
            f"Learning rates from {self.low:.3g} to {self.high:.3g}{beyond} lower the loss from here; it falls fastest "
            f"at {self.steepest:.3g}. Everything is as it was before."
        )


def learning_rate_range(
    train_step: TrainStep,
    *,
    model: "torch.nn.Module",
    optimizer: "torch.optim.Optimizer",
    others: "Sequence[Stateful]" = (),
    lowest: float = 1e-7,
    highest: float = 10.0,
    num_steps: int = 200,
    keep_in: str | os.PathLike[str] | None = None,
    run: Run | None = None,
    progress: Callable[[str], None] = announce,
) -> RateRange:
    """Between which learning rates the training learns from its present state, which is put back bit for bit.

    Weights, buffers, gradients, modes, optimizer, `others` and the global random generators are as before; which
    batches a data loader has handed out is its own, so `train_step` takes its batch by number. Call it between two
    steps, without hooks of `watch()` and without the schedule of the rate. It takes twice `num_steps` steps.

    Args:
        train_step: `train_step(number)` makes one optimizer step on the batch of that number, the same whenever it is
            asked for, and returns the loss before the step.
        model: Put back afterwards.
        optimizer: Its groups' rates grow together, in their present ratios.
        others: Further objects with a state_dict: a GradScaler, a data loader.
        lowest: Rate of the first group at the first step.
        highest: At the last step.
        num_steps: Of the ramp.
        keep_in: File for the start state; None: in memory, on its devices.
        run: Refused while it watches; None: the active run, if there is one.
        progress: Is told the result.

    Returns:
        The range; errors of the training pass through, after everything was put back.

    Raises:
        ConfigError: For a wrong argument, while the run watches, or where the training sets the rate itself.
    """
    run = run or active_run.current()
    if run is not None and run.is_watching:
        raise ConfigError(
            "learning_rate_range() would be logged as steps of the run: call run.unwatch() before, watch() after it"
        )
    rates = _ramp(lowest, highest, num_steps)
    present = float(optimizer.param_groups[0]["lr"])
    if not present > 0:
        raise ConfigError(f"the optimizer's first learning rate must be positive, got {present:g}: set it before")
    start = time.perf_counter()
    random_states = RandomStates.now()
    saved = package.TorchSnapshot(model, optimizer, others, keep_in)

    def put_back() -> None:
        saved.restore()
        random_states.restore()

    try:
        at_start = [_step(train_step, number, 0.0, present, optimizer) for number in range(num_steps)]
        put_back()
        falls = _falls(train_step, rates, at_start, present, optimizer)
    finally:
        put_back()
        saved.forget()
    found = _range(rates, falls, sum(at_start) / len(at_start), time.perf_counter() - start)
    progress(f"learning rates: {found}")
    return found


def _ramp(lowest: float, highest: float, num_steps: int) -> list[float]:
    """Rates that grow by one factor.

    Raises:
        ConfigError: Unless there are steps and decades enough.
    """
    if not (0 < lowest < highest < math.inf):
        raise ConfigError(f"lowest must be positive and below highest, got {lowest:g} and {highest:g}")
    if num_steps < LEAST_STEPS:
        raise ConfigError(f"num_steps must be at least {LEAST_STEPS}, got {num_steps}: 100 to 200 are a start")
    return [lowest * (highest / lowest) ** (number / (num_steps - 1)) for number in range(num_steps)]


def _step(train_step: TrainStep, number: int, rate: float, present: float, optimizer: "torch.optim.Optimizer") -> float:
    """The loss of a batch before a step with this rate.

    Raises:
        ConfigError: Where the training sets the rate itself.
    """
    begun = [group["lr"] for group in optimizer.param_groups]
    set_rates(optimizer, rate / present)
    wanted = rate_now(optimizer)
    loss = train_step(number)
    if rate_now(optimizer) != wanted:
        raise ConfigError("train_step changes the learning rate: leave the schedule out of it")
    for group, lr in zip(optimizer.param_groups, begun, strict=True):
        group["lr"] = lr
    return float(loss.detach() if hasattr(loss, "detach") else loss)  # type: ignore[arg-type]  # a number or a tensor


def _falls(
    train_step: TrainStep,
    rates: Sequence[float],
    at_start: Sequence[float],
    present: float,
    optimizer: "torch.optim.Optimizer",
) -> list[float]:
    """The smoothed fall at each rate, until the loss is not finite or far above the start's."""
    mean, weight, total = sum(at_start) / len(at_start), 0.0, 0.0
    found: list[float] = []
    for number, rate in enumerate(rates):
        loss = _step(train_step, number, rate, present, optimizer)
        if not math.isfinite(loss):
            break
        total = KEPT * total + (1 - KEPT) * (at_start[number] - loss)
        weight = KEPT * weight + (1 - KEPT)
        found.append(total / weight)
        if found[-1] < -TOO_HIGH * abs(mean):
            break
    return found


def _range(rates: Sequence[float], falls: Sequence[float], start_loss: float, seconds: float) -> RateRange:
    """Both ends, from the deepest fall outwards."""
    used = tuple(rates[: max(len(falls), 1)])
    deepest = max(range(len(falls)), key=lambda place: falls[place], default=0)
    if not falls or not falls[deepest] > LEAST_FALL * abs(start_loss):
        return RateRange(None, None, None, used, tuple(falls), start_loss, False, seconds)
    fall = falls[deepest]
    low = next((place + 1 for place in range(deepest, -1, -1) if falls[place] < BEGINS * fall), 0)
    after = (place for place in range(deepest, len(falls)) if falls[place] < (1 - LOST_AGAIN) * fall)
    above = next(after, None)
    # a loss that was no number ended the ramp: the rate before it is the last that can be taken
    reached_the_end = above is None and len(falls) == len(rates)
    high = (len(falls) if above is None else above) - 1
    steepest = max(range(low, deepest + 1), key=lambda place: falls[place] - falls[max(place - 1, 0)])
    return RateRange(rates[low], rates[high], rates[steepest], used, tuple(falls), start_loss, reached_the_end, seconds)
