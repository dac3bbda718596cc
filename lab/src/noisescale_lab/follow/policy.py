"""Batch size and learning rate for a run that is under way: what to do next, and why.

One policy, measured against others on real tasks in `docs/policies.md`. Its parts, each of which may be switched off:

1. *Guard.* A run that is no longer finite, or whose loss stands above where it began, starts again at a lower rate; so
   does one whose loss has not fallen where the path says that its rate is too high.
2. *Batch.* It goes to the batch of least expected cost where that is cheaper with odds of 9 in 10
   (`theory/expected_cost.py`) and, of a smaller one, saves a fifth, by a factor of 4 up or 8 down at once. The rate
   follows by the optimizer's rule when the batch shrinks, and by no more than the square root of the batch when it
   grows; for Adam by the fourth root of the gain. It is computed from the last rate that was judged, as a rule that is
   applied to its own results ratchets.
3. *Rate.* The path of the parameters says how far the rate is from the best one (`rate_lines.py`), from a share of the
   plan on that differs by family. It moves there, an octave at most at once, and half as far after each move that
   went back from where the one before it went.
4. *Probation.* A raise is undone, weights and optimizer states with it, where the loss rises after it. Where nothing
   can be undone no rate is raised by more than √2 at once.
5. *Extend.* A run that goes on beyond its plan trains with what its schedule has left of the rate. It gets back what
   the schedule took (a warm restart: Loshchilov & Hutter 2017, arXiv:1608.03983).

A policy keeps a `Memory` between decisions and is otherwise a pure function, so that all ranks of a job, and a replay,
decide alike.
"""

import math
from dataclasses import dataclass, replace

from noisescale_core.advice.decision import LEAST_FACTOR, LEAST_SAVING
from noisescale_core.advice.evidence.critical_belief import critical_of, near
from noisescale_core.advice.evidence.kappa import UNCALIBRATED
from noisescale_core.advice.learning_rate.rate_verdict import Octaves
from noisescale_core.advice.limited import round_batch
from noisescale_core.advice.parts.known_noise_scale import known_noise_scale
from noisescale_core.theory.expected_cost import least_expected_cost, stake
from noisescale_core.theory.learning_rate import RuleFamily, averages_gradients, family_of, gain
from noisescale_lab.follow.actions import Action, Restart, RunState, Train, Undo
from noisescale_lab.follow.memory import Memory, Probation, Settings
from noisescale_lab.follow.rate_lines import octaves_from_best

LEAST_PROGRESS = 1e-3
"""κ's course is flat long before."""

Found = tuple[Action, Memory]


# What a run's measurements say of its batch, with odds: as the product's advice says it (`docs/deciding.md`).


@dataclass(frozen=True, slots=True)
class BatchOdds:
    """A batch against the present one.

    Attributes:
        batch: In examples; the present one where it is the cheapest.
        probability: That it is cheaper.
        saving: Expected saving, as a share of the present cost.
        critical_batch: Median of B_crit, in examples.
        noise_scale: Median of φ, in examples.
        is_worth_it: A change of this size with this saving is worth the trouble.
    """

    batch: int
    probability: float
    saving: float
    critical_batch: float
    noise_scale: float
    is_worth_it: bool


def batch_odds(run: RunState, *, smallest: float, largest: float) -> BatchOdds | None:
    """The batch of least expected cost; None before 8 measured steps.

    Args:
        run: As it stands.
        smallest: Batch that may be asked for, in examples.
        largest: The same.
    """
    known = known_noise_scale(run.looks)
    if known is None:
        return None
    done = min(1.0, max(run.progress, LEAST_PROGRESS)) if run.has_plan else None
    critical = critical_of(
        known.belief,
        log_mean=UNCALIBRATED.log_mean_at(
            None if done is None else done * known.share,
            relative_rate=known.relative_rate,
            averages_gradients=averages_gradients(run.optimizer, run.momentum),
        ),
        odds_log_sd=UNCALIBRATED.odds_log_sd,
        shown_log_sd=UNCALIBRATED.odds_log_sd,
        usual=(near(run.batch),),
    )
    batch = round_batch(min(largest, max(smallest, least_expected_cost(critical.belief, run.price))))
    found = stake(critical.belief, run.price, now=run.batch, then=batch)
    return BatchOdds(
        batch=batch,
        probability=found.probability,
        saving=found.saving,
        critical_batch=critical.estimate.value,
        noise_scale=known.belief.quantile(0.5),
        is_worth_it=found.saving >= LEAST_SAVING and max(batch / run.batch, run.batch / batch) >= LEAST_FACTOR,
    )


