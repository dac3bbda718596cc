"""What the first policy may do, its thresholds, and what it remembers between two decisions."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FirstPolicySettings:
    """What the policy may do, and its thresholds; the defaults are what was measured.

    Attributes:
        may_restart: Whether a failed run may start again.
        may_change_batch: Whether the batch may follow the noise scale.
        may_branch: Whether arms may be trained; only they find a learning rate that was wrong from the start.
        may_extend: Whether a run beyond its plan gets its rate back; off unless somebody says that it is to go on.
        tests_both_ways: Whether every test has a halved and a doubled arm, whatever the loss does.
        hysteresis: Batches closer than this factor to the present one are not worth a change.
        largest_growth: Factor by which the batch grows at most at once.
        clear_at: A batch so many times the raw ratio of the two terms may shrink before an interval is known: where
            the gradient stands so far above the noise, a few steps measure it.
        clear_shrink: But only if the batch is then too large by this factor.
        guard_from: Share of the plan after a start from which the guard looks at the loss.
        divergence_factor: On the learning rate of a run that was not finite; a rise of the loss halves it.
        most_restarts: So often at most.
        first_branch: Progress of the first test.
        last_branch: None begins later.
        arm_share: Length of each arm as a share of the steps so far.
        least_arm_steps: And at least so many.
        fall_errors: The loss falls if it is so many standard errors below that of the last test.
        wait_after_change: The next test comes when the progress has grown by this factor; after a batch change, after
            the end of a plan, and where the present rate's arm did not fall, too.
        wait_after_stay: The same after a test that changed nothing.
        wait_while_rising: The same where the training loss rises.
        rise_errors: It rises if it is so many standard errors above its lowest since the last test.
        up_margin: A doubled rate is taken if it gains this much more of the fall that the present one reached.
        down_margin: A halved one likewise.
        up_errors: And by so many standard errors.
        down_errors: A halved one by so many.
        least_down_of_fall: And by so much of what the run's loss has fallen altogether, or
        least_down_of_loss: by so much of the present loss: any smaller rate gains a little for a while.
        largest_held_out: Examples of the held-out evaluation at most.
        held_out_share: And their share of what an arm costs.
    """

    may_restart: bool = True
    may_change_batch: bool = True
    may_branch: bool = True
    may_extend: bool = False
    tests_both_ways: bool = False
    hysteresis: float = 1.5
    largest_growth: float = 4.0
    clear_at: float = 4.0
    clear_shrink: float = 6.0
    guard_from: float = 0.15
    divergence_factor: float = 0.25
    most_restarts: int = 4
    first_branch: float = 0.05
    last_branch: float = 4.0
    arm_share: float = 0.05
    least_arm_steps: int = 5
    fall_errors: float = 1.0
    wait_after_change: float = 1.3
    wait_after_stay: float = 3.0
    wait_while_rising: float = 1.2
    rise_errors: float = 2.0
    up_margin: float = 0.05
    down_margin: float = 0.75
    up_errors: float = 0.5
    down_errors: float = 1.0
    least_down_of_fall: float = 0.01
    least_down_of_loss: float = 0.02
    largest_held_out: int = 512
    held_out_share: float = 0.25


@dataclass(frozen=True, slots=True)
class FirstPolicyMemory:
    """What the policy remembers between two decisions.

    Attributes:
        anchor_batch: Batch size at which the learning rate was last tested, or given.
        anchor_rate: That learning rate.
        next_branch: Progress from which the next test is due.
        guarded_from: Progress from which the guard looks at the loss.
        restarts: So far.
        last_branch: Progress at the last one.
        lowest_loss: Lowest mean training loss of a look since the start or the last test.
        lowest_error: Its standard error.
        tested_loss: Mean training loss at the last test, or of the first look after a start; None before that.
        tested_error: Its standard error.
        is_doubted: The arm at the present rate did not fall in the last test, and half of it was no arm.
        is_extended: The run is beyond its plan and has its rate back.
        highest_rate: Highest rate, decay included, that the run has trained with since a lower one was chosen.
    """

    anchor_batch: int
    anchor_rate: float
    next_branch: float
    guarded_from: float
    restarts: int = 0
    last_branch: float = 0.0
    lowest_loss: float = math.inf
    lowest_error: float = 0.0
    tested_loss: float | None = None
    tested_error: float = 0.0
    is_doubted: bool = False
    is_extended: bool = False
    highest_rate: float = 0.0

    @classmethod
    def at_start(cls, *, batch: int, learning_rate: float, settings: FirstPolicySettings) -> "FirstPolicyMemory":
        """Before the first decision."""
        return cls(batch, learning_rate, settings.first_branch, settings.guard_from)
