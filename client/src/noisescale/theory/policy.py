"""Batch size and learning rate for a run that is under way: what to do next, and why.

One policy, measured against others on real tasks in `docs/policies.md`. Its parts, each of which may be switched off:

1. *Guard.* A run that is no longer finite, or whose loss stands above where it began, starts again at a lower rate.
2. *Follow.* The batch goes towards √(r φ) (McCandlish et al. 2018, arXiv:1812.06162, appendix D), r the examples that
   one would spend to save a step and φ the noise scale: to the middle, on the log scale, between that and the nearer
   end of its interval. The rate follows by the optimizer's rule when the batch shrinks, and by no more than the square
   root of the batch when it grows. It is computed from the last rate that was tested, as a rule that is applied to its
   own results ratchets.
3. *Branch.* Arms at half, once and twice the rate, from a checkpoint and on the same examples, judged by the held-out
   loss of weights averaged over their last half: averaging takes away the passing gain of a smaller rate.

A policy keeps a `Memory` between decisions and is otherwise a pure function, so that a job and a server decide alike.
"""

import math
from dataclasses import dataclass, replace

from noisescale.estimators.uncertainty import NoiseScaleEstimate
from noisescale.theory.domain import require_positive
from noisescale.theory.learning_rate import Family, family_of, gain


@dataclass(frozen=True, slots=True)
class Arm:
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
        planned_steps: Steps that the whole plan would last at the present batch size.
        exchange_rate: r, examples that one would spend to save one step.
        optimizer: Class name of the optimizer.
        batch: Present batch size, examples.
        learning_rate: Present base learning rate, before the schedule's decay.
        decay: Share of the base learning rate that the schedule leaves now.
        first_loss: Mean training loss until the first look after a start.
        first_loss_error: Its standard error; infinite if unknown.
        loss: Mean training loss since the last look; not finite after divergence.
        loss_error: Its standard error; infinite if unknown.
        noise_scale: Over the latest window.
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
    before_loss: float | None = None
    arms: tuple[Arm, ...] = ()

    def __post_init__(self) -> None:
        require_positive(
            "give what the run has now, and the price of a step in examples",
            exchange_rate=self.exchange_rate,
            batch=self.batch,
            learning_rate=self.learning_rate,
        )


@dataclass(frozen=True, slots=True)
class Train:
    """Train on with these settings; `noise_scale` is the one in examples that a change rests on."""

    batch: int
    learning_rate: float
    reason: str = ""
    noise_scale: float | None = None


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


Action = Train | Restart | Branch | Adopt


@dataclass(frozen=True, slots=True)
class Settings:
    """What the policy may do, and its thresholds; the defaults are what was measured.

    Attributes:
        may_restart: Whether a failed run may start again.
        may_change_batch: Whether the batch may follow the noise scale.
        may_branch: Whether arms may be trained; only they find a learning rate that was wrong from the start.
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
        wait_after_change: The next test comes when the progress has grown by this factor; after a batch change too.
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
    least_arm_steps: int = 3
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
    held_out_share: float = 0.5


@dataclass(frozen=True, slots=True)
class Memory:
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
    """

    anchor_batch: int
    anchor_rate: float
    next_branch: float
    guarded_from: float
    restarts: int = 0
    last_branch: float = 0.0
    lowest_loss: float = math.inf
    lowest_error: float = 0.0

    @classmethod
    def at_start(cls, *, batch: int, learning_rate: float, settings: Settings) -> "Memory":
        """Before the first decision."""
        return cls(batch, learning_rate, settings.first_branch, settings.guard_from)


def advise(run: RunState, memory: Memory, settings: Settings) -> tuple[Action, Memory]:
    """The next action and what to remember for the decision after it."""
    if run.arms:
        return _judge(run, memory, settings)
    if settings.may_restart and memory.restarts < settings.most_restarts and (why := _failure(run, memory)):
        return _restart(run, memory, settings, why)
    memory, is_rising = _watched(run, memory, settings)
    if settings.may_change_batch and (change := _followed(run, memory, settings)):
        due = max(settings.first_branch, run.progress * settings.wait_after_change)
        return change, replace(memory, next_branch=min(memory.next_branch, due))
    is_due = is_rising or memory.next_branch <= run.progress
    if settings.may_branch and is_due and run.progress < settings.last_branch and run.steps > 1:
        return _branch(run, settings), memory
    return Train(run.batch, run.learning_rate, "nothing to change"), memory


def _failure(run: RunState, memory: Memory) -> str:
    """Why the run has failed; empty if it has not."""
    if not math.isfinite(run.loss):
        return "the loss is not finite"
    error = math.hypot(run.loss_error, run.first_loss_error)
    if run.progress >= memory.guarded_from and run.loss - run.first_loss > 2 * error:
        return f"the loss, {run.loss:.4g}, stands above the {run.first_loss:.4g} that it began at"
    return ""


def _watched(run: RunState, memory: Memory, settings: Settings) -> tuple[Memory, bool]:
    """The memory with the loss of this look, and whether the loss rises so that a test should not wait."""
    if run.loss < memory.lowest_loss:
        return replace(memory, lowest_loss=run.loss, lowest_error=run.loss_error), False
    rise = run.loss - memory.lowest_loss
    has_waited = run.progress >= max(settings.first_branch, memory.last_branch * settings.wait_while_rising)
    return memory, has_waited and rise > settings.rise_errors * math.hypot(run.loss_error, memory.lowest_error)