def advise(run: RunState, memory: Memory, settings: Settings) -> Found:
    """The next action and what to remember for the decision after it."""
    if memory.probation is not None:
        if why := _rise(run, memory.probation, settings):
            return _undone(run, memory, memory.probation, settings, why)
        if run.progress >= memory.probation.until:
            memory = replace(memory, probation=None)
    if settings.may_restart and memory.restarts < settings.most_restarts and (why := _failure(run, memory, settings)):
        return _restart(run, memory, settings, why)
    if settings.may_extend and not memory.is_extended and run.progress >= 1 and 0 < run.decay < 1:
        return _extended(run, memory, settings)
    if memory.probation is not None:
        return Train(run.batch, run.learning_rate, "the last raise is on probation"), memory
    odds = _odds(run, settings) if settings.may_change_batch and _has_begun(run, settings) else None
    if odds is not None and _is_to_change(run, settings, odds):
        return _batch_change(run, memory, settings, odds)
    found = octaves_from_best(run) if settings.may_change_rate else None
    return _rate_change(run, memory, settings, found) or (_kept(run, odds, found), memory)


def _has_begun(run: RunState, settings: Settings) -> bool:
    """The noise scale of the first steps of a long run says nothing of the rest."""
    return run.progress >= settings.first_batch if run.has_plan else run.steps >= settings.first_batch_steps


def _odds(run: RunState, settings: Settings) -> BatchOdds | None:
    low, high = run.batch / settings.largest_shrink, run.batch * settings.largest_growth
    return batch_odds(run, smallest=low, largest=high)


def _is_to_change(run: RunState, settings: Settings, odds: BatchOdds) -> bool:
    is_enough = odds.batch > run.batch or odds.saving >= settings.least_saving_of_smaller
    return odds.is_worth_it and is_enough and odds.probability >= settings.sure


def _kept(run: RunState, odds: BatchOdds | None, found: Octaves | None) -> Train:
    """Keep everything as it is, and say in words what is known."""
    said = []
    if odds is not None:
        said.append(
            "no batch is cheaper for sure"
            if odds.batch == run.batch
            else f"batch {odds.batch:,} would be cheaper with odds of {odds.probability:.0%} and save {odds.saving:.0%}"
        )
    if found is not None:
        said.append(f"the learning rate is {_distance(found)} by the path of the parameters")
    return Train(run.batch, run.learning_rate, "; ".join(["nothing to change", *said]))


def _distance(found: Octaves) -> str:
    return f"about {2 ** abs(found.mean):.2g} × too {'low' if found.mean < 0 else 'high'}"


def _rise(run: RunState, before: Probation, settings: Settings) -> str:
    """Why a raise is to be undone; empty if it is not."""
    if run.loss == math.inf:
        return "the loss is not finite"
    errors = math.hypot(*(error for error in (run.loss_error, before.loss_error) if math.isfinite(error)))
    bar = max(settings.rise_errors * errors, settings.rise_of_gained * before.gained)
    if run.loss - before.loss > bar:
        return f"the loss rose from {before.loss:.4g} to {run.loss:.4g}"
    return ""


def _undone(run: RunState, memory: Memory, before: Probation, settings: Settings, why: str) -> Found:
    remembered = replace(
        memory,
        anchor_batch=before.batch,
        anchor_rate=before.learning_rate,
        ceiling=min(memory.ceiling, settings.ceiling * before.learning_rate),
        next_move=run.progress * settings.wait_after_undo,
        last_octaves=0.0,
        probation=None,
    )
    return Undo(before.batch, before.learning_rate, f"{why}: back to what was before the raise"), remembered


def _failure(run: RunState, memory: Memory, settings: Settings) -> str:
    """Why the run has failed; empty if it has not."""
    if run.loss == math.inf:
        return "the loss is not finite"
    error = math.hypot(run.loss_error, run.first_loss_error)
    if run.progress < memory.guarded_from:
        return ""
    if run.loss - run.first_loss > 2 * error:
        return f"the loss, {run.loss:.4g}, stands above the {run.first_loss:.4g} that it began at"
    if (
        run.first_loss - run.loss < 2 * error < math.inf
        and (found := octaves_from_best(run))
        and found.mean > settings.least_octaves
    ):
        return f"the loss, {run.loss:.4g}, has not fallen at a learning rate that is too high"
    return ""


def _restart(run: RunState, memory: Memory, settings: Settings, why: str) -> Found:
    factor = 0.5 if math.isfinite(run.loss) else settings.divergence_factor
    rate = run.learning_rate * factor
    remembered = replace(
        memory,
        anchor_batch=run.batch,
        anchor_rate=rate,
        guarded_from=run.progress + settings.guard_from,
        next_move=run.progress + settings.first_move,
        last_octaves=0.0,
        ceiling=min(memory.ceiling, run.learning_rate / math.sqrt(2)),
        probation=None,
        restarts=memory.restarts + 1,
    )
    return Restart(run.batch, rate, f"{why}: from the start at {factor:g} × the learning rate"), remembered


