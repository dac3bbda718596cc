"""What a policy sees of a run, and what it may ask for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_core.advice.learning_rate.rate_coefficients import Schedule
from noisescale_core.estimators.looks import Look
from noisescale_core.estimators.path import Path
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate
from noisescale_core.theory.domain import require_positive
from noisescale_core.theory.prices import ExchangeRate, worth_examples


@dataclass(frozen=True, slots=True)
class BranchedArm:
    """What a branch from a checkpoint showed.

    Attributes:
        batch: Its batch size, examples.
        learning_rate: Its base learning rate.
        held_out_loss: Of the weights averaged over its last half, on held-out examples that all arms share; not finite
            where the arm diverged.
        difference_error: Standard error of its difference from the first arm's loss, example by example.
    """

    batch: int
    learning_rate: float
    held_out_loss: float
    difference_error: float = 0.0


@dataclass(frozen=True, slots=True)
class RunState:
    """A run at a moment when something may be decided; all of it is seen by whoever trains.

    Attributes:
        steps: Optimizer steps since the last start from fresh weights.
        progress: Cost spent over planned cost, abandoned work included; cost is r times steps plus examples.
        planned_steps: Steps that the whole plan would last at the present batch size; infinite without a plan.
        exchange_rate: r, examples that one would spend to save one step; costs and progress are counted with it.
        optimizer: Class name of the optimizer.
        batch: Present batch size, examples.
        learning_rate: Present base learning rate, before the schedule's decay.
        decay: Share of the base learning rate that the schedule leaves now.
        first_loss: Mean training loss until the first look after a start.
        first_loss_error: Its standard error; infinite if unknown.
        loss: Mean training loss since the last look; infinite after divergence, not a number where none is logged.
        loss_error: Its standard error; infinite if unknown.
        noise_scale: Over the latest window.
        looks: Of all steps since the last start, oldest first.
        momentum: Of SGD; what others have does not count.
        path: Of the same steps, as if all had been made with the present batch and base learning rate; None where it
            is not measured.
        promise: ln of the share that has come of the fall that the updates promised (`walk.py`); None where it
            is not known.
        schedule: Of the learning rate.
        stated_price: What a step is worth, where that is more than a number; a preference moves with B_crit.
        before_loss: Held-out loss before the arms, of weights averaged as theirs are; None without arms.
        arms: Results of the test that was asked for last; empty otherwise.
    """

    steps: int
    progress: float
    planned_steps: float
    exchange_rate: float
    optimizer: str
    batch: int
    learning_rate: float
    decay: float
    first_loss: float
    first_loss_error: float
    loss: float
    loss_error: float
    noise_scale: NoiseScaleEstimate
    looks: Sequence[Look] = ()
    momentum: float = 0.0
    path: Path | None = None
    promise: float | None = None
    schedule: Schedule = "unknown"
    stated_price: ExchangeRate | None = None
    before_loss: float | None = None
    arms: tuple[BranchedArm, ...] = ()

    @property
    def price(self) -> ExchangeRate:
        """What a step is worth."""
        return self.stated_price or worth_examples(self.exchange_rate)

    @property
    def has_plan(self) -> bool:
        """Whether anybody has said how long the run is to be."""
        return self.planned_steps < math.inf

    def __post_init__(self) -> None:
        require_positive(
            "give what the run has now, and the price of a step in examples",
            exchange_rate=self.exchange_rate,
            batch=self.batch,
            learning_rate=self.learning_rate,
        )


@dataclass(frozen=True, slots=True)
class Train:
    """Train on with these settings.

    Attributes:
        batch: In examples.
        learning_rate: Base learning rate.
        reason: In words.
        noise_scale: In examples, that a change rests on.
        critical_batch: B_crit in examples, the same.
        is_on_probation: Whether it may be undone: weights and optimizer states of now are to be kept.
        look_after: Steps until the next look; None: as usual.
    """

    batch: int
    learning_rate: float
    reason: str = ""
    noise_scale: float | None = None
    critical_batch: float | None = None
    is_on_probation: bool = False
    look_after: int | None = None


@dataclass(frozen=True, slots=True)
class Undo:
    """Back to the weights and optimizer states that were kept last, with these settings."""

    batch: int
    learning_rate: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Restart:
    """Back to fresh weights with these settings."""

    batch: int
    learning_rate: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Branch:
    """Train arms from here and come back with what they showed.

    Attributes:
        arms: (batch, base learning rate) of each; the first is the present setting.
        steps: Of each arm.
        held_out: Examples to evaluate each arm, and the weights before, on.
        reason: In words.
    """

    arms: tuple[tuple[int, float], ...]
    steps: int
    held_out: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Adopt:
    """Train on from the end of an arm with these settings."""

    arm: int
    batch: int
    learning_rate: float
    reason: str = ""


Action = Train | Undo | Restart | Branch | Adopt
