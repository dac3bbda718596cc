"""One look at a run under way: whether the policy would change something now, and if not, why.

Pure, so that it can be tested and replayed without a training. The mathematics is `noisescale_lab.follow.policy`; here
is what comes before it, such as the sums of the run since the last look, and after it, such as batches that cannot be
run.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from noisescale.window.standing import LossSums, Standing
from noisescale_core.estimators.looks import Look
from noisescale_core.estimators.path import Path, Promised
from noisescale_core.estimators.uncertainty import NOTHING_MEASURED
from noisescale_core.theory.learning_rate import RuleFamily, family_of
from noisescale_core.theory.prices import ExchangeRate
from noisescale_core.theory.temperature import informs_critical_batch
from noisescale_lab.follow.actions import RunState, Train, Undo
from noisescale_lab.follow.batches import PossibleBatches
from noisescale_lab.follow.books import Books, Decision, Seen
from noisescale_lab.follow.memory import Settings
from noisescale_lab.follow.policy import advise, rate_factor
from noisescale_lab.follow.rate_lines import first_share, octaves_from_best
from noisescale_lab.follow.walk import Span, Stretch, kept_promise, path_at

STEPS_BETWEEN_LOOKS = 0.12
"""As a share of the steps so far: the policy was measured with looks this far apart (`docs/policies.md`)."""

PLAN_BETWEEN_LOOKS = 0.02
"""And at least this share of the plan."""

LEAST_BETWEEN_LOOKS = 8
"""And at least so many steps: fewer say nothing of the noise scale."""

RISE = 1e-6
"""A learning rate rises if it is larger by this share: less is rounding."""

LEAST_OF_PATH = 0.5
"""Share of the steps that a path holds; one that began again lately tells of the rate as a young run's would."""

AFTER_WARM_UP = 2
"""Times the steps of the warm-up from which on a path may tell of the rate (by momentum and Adam later,
`rate_lines.py`): before, it is mostly that of smaller rates and says of every rate that it is too low. The replay
(`reproduce/advice/run.py`) uses it, too."""

