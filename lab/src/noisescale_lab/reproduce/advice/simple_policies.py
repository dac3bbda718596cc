"""What people do, or could do, with batch size and learning rate: the policies that ours is compared with."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from noisescale_core.theory.learning_rate import rescale
from noisescale_lab.follow.actions import Action, Adopt, Branch, BranchedArm, Restart, RunState, Train
from noisescale_lab.reproduce.advice.run import Policy


class Keep:
    """Keeps batch size and learning rate."""

    def decide(self, view: RunState) -> Action:
        """Go on as before."""
        return Train(view.batch, view.learning_rate)


@dataclass
class KeepAndExtend:
    """Keeps both, and undoes the decay of the rate where the run goes on beyond its plan."""

    is_extended: bool = False

    def decide(self, view: RunState) -> Action:
        """Go on as before, or with the rate that the plan began with."""
        if self.is_extended or view.progress < 1:
            return Train(view.batch, view.learning_rate)
        self.is_extended = True
        return Train(view.batch, view.learning_rate / view.decay)


@dataclass
class Follow:
    """Sets the batch size to a function of the noise scale as soon as that is bounded.

    Attributes:
        uses_price: B = √(r φ), else B = φ.
        hysteresis: Changes by less than this factor are not made.
        anchor: (batch, learning rate) that the rate is derived from; compounding a rule would ratchet.
    """

    uses_price: bool = True
    hysteresis: float = 1.0
    anchor: tuple[int, float] | None = None

    def decide(self, view: RunState) -> Action:
        """B and its learning rate by the rule for the optimizer."""
        self.anchor = self.anchor or (view.batch, view.learning_rate)
        return Train(*followed(view, self.anchor, uses_price=self.uses_price, hysteresis=self.hysteresis))


def followed(
    view: RunState, anchor: tuple[int, float], *, uses_price: bool = True, hysteresis: float = 2.0
) -> tuple[int, float]:
    """Batch size √(r φ), or φ, and the learning rate that goes with it; the present ones while φ has no value."""
    phi = view.noise_scale.value
    if phi is None:
        return view.batch, view.learning_rate
    wanted = math.sqrt(view.exchange_rate * phi) if uses_price else phi
    if max(wanted / view.batch, view.batch / wanted) < hysteresis:
        return view.batch, view.learning_rate
    batch = max(2, round(wanted))
    rule = rescale(optimizer=view.optimizer, from_batch=anchor[0], to_batch=batch, noise_scale=phi)
    return batch, anchor[1] * rule.factor


@dataclass
class Guarded:
    """√(r φ) with hysteresis 2; back to step 0 at half the rate where the loss has not fallen after 5 % of the plan."""

    anchor: tuple[int, float] | None = None
    restarts: int = 0
    due_guard: float = 0.05
    rescues = True

    def decide(self, view: RunState) -> Action:
        """Guard first, then follow."""
        self.anchor = self.anchor or (view.batch, view.learning_rate)
        guarded = self.guard(view)
        return guarded or Train(*followed(view, self.anchor))

    def guard(self, view: RunState) -> Restart | None:
        """A fresh start where this one failed, at most three times."""
        assert self.anchor is not None
        if view.progress < self.due_guard and math.isfinite(view.loss):
            return None
        self.due_guard = math.inf
        if self.restarts < 3 and not view.loss <= 0.97 * view.first_loss:
            self.restarts += 1
            self.due_guard = view.progress + 0.05
            self.anchor = (view.batch, view.learning_rate / 2)
            return Restart(*self.anchor)
        return None


@dataclass
class GuardedWithBranches(Guarded):
    """The same, with branches of half and double the learning rate at 5, 10, 20 and 40 % of the plan."""

    due: list[float] = field(default_factory=lambda: [0.05, 0.1, 0.2, 0.4])

    def decide(self, view: RunState) -> Action:
        """Adopt the largest rate whose held-out loss is nearly the best."""
        self.anchor = self.anchor or (view.batch, view.learning_rate)
        if view.arms:
            chosen = largest_good(view)
            self.anchor = (view.arms[chosen].batch, view.arms[chosen].learning_rate)
            if view.arms[chosen].learning_rate == view.learning_rate and self.due:
                self.due.pop(0)
            return Adopt(chosen, *self.anchor)
        guarded = self.guard(view)
        if guarded:
            return guarded
        if self.due and view.progress >= self.due[0] and view.planned_steps >= 150:
            while self.due and view.progress >= self.due[0]:
                self.due.pop(0)
            rates = [view.learning_rate * factor for factor in (0.5, 1.0, 2.0)]
            steps = max(8, round(0.05 * view.progress * view.planned_steps))
            return Branch(tuple((view.batch, rate) for rate in rates), steps, held_out=512)
        return Train(*followed(view, self.anchor))


def largest_good(view: RunState) -> int:
    """The arm of the largest rate with L ≤ L_best + (L_before - L_best) / 10."""
    assert view.before_loss is not None
    best = min(arm.held_out_loss for arm in view.arms)
    bar = best + 0.1 * max(0.0, view.before_loss - best)
    return max(
        (i for i, arm in enumerate(view.arms) if arm.held_out_loss <= bar),
        key=lambda i: view.arms[i].learning_rate,
    )


@dataclass
class BranchOnce:
    """One branch of three batch sizes times three learning rates at 5 % of the plan, then as it is.

    The arm is taken whose held-out loss fell most for its cost.
    """

    has_branched: bool = False

    def decide(self, view: RunState) -> Action:
        """Branch, choose, keep."""
        if view.arms:
            chosen = max(range(len(view.arms)), key=lambda i: self.worth(view, view.arms[i]))
            return Adopt(chosen, view.arms[chosen].batch, view.arms[chosen].learning_rate)
        if self.has_branched or view.progress < 0.05:
            return Train(view.batch, view.learning_rate)
        self.has_branched = True
        steps = max(8, round(0.05 * view.progress * view.planned_steps))
        arms = tuple(
            (max(2, round(view.batch * size)), view.learning_rate * rate)
            for size in (0.5, 1.0, 2.0)
            for rate in (0.5, 1.0, 2.0)
        )
        return Branch(arms, steps, held_out=512)

    def worth(self, view: RunState, arm: BranchedArm) -> float:
        """Fall of the held-out loss over the cost of a step."""
        assert view.before_loss is not None
        return (view.before_loss - arm.held_out_loss) / (view.exchange_rate + arm.batch)


@dataclass(frozen=True, slots=True)
class BranchOfEqualExamples(Branch):
    """Arms that see as many examples as the first one, so larger batches take fewer steps."""


@dataclass
class Doublings:
    """Branches at 1, 2 and 4 times the batch, at doublings of the progress; the largest that loses nothing is taken.

    Source: the method of Merrill et al. 2025, arXiv:2505.23971, with branches of equal examples; the tolerance is a
    tenth of the branch's own fall of the loss, as the paper's 0.01 nats means nothing on other tasks.
    """

    due: float = 0.05

    def decide(self, view: RunState) -> Action:
        """Branch at doublings; adopt the largest k that is as good as every smaller one."""
        if view.arms:
            chosen = 0
            for i, arm in enumerate(view.arms):
                smaller = [a.held_out_loss for a in view.arms[:i]]
                tolerance = 0.1 * max(0.0, (view.before_loss or 0.0) - arm.held_out_loss)
                if all(arm.held_out_loss <= other + tolerance for other in smaller):
                    chosen = i
            return Adopt(0, view.arms[chosen].batch, view.arms[chosen].learning_rate)
        if view.progress < self.due or self.due > 0.6:
            return Train(view.batch, view.learning_rate)
        self.due *= 2
        power = 1.0 if view.optimizer == "SGD" else 0.5
        arms = tuple((view.batch * k, view.learning_rate * k**power) for k in (1, 2, 4))
        return BranchOfEqualExamples(arms, max(8, round(0.05 * view.progress * view.planned_steps)), held_out=512)


@dataclass
class Ramp:
    """Starts at an eighth of the given batch and grows linearly to it over the first half of the plan."""

    final: tuple[int, float] | None = None

    def decide(self, view: RunState) -> Action:
        """The learning rate stays: it was given for the final batch."""
        self.final = self.final or (view.batch, view.learning_rate)
        share = 1 / 8 + 7 / 8 * min(1.0, view.progress / 0.5)
        return Train(max(2, round(self.final[0] * share)), self.final[1])


@dataclass
class LateSwitch:
    """The given batch for the first half of the plan, four times as much afterwards, with the optimizer's rule.

    Source: late switching as in arXiv:2602.14208.
    """

    has_switched: bool = False

    def decide(self, view: RunState) -> Action:
        """Switch once."""
        if self.has_switched or view.progress < 0.5:
            return Train(view.batch, view.learning_rate)
        self.has_switched = True
        return Train(4 * view.batch, view.learning_rate * (4.0 if view.optimizer == "SGD" else 2.0))


@dataclass
class Seesaw:
    """Where the schedule would halve the rate, the batch is doubled and the rate cut by √2 only.

    Source: arXiv:2510.14717. Without a decaying schedule it does nothing.
    """

    halvings: int = 0

    def decide(self, view: RunState) -> Action:
        """One doubling at each halving of the schedule."""
        wanted = int(math.log2(1 / view.decay) + 1e-9)
        new = wanted - self.halvings
        self.halvings = wanted
        return Train(view.batch * 2**new, view.learning_rate * 2 ** (new / 2))


class FollowPriceAlone:
    """A control that knows nothing of the run: B = r, whatever the noise.

    Where r happens to be B_crit it is right by construction; other prices show what that is worth.
    """

    def decide(self, view: RunState) -> Action:
        """Batch r at once; the rate by the square root of the batch."""
        batch = max(2, round(view.exchange_rate))
        if max(batch / view.batch, view.batch / batch) < 1.5:
            return Train(view.batch, view.learning_rate)
        return Train(batch, view.learning_rate * math.sqrt(batch / view.batch))


SIMPLE: dict[str, Callable[[], Policy]] = {
    "keep": Keep,
    "keep, extend": KeepAndExtend,
    "B = r (control)": FollowPriceAlone,
    "B = phi": lambda: Follow(uses_price=False),
    "B = sqrt(r phi)": Follow,
    "sqrt(r phi), guard, hysteresis": Guarded,
    "the same + rate branches at doublings": GuardedWithBranches,
    "one 3 x 3 branch": BranchOnce,
    "doublings (Merrill)": Doublings,
    "Seesaw": Seesaw,
    "late switch": LateSwitch,
    "fixed ramp": Ramp,
}
