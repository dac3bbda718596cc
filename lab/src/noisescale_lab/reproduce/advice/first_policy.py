"""The first policy of `noisescale.follow`, kept as what its successor is compared with.

One policy, measured against others on real tasks in `docs/policies.md`. Its parts, each of which may be switched off:

1. *Guard.* A run that is no longer finite, or whose loss stands above where it began, starts again at a lower rate.
2. *Follow.* The batch goes towards √(r φ) (McCandlish et al. 2018, arXiv:1812.06162, appendix D), r the examples that
   one would spend to save a step and φ the noise scale: to the middle, on the log scale, between that and the nearer
   end of its interval. The rate follows by the optimizer's rule when the batch shrinks, and by no more than the square
   root of the batch when it grows. It is computed from the last rate that was tested, as a rule that is applied to its
   own results ratchets.
3. *Branch.* Two arms from a checkpoint on the same examples, one of them the present rate: against twice the rate while
   the loss falls, against half of it where it does not. They are judged by the held-out loss of weights averaged over
   their last half: averaging takes away the passing gain of a smaller rate.
4. *Extend.* A run that goes on beyond its plan trains with what its schedule has left of the rate. It gets back what
   the schedule took (a warm restart: Loshchilov & Hutter 2017, arXiv:1608.03983).

A policy keeps a `FirstPolicyMemory` between decisions and is otherwise a pure function, so that a job and a server
decide alike.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from noisescale_core.errors import DomainError
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate
from noisescale_core.theory.learning_rate import RuleFamily, family_of, gain
from noisescale_lab.follow.actions import Action, Adopt, Branch, Restart, RunState, Train
from noisescale_lab.reproduce.advice.first_policy_memory import FirstPolicyMemory, FirstPolicySettings
from noisescale_lab.reproduce.advice.run import Policy


def advise(run: RunState, memory: FirstPolicyMemory, settings: FirstPolicySettings) -> tuple[Action, FirstPolicyMemory]:
    """The next action and what to remember for the decision after it."""
    memory = replace(memory, highest_rate=max(memory.highest_rate, run.learning_rate * run.decay))
    if run.arms:
        return _judge(run, memory, settings)
    if settings.may_restart and memory.restarts < settings.most_restarts and (why := _failure(run, memory)):
        return _restart(run, memory, settings, why)
    memory, is_rising = _watched(run, memory, settings)
    if settings.may_extend and not memory.is_extended and run.progress >= 1 and 0 < run.decay < 1:
        return _extended(run, memory, settings)
    if settings.may_change_batch and (change := _followed(run, memory, settings)):
        due = max(settings.first_branch, run.progress * settings.wait_after_change)
        highest = memory.highest_rate * change.learning_rate / run.learning_rate
        return change, replace(memory, next_branch=min(memory.next_branch, due), highest_rate=highest)
    is_due = is_rising or memory.next_branch <= run.progress
    if settings.may_branch and is_due and run.progress < settings.last_branch and run.steps > 1:
        return _branch(run, memory, settings, is_rising=is_rising), memory
    return Train(run.batch, run.learning_rate, "nothing to change"), memory


def _failure(run: RunState, memory: FirstPolicyMemory) -> str:
    """Why the run has failed; empty if it has not."""
    if not math.isfinite(run.loss):
        return "the loss is not finite"
    error = math.hypot(run.loss_error, run.first_loss_error)
    if run.progress >= memory.guarded_from and run.loss - run.first_loss > 2 * error:
        return f"the loss, {run.loss:.4g}, stands above the {run.first_loss:.4g} that it began at"
    return ""


def _watched(run: RunState, memory: FirstPolicyMemory, settings: FirstPolicySettings) -> tuple[FirstPolicyMemory, bool]:
    """The memory with the loss of this look, and whether the loss rises so that a test should not wait."""
    if memory.tested_loss is None and math.isfinite(run.first_loss):
        memory = replace(memory, tested_loss=run.first_loss, tested_error=run.first_loss_error)
    if run.loss < memory.lowest_loss:
        return replace(memory, lowest_loss=run.loss, lowest_error=run.loss_error), False
    rise = run.loss - memory.lowest_loss
    has_waited = run.progress >= max(settings.first_branch, memory.last_branch * settings.wait_while_rising)
    return memory, has_waited and rise > settings.rise_errors * math.hypot(run.loss_error, memory.lowest_error)


def _restart(
    run: RunState, memory: FirstPolicyMemory, settings: FirstPolicySettings, why: str
) -> tuple[Action, FirstPolicyMemory]:
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
        tested_loss=None,
        is_doubted=False,
        highest_rate=0.0,
    )
    return Restart(run.batch, rate, f"{why}: from the start at {factor:g} × the learning rate"), remembered


def _followed(run: RunState, memory: FirstPolicyMemory, settings: FirstPolicySettings) -> Train | None:
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


def _wanted(run: RunState, settings: FirstPolicySettings) -> tuple[float, float] | None:
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


def rate_factor(run: RunState, memory: FirstPolicyMemory, batch: int, phi: float) -> float:
    """On the anchor's rate: the optimizer's rule downwards, at most the square root of the batch upwards.

    Args:
        run: Its optimizer.
        memory: The anchor.
        batch: To train with, examples; another than `advise` says where that one cannot be run.
        phi: Noise scale in examples.
    """
    ratio = gain(from_batch=memory.anchor_batch, to_batch=batch, noise_scale=phi)
    is_sgd = family_of(run.optimizer) is RuleFamily.SGD
    if ratio <= 1:
        return ratio if is_sgd else math.sqrt(ratio)
    return min(ratio, math.sqrt(batch / memory.anchor_batch)) if is_sgd else ratio**0.25


def _extended(
    run: RunState, memory: FirstPolicyMemory, settings: FirstPolicySettings
) -> tuple[Action, FirstPolicyMemory]:
    """The rate without the decay, but none that the run has not borne: tests of a decayed rate promise no more."""
    factor = min(1 / run.decay, memory.highest_rate / (run.learning_rate * run.decay))
    remembered = replace(
        memory,
        anchor_rate=memory.anchor_rate * factor,
        next_branch=run.progress * settings.wait_after_change,
        lowest_loss=math.inf,
        tested_loss=run.loss,
        tested_error=run.loss_error,
        is_extended=True,
    )
    reason = f"the plan is over: {factor:.3g} × the learning rate makes up for its decay"
    return Train(run.batch, run.learning_rate * factor, reason), remembered


def _branch(run: RunState, memory: FirstPolicyMemory, settings: FirstPolicySettings, *, is_rising: bool) -> Branch:
    steps = max(settings.least_arm_steps, round(settings.arm_share * run.progress * run.planned_steps))
    affordable = int(settings.held_out_share * steps * (run.exchange_rate + run.batch))
    goes_down = is_rising or memory.is_doubted or not _falls(run, memory, settings)
    others = (0.5, 2.0) if settings.tests_both_ways else (0.5,) if goes_down else (2.0,)
    factors = (1.0, *others)
    tried = " and ".join(f"{factor:g} ×" for factor in sorted(factors))
    arms = tuple((run.batch, run.learning_rate * factor) for factor in factors)
    held_out = min(settings.largest_held_out, max(32, affordable))
    return Branch(arms, steps, held_out, f"{tried} the learning rate, for {steps} steps each")


def _falls(run: RunState, memory: FirstPolicyMemory, settings: FirstPolicySettings) -> bool:
    """Whether the training loss has fallen since the last test; an error that is not known counts as none."""
    if memory.tested_loss is None:
        return True
    errors = [error for error in (run.loss_error, memory.tested_error) if math.isfinite(error)]
    return memory.tested_loss - run.loss > settings.fall_errors * math.hypot(*errors)


def _judge(run: RunState, memory: FirstPolicyMemory, settings: FirstPolicySettings) -> tuple[Action, FirstPolicyMemory]:
    """The arm to go on from.

    Raises:
        DomainError: Without the held-out loss before the arms.
    """
    if run.before_loss is None:
        raise DomainError("before_loss must be given with arms, got None: evaluate the averaged weights before a test")
    chosen = _best_arm(run, run.before_loss, settings)
    arm, present = run.arms[chosen], run.arms[0]
    tried_less = any(other.learning_rate < present.learning_rate for other in run.arms)
    is_doubted = not chosen and not tried_less and not present.held_out_loss < run.before_loss
    wait = settings.wait_after_change if chosen or is_doubted else settings.wait_after_stay
    remembered = replace(
        memory,
        anchor_batch=arm.batch,
        anchor_rate=arm.learning_rate,
        next_branch=run.progress * wait,
        last_branch=run.progress,
        lowest_loss=math.inf,
        tested_loss=run.loss,
        tested_error=run.loss_error,
        is_doubted=is_doubted,
        highest_rate=arm.learning_rate * run.decay
        if arm.learning_rate < present.learning_rate
        else memory.highest_rate,
    )
    factor = arm.learning_rate / present.learning_rate
    reason = f"held-out loss {arm.held_out_loss:.4g} at {factor:g} ×, {present.held_out_loss:.4g} at 1 ×"
    return Adopt(chosen, arm.batch, arm.learning_rate, reason), remembered


def _best_arm(run: RunState, before: float, settings: FirstPolicySettings) -> int:
    """The doubled rate if it gains, else the halved one if it gains much of what the present one fell, else that."""
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
            settings.down_margin * max(0.0, before - present.held_out_loss),
            settings.down_errors * arm.difference_error,
            min(settings.least_down_of_fall * (run.first_loss - before), settings.least_down_of_loss * before),
        ):
            return index
    return 0


# The first version of our policy, as what the present one is compared with.


@dataclass
class FirstVersion:
    """Keeps the memory that the pure policy asks for."""

    settings: FirstPolicySettings = field(default_factory=FirstPolicySettings)
    memory: FirstPolicyMemory | None = None
    rescues = True

    def decide(self, view: RunState) -> Action:
        """What to do next."""
        memory = self.memory or FirstPolicyMemory.at_start(
            batch=view.batch, learning_rate=view.learning_rate, settings=self.settings
        )
        action, self.memory = advise(view, memory, self.settings)
        return action


PERMITTED = FirstPolicySettings(may_extend=True)

FIRST: dict[str, Callable[[], Policy]] = {
    "first version": lambda: FirstVersion(PERMITTED),
    "first version without branches": lambda: FirstVersion(replace(PERMITTED, may_branch=False)),
}