NO_PATH = Path(0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a follower was told at the start.

    Attributes:
        optimizer: Class name.
        momentum: Of SGD, in its first group; 0 of others.
        first_batch: Batch size that the run began with, in examples.
        price: What a step is worth.
        planned_steps: Of the whole run at the first batch; None if unknown.
        settings: Of the policy.
        possible: Batches that can be run; None: the batch is not to change.
        is_dry_run: Nothing is to be changed.
    """

    optimizer: str
    first_batch: int
    price: ExchangeRate
    planned_steps: float | None
    settings: Settings
    possible: PossibleBatches | None
    is_dry_run: bool
    momentum: float = 0.0

    @property
    def examples_per_step(self) -> float:
        """R that costs and progress are counted with; the first batch where the price is relative to B_crit."""
        return self.price.examples_per_step or float(self.first_batch)

    def next_look(self, steps: int) -> int:
        """The step of the look after one at this step."""
        planned = PLAN_BETWEEN_LOOKS * (self.planned_steps or 0)
        return steps + max(LEAST_BETWEEN_LOOKS, round(planned), round(STEPS_BETWEEN_LOOKS * steps))

    def progress(self, steps: float, examples: float) -> float:
        """Share of the planned cost that is spent; 0 without a plan."""
        if self.planned_steps is None:
            return 0.0
        price = self.examples_per_step
        return (price * steps + examples) / (self.planned_steps * (price + self.first_batch))


@dataclass(frozen=True, slots=True)
class Sight:
    """What there is to see at a look.

    Attributes:
        steps: Optimizer steps so far.
        trained_batch: Batch that the job has trained with since the last look, in examples.
        trained_rate_factor: On the first learning rates, since then.
        scheduled_rate: Learning rate of the first group as scheduled, without the follower's factor.
        standing: The run's own sums.
    """

    steps: int
    trained_batch: int
    trained_rate_factor: float
    scheduled_rate: float
    standing: Standing


def look(books: Books, sight: Sight, plan: Plan) -> tuple[Books, Decision | None]:
    """The books after a look, and the change that it asks for."""
    seen = replace(settled(books, sight, plan), next_look=plan.next_look(sight.steps), num_looks=books.num_looks + 1)
    if sight.scheduled_rate > books.last_rate * (1 + RISE):
        why = "the learning rate rises: a warm-up is left alone"
        return replace(seen, risen_until=sight.steps, why=why), None
    if not informs_critical_batch(learning_rate=sight.scheduled_rate, peak_learning_rate=seen.highest_rate):
        share = sight.scheduled_rate / seen.highest_rate
        return replace(
            seen, why=f"the learning rate is down to {share:.2g} of its peak: nothing is changed there"
        ), None
    return _asked(seen, sight, plan)


def settled(books: Books, sight: Sight, plan: Plan) -> Books:
    """The books with what the steps since the last look, or the last change, have brought."""
    terms = _terms(sight.standing.looks)
    before = books.seen if terms.num_terms >= books.seen.num_terms else Seen()
    losses = sight.standing.losses
    since = books.seen.losses if losses.num_finite >= books.seen.losses.num_finite else LossSums()
    steps, num_terms = sight.steps - books.steps, terms.num_terms - before.num_terms
    means = None
    if num_terms > 0:
        sums = terms.trace_cov - before.trace_cov, terms.grad_sq_norm - before.grad_sq_norm
        means = sums[0] / num_terms, sums[1] / num_terms
    rate, path = sight.scheduled_rate * sight.trained_rate_factor, sight.standing.path or NO_PATH
    spans, now = books.spans, path.promised or Promised()
    if steps > 0:
        loss, error = losses.since(since)
        # of plain steps all that are measured tell it, and not only those whose update was looked at
        of_steps = (None if means is None else means[1] * rate * steps, 0.0)
        promised = of_steps if _is_plain_sgd(sight, plan) else _promised(books, now, steps)
        spans = (*spans, Span(steps, None if math.isnan(loss) else loss, error, *promised))
    return replace(
        books,
        steps=sight.steps,
        examples=books.examples + steps * sight.trained_batch,
        highest_rate=max(books.highest_rate, sight.scheduled_rate),
        last_rate=sight.scheduled_rate,
        seen=replace(
            terms,
            losses=losses,
            path_updates=path.num_updates,
            path_sum=path.sum_sq_norm,
            promised_updates=now.num_updates,
            promised=now.total,
            promised_variance=now.variance,
        ),
        stretches=_stretches(books, sight, means),
        spans=spans,
    )


def _promised(books: Books, now: Promised, steps: float) -> tuple[float | None, float]:
    """What so many steps promise, as those did whose promise is new, or those of the span before; with its variance."""
    new = now.since(Promised(books.seen.promised_updates, books.seen.promised, books.seen.promised_variance))
    if new.num_updates > 0:
        new = new.times(steps / new.num_updates)
        return new.total, new.variance
    last = books.spans[-1] if books.spans and now.num_updates else None
    if last is None or last.promised is None:
        return None, 0.0
    factor = steps / last.num_steps
    # the same error again, so that both together are off by that much more
    return last.promised * factor, last.promised_variance * ((1 + factor) ** 2 - 1)


def _terms(looks: Sequence[Look]) -> Seen:
    return Seen(
        num_terms=math.fsum(one.num_updates for one in looks),
        trace_cov=math.fsum(one.trace_cov for one in looks),
        grad_sq_norm=math.fsum(one.grad_sq_norm for one in looks),
    )


def _stretches(books: Books, sight: Sight, means: tuple[float, float] | None) -> tuple[Stretch, ...]:
    path, seen = sight.standing.path, books.seen
    if path is None:
        return ()
    has_begun_again = path.num_updates < seen.path_updates or path.sum_sq_norm < seen.path_sum
    known = () if has_begun_again else books.stretches
    before = (0.0, 0.0) if has_begun_again else (seen.path_updates, seen.path_sum)
    num_updates, sum_sq_norm = path.num_updates - before[0], path.sum_sq_norm - before[1]
    if not num_updates > 0:
        return known
    batch, rate_factor = sight.trained_batch, sight.trained_rate_factor
    return (*known, Stretch(num_updates, batch, rate_factor, sum_sq_norm, *(means or (None, None))))


def _asked(books: Books, sight: Sight, plan: Plan) -> tuple[Books, Decision | None]:
    """What the policy says, and whether the job can do it."""
    run = _state(books, sight, plan)
    action, memory = advise(run, books.memory, plan.settings)
    asked = replace(books, memory=memory)
    if isinstance(action, Undo):
        decision = _decision(books, plan, action.batch, action.learning_rate, action.reason)
        return replace(asked, why=action.reason), replace(decision, is_undo=True)
    assert isinstance(action, Train)
    is_same = action.batch == books.batch and action.learning_rate == books.rate_factor
    if is_same:
        return replace(asked, why=f"{action.reason}{_what_is_missing(books, run, plan)}"), None
    if action.batch == books.batch:
        decision = _decision(books, plan, action.batch, action.learning_rate, action.reason)
        return replace(asked, why=action.reason), _as_asked(decision, action)
    assert plan.possible is not None
    assert action.critical_batch is not None
    batch, moved = plan.possible.nearest(action.batch, books.batch)
    if batch is None:
        return replace(books, why=f"{action.reason}; {moved}"), None
    rate = action.learning_rate
    if batch != action.batch:
        rate = min(rate, books.memory.anchor_rate * rate_factor(run, books.memory, batch, action.critical_batch))
    reason = action.reason if batch == action.batch else f"{action.reason}, of which {batch:,} can be run. {moved}"
    decision = _decision(books, plan, batch, rate, reason.rstrip(". "))
    return replace(asked, why=decision.reason), _as_asked(decision, action)


def _decision(books: Books, plan: Plan, batch: int, rate: float, reason: str) -> Decision:
    return Decision(
        step=books.steps,
        from_batch=books.batch,
        to_batch=batch,
        from_rate_factor=books.rate_factor,
        to_rate_factor=rate,
        reason=reason,
        is_dry_run=plan.is_dry_run,
    )


def _as_asked(decision: Decision, action: Train) -> Decision:
    return replace(
        decision,
        noise_scale=action.noise_scale,
        critical_batch=action.critical_batch,
        is_on_probation=action.is_on_probation,
        look_after=action.look_after,
    )


def _what_is_missing(books: Books, run: RunState, plan: Plan) -> str:
    """What keeps the policy from judging, as a clause."""
    missing = [_why_no_rate(books, run, plan)] if plan.settings.may_change_rate else []
    if not run.looks:
        missing.append("no noise scale is measured yet")
    return "".join(f"; {one}" for one in missing if one)


def _why_no_rate(books: Books, run: RunState, plan: Plan) -> str:
    """What keeps the policy from judging the learning rate; empty where nothing does."""
    share = first_share(plan.optimizer, 0.0 if run.path is None else run.path.momentum)
    if share is None:
        return f"how updates of {plan.optimizer} tell the best rate is not known: the learning rate stays"
    if not run.has_plan:
        return "without planned_steps the learning rate is not judged"
    if _is_of_warm_up(books):
        return "the path of the parameters is still that of the warm-up"
    if octaves_from_best(run) is not None:
        return ""
    if run.path is not None and run.progress < share:
        return f"the path of the parameters tells nothing of the learning rate before {share:.0%} of the plan"
    return "no path of the parameters is measured that tells of the learning rate"


def _state(books: Books, sight: Sight, plan: Plan) -> RunState:
    """The run as the policy sees it; learning rates are counted in those that the run began with."""
    price = plan.examples_per_step
    planned = None if plan.planned_steps is None else plan.planned_steps * (price + plan.first_batch)
    first, last = (books.spans[0], books.spans[-1]) if books.spans else (None, None)
    return RunState(
        steps=books.steps,
        progress=plan.progress(books.steps, books.examples),
        planned_steps=math.inf if planned is None else planned / (price + books.batch),
        exchange_rate=price,
        optimizer=plan.optimizer,
        momentum=plan.momentum,
        batch=books.batch,
        learning_rate=books.rate_factor,
        decay=books.last_rate / books.highest_rate if books.highest_rate > 0 else 1.0,
        first_loss=_loss_of(first),
        first_loss_error=math.inf if first is None else first.loss_error,
        loss=_loss_of(last),
        loss_error=math.inf if last is None else last.loss_error,
        noise_scale=NOTHING_MEASURED,
        looks=tuple(sight.standing.looks),
        path=_path(books, sight, plan),
        promise=kept_promise(books.spans),
        schedule=sight.standing.schedule,
        stated_price=plan.price,
    )


def _is_plain_sgd(sight: Sight, plan: Plan) -> bool:
    """Whether ε |G|² is what an update promises."""
    path = sight.standing.path
    return family_of(plan.optimizer) is RuleFamily.SGD and path is not None and path.momentum == 0


def _loss_of(span: Span | None) -> float:
    return math.nan if span is None or span.loss is None else span.loss


def _is_of_warm_up(books: Books) -> bool:
    return books.steps < AFTER_WARM_UP * books.risen_until


def _path(books: Books, sight: Sight, plan: Plan) -> Path | None:
    path = sight.standing.path
    if path is None or path.num_updates < LEAST_OF_PATH * books.steps or _is_of_warm_up(books):
        return None
    return path_at(
        books.stretches,
        sq_distance=path.sq_distance,
        momentum=path.momentum,
        optimizer=plan.optimizer,
        batch=books.batch,
        rate_factor=books.rate_factor,
        variance=path.variance,
    )