def _extended(run: RunState, memory: Memory, settings: Settings) -> Found:
    """The rate without the decay."""
    factor = 1 / run.decay
    reason = f"the plan is over: {factor:.3g} × the learning rate makes up for its decay"
    remembered = replace(memory, is_extended=True)
    return _changed(run, remembered, settings, Train(run.batch, run.learning_rate * factor, reason))


def _batch_change(run: RunState, memory: Memory, settings: Settings, odds: BatchOdds) -> Found:
    rate = memory.anchor_rate * rate_factor(run, memory, odds.batch, odds.critical_batch)
    reason = (
        f"batch {run.batch:,} to {odds.batch:,}, cheaper with odds of {odds.probability:.0%} and {odds.saving:.0%} "
        f"less cost: critical batch about {odds.critical_batch:.3g}, a step worth "
        f"{run.price.at(odds.critical_batch):.3g} examples"
    )
    waiting = replace(memory, next_move=max(memory.next_move, run.progress * settings.wait))
    return _changed(run, waiting, settings, Train(odds.batch, rate, reason, odds.noise_scale, odds.critical_batch))


def rate_factor(run: RunState, memory: Memory, batch: int, critical_batch: float) -> float:
    """On the anchor's rate: the optimizer's rule downwards, at most the square root of the batch upwards.

    Args:
        run: Its optimizer.
        memory: The anchor.
        batch: To train with, examples; another than `advise` says where that one cannot be run.
        critical_batch: B_crit in examples.
    """
    ratio = gain(from_batch=memory.anchor_batch, to_batch=batch, noise_scale=critical_batch)
    is_sgd = family_of(run.optimizer) is RuleFamily.SGD
    if ratio <= 1:
        return ratio if is_sgd else math.sqrt(ratio)
    return min(ratio, math.sqrt(batch / memory.anchor_batch)) if is_sgd else ratio**0.25


def _rate_change(run: RunState, memory: Memory, settings: Settings, found: Octaves | None) -> Found | None:
    """The move of the rate that its path asks for; None where it asks for none."""
    if found is None or run.progress < memory.next_move or abs(found.mean) <= settings.least_octaves:
        return None
    most = memory.most_octaves
    if memory.last_octaves * -found.mean < 0:
        # either move may have gone too far: the best rate lies between
        most = min(most, max(settings.least_turned, settings.turned * most))
    octaves = max(-most, min(most, -found.mean))
    rate = min(run.learning_rate * 2**octaves, memory.ceiling)
    if abs(math.log2(rate / run.learning_rate)) < math.log2(settings.least_raise):
        return None
    reason = f"the learning rate is {_distance(found)} by the path of the parameters"
    waiting = replace(
        memory,
        anchor_batch=run.batch,
        anchor_rate=rate,
        next_move=run.progress * settings.wait,
        most_octaves=most,
        last_octaves=octaves,
    )
    return _changed(run, waiting, settings, Train(run.batch, rate, reason))


def _changed(run: RunState, memory: Memory, settings: Settings, change: Train) -> Found:
    """The change, on probation where it raises the batch or the rate."""
    can_undo = settings.may_undo and math.isfinite(run.loss)
    most = memory.ceiling if can_undo else min(memory.ceiling, run.learning_rate * settings.most_without_undo)
    change = replace(change, learning_rate=min(change.learning_rate, most))
    raised = max(change.learning_rate / run.learning_rate, change.batch / run.batch)
    if not can_undo or raised <= settings.least_raise:
        return change, memory
    first = run.first_loss if math.isfinite(run.first_loss) else run.loss
    probation = Probation(
        batch=run.batch,
        learning_rate=run.learning_rate,
        loss=run.loss,
        loss_error=run.loss_error,
        gained=max(0.0, first - run.loss),
        until=run.progress * settings.wait + settings.probation,
    )
    watched = replace(change, is_on_probation=True, look_after=settings.probation_steps)
    return watched, replace(memory, probation=probation)


def unwatched(
    memory: Memory, settings: Settings, *, from_rate: float, to_rate: float, is_of_batch: bool
) -> tuple[float, Memory]:
    """Rate and memory of a raise on probation of which no copy of the weights could be made: nothing can undo it.

    Args:
        memory: That the raise was asked with.
        settings: How far a rate rises at once where nothing can be undone.
        from_rate: Learning rate before it.
        to_rate: That was asked for.
        is_of_batch: The batch rises, and the rate only goes along: it is judged at the old batch still.
    """
    rate = min(to_rate, from_rate * settings.most_without_undo)
    anchor_rate = memory.anchor_rate if is_of_batch else rate
    return rate, replace(memory, anchor_rate=anchor_rate, probation=None)
