"""What the policy may do, its thresholds, and what it remembers between two decisions."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """What the policy may do, and its thresholds; the defaults are what was measured.

    Attributes:
        may_restart: Whether a failed run may start again.
        may_change_batch: Whether the batch may change.
        may_change_rate: Whether the learning rate may change without the batch.
        may_undo: Whether weights and optimizer states may be put back; else no raise is put on probation.
        may_extend: Whether a run beyond its plan gets its rate back; off unless somebody says that it is to go on.
        most_without_undo: Factor by which a rate is raised at most at once where nothing can be undone.
        sure: Probability that another batch is cheaper, from which on it is taken.
        least_saving_of_smaller: Expected saving, as a share of the present cost, from which on a smaller one is: below
            the best batch examples are lost that no critical batch tells of (decision 43).
        largest_growth: Factor by which the batch grows at most at once.
        largest_shrink: Factor by which it shrinks at most at once.
        least_octaves: Of the rate from the best one; nearer ones stay.
        most_octaves: By which the rate moves at most at once.
        turned: Factor on that after each move which goes back from where the one before it went.
        least_turned: Octaves that are left at least.
        first_batch: Progress from which the batch may change.
        first_batch_steps: The same in steps, without a plan.
        first_move: Progress from which the rate may move, where its path tells something by then (`rate_lines.py`:
            momentum and Adam later).
        wait: The next move of the rate comes when the progress has grown by this factor.
        wait_after_undo: The same after a raise that was undone.
        probation: Progress that a raise is watched for beyond `wait` times what it was.
        probation_steps: Steps until the first look at a raise.
        least_raise: Factor of a raise that is put on probation.
        rise_of_gained: A loss rises if it is above that before the raise by so much of all that was gained, and
        rise_errors: by so many standard errors.
        ceiling: After an undone raise the rate stays below so many times the one before it.
        guard_from: Share of the plan after a start from which the guard looks at the loss.
        divergence_factor: On the learning rate of a run that was not finite; a rise of the loss halves it.
        most_restarts: So often at most.
    """

    may_restart: bool = True
    may_change_batch: bool = True
    may_change_rate: bool = True
    may_undo: bool = True
    may_extend: bool = False
    most_without_undo: float = math.sqrt(2)
    sure: float = 0.9
    least_saving_of_smaller: float = 0.2
    largest_growth: float = 4.0
    largest_shrink: float = 8.0
    least_octaves: float = 0.6
    most_octaves: float = 1.0
    turned: float = 0.5
    least_turned: float = 0.25
    first_batch: float = 0.01
    first_batch_steps: int = 50
    first_move: float = 0.03
    wait: float = 1.3
    wait_after_undo: float = 1.5
    probation: float = 0.03
    probation_steps: int = 8
    least_raise: float = 1.15
    rise_of_gained: float = 0.25
    rise_errors: float = 2.0
    ceiling: float = 1.1
    guard_from: float = 0.15
    divergence_factor: float = 0.25
    most_restarts: int = 4


@dataclass(frozen=True, slots=True)
class Probation:
    """A raise that may be undone.

    Attributes:
        batch: Before it, in examples.
        learning_rate: Base learning rate before it.
        loss: Mean training loss of the look before it.
        loss_error: Its standard error.
        gained: What the loss had fallen by then, since the start.
        until: Progress at which it is over.
    """

    batch: int
    learning_rate: float
    loss: float
    loss_error: float
    gained: float
    until: float


@dataclass(frozen=True, slots=True)
class Memory:
    """What the policy remembers between two decisions.

    Attributes:
        anchor_batch: Batch size at which the learning rate was last judged, or given.
        anchor_rate: That learning rate.
        guarded_from: Progress from which the guard looks at the loss.
        next_move: Progress from which the rate may move.
        most_octaves: By which it moves at most at once: less after each move that went back.
        last_octaves: By which it moved last; 0 before the first move, and after one that was undone.
        ceiling: Highest base learning rate that may be tried.
        probation: Of the last raise; None where none is on probation.
        restarts: So far.
        is_extended: The run is beyond its plan and has its rate back.
    """

    anchor_batch: int
    anchor_rate: float
    guarded_from: float
    next_move: float
    most_octaves: float = 1.0
    last_octaves: float = 0.0
    ceiling: float = math.inf
    probation: Probation | None = None
    restarts: int = 0
    is_extended: bool = False

    @classmethod
    def at_start(cls, *, batch: int, learning_rate: float, settings: Settings) -> "Memory":
        """Before the first decision."""
        return cls(batch, learning_rate, settings.guard_from, settings.first_move, settings.most_octaves)