def _restart(run: RunState, memory: Memory, settings: Settings, why: str) -> tuple[Action, Memory]:
    factor = 0.5 if math.isfinite(run.loss) else settings.divergence_factor
    rate = run.learning_rate * factor
    remembered = replace(
        memory,
        anchor_batch=run.batch,
        anchor_rate=rate,
        next_branch=run.progress * 1.1 + settings.first_branch,
        guarded_from=run.progress + settings.guard_from,
        restarts=memory.restarts + 1,
        lowest_loss=math.inf,
    )
    return Restart(run.batch, rate, f"{why}: from the start at {factor:g} × the learning rate"), remembered


def _followed(run: RunState, memory: Memory, settings: Settings) -> Train | None:
    """The change of batch size that the noise scale asks for, if it is worth one."""
    found = _wanted(run, settings)
    if found is None:
        return None
    wanted, phi = found
    # the first windows of a run that diverges show any noise scale
    wanted = min(wanted, run.batch * settings.largest_growth)
    if max(wanted / run.batch, run.batch / wanted) < settings.hysteresis:
        return None
    batch = max(2, round(wanted))
    rate = memory.anchor_rate * rate_factor(run, memory, batch, phi)
    reason = f"√(r φ) with φ about {phi:.3g} and r {run.exchange_rate:.3g}: batch {run.batch} to {batch}"
    return Train(batch, rate, reason, phi)


def _wanted(run: RunState, settings: Settings) -> tuple[float, float] | None:
    """The batch to go to, and the noise scale behind it; None while nothing is known."""
    scale, price = run.noise_scale, run.exchange_rate
    if scale.value is None:
        raw = _clear_ratio(scale, run.batch / settings.clear_at)
        if raw is not None:
            wanted = math.sqrt(price * raw)
            return (wanted, raw) if wanted * settings.clear_shrink <= run.batch else None
        # only a lower bound is known, and it is sure: a batch below it is too small
        if scale.low is None or math.sqrt(price * scale.low) <= run.batch:
            return None
        return math.sqrt(price * scale.low), scale.low
    low = math.sqrt(price * (scale.low or 0.0))
    high = math.sqrt(price * scale.high) if scale.high else math.inf
    sure = min(max(run.batch, low), high)
    return math.sqrt(sure * math.sqrt(price * scale.value)), scale.value


def _clear_ratio(scale: NoiseScaleEstimate, bound: float) -> float | None:
    """Ratio tr Σ / |G|² of the few steps so far, where it is far below the batch size."""
    trace, square = scale.trace_cov, scale.grad_sq_norm
    if trace is None or square is None or not (trace > 0 and square > 0):
        return None
    return trace / square if trace / square < bound else None


def rate_factor(run: RunState, memory: Memory, batch: int, phi: float) -> float:
    """On the anchor's rate: the optimizer's rule downwards, at most the square root of the batch upwards.

    Args:
        run: Its optimizer.
        memory: The anchor.
        batch: To train with, examples; another than `advise` says where that one cannot be run.
        phi: Noise scale in examples.
    """
    ratio = gain(from_batch=memory.anchor_batch, to_batch=batch, noise_scale=phi)
    is_sgd = family_of(run.optimizer) is Family.SGD
    if ratio <= 1:
        return ratio if is_sgd else math.sqrt(ratio)
    return min(ratio, math.sqrt(batch / memory.anchor_batch)) if is_sgd else ratio**0.25


def _branch(run: RunState, settings: Settings) -> Branch:
    steps = max(settings.least_arm_steps, round(settings.arm_share * run.progress * run.planned_steps))
    affordable = int(settings.held_out_share * steps * (run.exchange_rate + run.batch))
    arms = tuple((run.batch, run.learning_rate * factor) for factor in (1.0, 0.5, 2.0))
    held_out = min(settings.largest_held_out, max(32, affordable))
    return Branch(arms, steps, held_out, f"half, once and twice the learning rate for {steps} steps each")


def _judge(run: RunState, memory: Memory, settings: Settings) -> tuple[Action, Memory]:
    """The arm to go on from.

    Raises:
        ValueError: Without the held-out loss before the arms.
    """
    if run.before_loss is None:
        raise ValueError("before_loss must be given with arms, got None: evaluate the averaged weights before a test")
    chosen = _best_arm(run, run.before_loss, settings)
    arm = run.arms[chosen]
    wait = settings.wait_after_change if chosen else settings.wait_after_stay
    remembered = replace(
        memory,
        anchor_batch=arm.batch,
        anchor_rate=arm.learning_rate,
        next_branch=run.progress * wait,
        last_branch=run.progress,
        lowest_loss=math.inf,
    )
    factor = arm.learning_rate / run.arms[0].learning_rate
    reason = f"held-out loss {arm.held_out_loss:.4g} at {factor:g} ×, {run.arms[0].held_out_loss:.4g} at 1 ×"
    return Adopt(chosen, arm.batch, arm.learning_rate, reason), remembered


def _best_arm(run: RunState, before: float, settings: Settings) -> int:
    """The doubled rate if it gains, else the halved one if it gains much, else the present one."""
    present = run.arms[0]
    fall = abs(before - present.held_out_loss)
    for index, arm in sorted(enumerate(run.arms), key=lambda pair: -pair[1].learning_rate):
        gained = present.held_out_loss - arm.held_out_loss
        if index == 0 or not math.isfinite(arm.held_out_loss):
            continue
        if not math.isfinite(present.held_out_loss):
            return index
        if arm.learning_rate > present.learning_rate:
            if gained > max(settings.up_margin * fall, settings.up_errors * arm.difference_error):
                return index
        elif gained > max(
            settings.down_margin * fall,
            settings.down_errors * arm.difference_error,
            min(settings.least_down_of_fall * (run.first_loss - before), settings.least_down_of_loss * before),
        ):
            return index
    return 0
