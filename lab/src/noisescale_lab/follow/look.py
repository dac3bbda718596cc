"""One look at a run under way: whether the policy would change something now, and if not, why.

Pure, so that it can be tested and replayed without a training. The mathematics is `noisescale_lab.follow.policy`; here
is what comes before it, such as a noise scale that is not resolved, and after it, such as batches that cannot be run.
"""

from dataclasses import dataclass, replace

from noisescale.window.recent_updates import NoiseScale
from noisescale_core.estimators.uncertainty import State
from noisescale_core.theory.prices import ExchangeRate
from noisescale_lab.follow.books import Books
from noisescale_lab.follow.decision import Decision
from noisescale_lab.follow.policy import RunState, Settings, Train, advise, rate_factor
from noisescale_lab.follow.possible_batches import PossibleBatches

STEPS_BETWEEN_LOOKS = 0.12
"""As a share of the steps so far: the policy was measured with looks this far apart (`docs/policies.md`)."""

PLAN_BETWEEN_LOOKS = 0.02
"""And at least this share of the plan."""

LEAST_BETWEEN_LOOKS = 8
"""And at least so many steps: fewer hold no window."""

LEAST_DECAY = 0.1
"""Below this share of its peak a learning rate inflates the noise scale: B_simple goes as the inverse of the rate
(McCandlish et al. 2018, arXiv:1812.06162, appendix C on temperature)."""

RISE = 1e-6
"""A learning rate rises if it is larger by this share: less is rounding."""

UNKNOWN = float("inf")
"""For losses: what needs them, restarts and branches, is switched off."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a follower was told at the start.

    Attributes:
        optimizer: Class name.
        first_batch: Batch size that the run began with, in examples.
        price: What a step is worth.
        planned_steps: Of the whole run at the first batch; None if unknown.
        settings: Of the policy.
        possible: Batches that can be run.
        is_dry_run: Nothing is to be changed.
        acts_early: Below a resolved noise scale, too.
    """

    optimizer: str
    first_batch: int
    price: ExchangeRate
    planned_steps: float | None
    settings: Settings
    possible: PossibleBatches
    is_dry_run: bool
    acts_early: bool

    def next_look(self, steps: int) -> int:
        """The step of the look after one at this step."""
        planned = PLAN_BETWEEN_LOOKS * (self.planned_steps or 0)
        return steps + max(LEAST_BETWEEN_LOOKS, round(planned), round(STEPS_BETWEEN_LOOKS * steps))


@dataclass(frozen=True, slots=True)
class Sight:
    """What there is to see at a look.

    Attributes:
        steps: Optimizer steps so far.
        trained_batch: Batch that the job has trained with since the last look, in examples.
        scheduled_rate: Learning rate of the first group as scheduled, without the follower's factor.
        noise_scale: Of the latest window.
        updates_since_change: Updates that were measured since batch and rate last changed.
    """

    steps: int
    trained_batch: int
    scheduled_rate: float
    noise_scale: NoiseScale
    updates_since_change: int


def look(books: Books, sight: Sight, plan: Plan) -> tuple[Books, Decision | None]:
    """The books after a look, and the change that it asks for."""
    seen = replace(
        books,
        steps=sight.steps,
        next_look=plan.next_look(sight.steps),
        examples=books.examples + (sight.steps - books.steps) * sight.trained_batch,
        highest_rate=max(books.highest_rate, sight.scheduled_rate),
        last_rate=sight.scheduled_rate,
        num_looks=books.num_looks + 1,
    )
    obstacle = _obstacle(books, sight, plan)
    if obstacle:
        return replace(seen, why=obstacle), None
    price = seen.examples_per_step
    if price is None:
        assert sight.noise_scale.value is not None
        price = plan.price.at(sight.noise_scale.value)
    return _asked(replace(seen, examples_per_step=price), sight.noise_scale, plan)


def _obstacle(books: Books, sight: Sight, plan: Plan) -> str:
    """Why the policy is not asked; empty if it is."""
    now = sight.noise_scale.estimate
    must_be_resolved = not plan.acts_early or books.examples_per_step is None
    if must_be_resolved and now.state is not State.RESOLVED:
        return f"no change below a resolved noise scale: {sight.noise_scale}"
    if sight.updates_since_change < now.num_updates:
        missing = now.num_updates - sight.updates_since_change
        return f"the window reaches back before the last change: {missing:,} more measured steps to wait"
    if sight.scheduled_rate > books.last_rate * (1 + RISE):
        return "the learning rate rises: a warm-up is left alone"
    if sight.scheduled_rate < LEAST_DECAY * books.highest_rate:
        share = sight.scheduled_rate / books.highest_rate
        return f"the learning rate is down to {share:.2g} of its peak, where noise scales read high"
    return ""


def _asked(books: Books, noise_scale: NoiseScale, plan: Plan) -> tuple[Books, Decision | None]:
    """What the policy says, and whether the job can do it."""
    run = _state(books, noise_scale, plan)
    action, memory = advise(run, books.memory, plan.settings)
    asked = replace(books, memory=memory)
    if not isinstance(action, Train) or action.batch == books.batch:
        kept = f"batch {books.batch:,} stays at noise scale {noise_scale}: {getattr(action, 'reason', '')}"
        return replace(asked, why=kept.rstrip(": ")), None
    batch, moved = plan.possible.nearest(action.batch, books.batch)
    if batch is None:
        return replace(asked, why=f"{action.reason}; {moved}"), None
    assert action.noise_scale is not None
    possible = "" if batch == action.batch else f", of which {batch:,} can be run. {moved}".rstrip(". ")
    decision = Decision(
        step=books.steps,
        from_batch=books.batch,
        to_batch=batch,
        from_rate_factor=books.rate_factor,
        to_rate_factor=memory.anchor_rate * rate_factor(run, memory, batch, action.noise_scale),
        noise_scale=action.noise_scale,
        noise_scale_low=noise_scale.estimate.low,
        noise_scale_high=noise_scale.estimate.high,
        level=noise_scale.estimate.level,
        examples_per_step=run.exchange_rate,
        reason=f"{action.reason}{possible}; noise scale {noise_scale}",
        is_dry_run=plan.is_dry_run,
    )
    return replace(asked, why=decision.reason), decision


def _state(books: Books, noise_scale: NoiseScale, plan: Plan) -> RunState:
    """The run as the policy sees it; learning rates are counted in those that the run began with."""
    price = books.examples_per_step
    assert price is not None
    planned = None if plan.planned_steps is None else plan.planned_steps * (price + plan.first_batch)
    return RunState(
        steps=books.steps,
        progress=0.0 if planned is None else (price * books.steps + books.examples) / planned,
        planned_steps=float("inf") if planned is None else planned / (price + books.batch),
        exchange_rate=price,
        optimizer=plan.optimizer,
        batch=books.batch,
        learning_rate=books.rate_factor,
        decay=books.last_rate / books.highest_rate if books.highest_rate > 0 else 1.0,
        first_loss=UNKNOWN,
        first_loss_error=UNKNOWN,
        loss=UNKNOWN,
        loss_error=UNKNOWN,
        noise_scale=noise_scale.estimate,
    )
