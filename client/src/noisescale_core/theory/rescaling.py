"""What to change with the batch size besides it: learning rate, momentum, betas, epsilon, weight decay, warm-up.

Every change names its rule, its source, where the rule holds and whether this batch lies there. Nothing is clipped:
where a rule has no answer, such as a β below zero, the change has none either and says so.
"""

from dataclasses import dataclass, fields

from noisescale_core.errors import DomainError
from noisescale_core.theory import adam_memory
from noisescale_core.theory.domain import require_not_negative, require_positive
from noisescale_core.theory.learning_rate import BatchChange, Change, RuleFamily, family_of, grid, rescale

_NO_RULE = "no rule is published for this optimizer: tune it again"


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """What a run trains with; None for what its optimizer does not have.

    Attributes:
        learning_rate: Peak learning rate.
        momentum: SGD's m.
        beta1: Decay of the mean of the gradient.
        beta2: Decay of the mean of its square.
        epsilon: Adam's term in the denominator, in units of the gradient.
        weight_decay: λ.
        warmup_steps: Optimizer steps of the learning rate's rise.
    """

    learning_rate: float
    momentum: float | None = None
    beta1: float | None = None
    beta2: float | None = None
    epsilon: float | None = None
    weight_decay: float | None = None
    warmup_steps: float | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot have trained anything.

        Raises:
            DomainError: If the learning rate is not positive, a decay not in [0, 1), or another value negative.
        """
        require_positive("give the peak of the schedule", learning_rate=self.learning_rate)
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        known = {name: value for name, value in given.items() if value is not None}
        require_not_negative("leave out what the optimizer does not have", **known)
        for name in ("momentum", "beta1", "beta2"):
            if known.get(name, 0) >= 1:
                raise DomainError(f"{name} must be below 1, got {known[name]:g}: 0.9 is usual")


@dataclass(frozen=True, slots=True)
class Rescaling:
    """All changes that go with a new batch.

    Attributes:
        batch: From which batch to which.
        changes: One for each hyperparameter that was given, the learning rate first.
        learning_rates: A short search around the new learning rate, factor 2 apart.
    """

    batch: BatchChange
    changes: tuple[Change, ...]
    learning_rates: tuple[float, ...]

    def of(self, field: str) -> Change:
        """The change of one hyperparameter.

        Args:
            field: Its name in `Hyperparameters`.

        Raises:
            KeyError: If it was not given.
        """
        return {change.field: change for change in self.changes}[field]


def rescale_all(optimizer: str, now: Hyperparameters, batch: BatchChange, *, num_points: int = 3) -> Rescaling:
    """What to set when the batch goes from B to B' = k B.

    Args:
        optimizer: Class name of the optimizer, such as "AdamW".
        now: What the run trains with.
        batch: From which batch to which, and the noise scale.
        num_points: Learning rates to try: 3, 4 or 5.
    """
    rate = _learning_rate(optimizer, now.learning_rate, batch)
    assert rate.after is not None
    factor = rate.after / rate.before
    family = family_of(optimizer)
    found = [rate]
    if now.momentum is not None:
        found.append(_momentum(now.momentum, batch))
    for field, beta in (("beta1", now.beta1), ("beta2", now.beta2)):
        if beta is not None:
            adam = family is RuleFamily.ADAM
            found.append(adam_memory.beta(field, beta, batch) if adam else _kept(field, beta, _NO_RULE))
    if now.epsilon is not None:
        adam = family is RuleFamily.ADAM
        found.append(adam_memory.epsilon(now.epsilon, batch) if adam else _kept("epsilon", now.epsilon, _NO_RULE))
    if now.weight_decay is not None:
        found.append(_weight_decay(optimizer, now.weight_decay, batch, factor))
    if now.warmup_steps is not None:
        found.append(_warmup(now.warmup_steps, batch))
    return Rescaling(batch, tuple(found), grid(rate.after, num_points=num_points))


def _learning_rate(optimizer: str, before: float, batch: BatchChange) -> Change:
    rule = rescale(
        optimizer=optimizer, from_batch=batch.from_batch, to_batch=batch.to_batch, noise_scale=batch.known_noise_scale
    )
    is_sgd = family_of(optimizer) is RuleFamily.SGD
    source = "McCandlish et al. 2018, arXiv:1812.06162, eq. 2.6" if is_sgd else "Malladi et al. 2022, arXiv:2205.10287"
    holds = "any batch; retune beyond the noise scale" if is_sgd else "both batches below the noise scale"
    return Change(
        field="learning_rate",
        before=before,
        after=before * rule.factor,
        rule=rule.name,
        holds_for=holds,
        is_in_range=batch.noise_scale is not None and (is_sgd or batch.is_below_noise_scale),
        is_verified=rule.is_verified,
        source=source if rule.is_verified else None,
        text="The centre of a short search.",
    )


def _momentum(before: float, batch: BatchChange) -> Change:
    alternative = 1 - (1 - before) / batch.factor
    return Change(
        field="momentum",
        before=before,
        after=before,
        rule="kept, the learning rate takes the change",
        holds_for="both batches below the noise scale",
        is_in_range=batch.is_below_noise_scale,
        is_verified=True,
        source="Smith & Le 2017, arXiv:1710.06451: noise goes as ε / (B (1 - m))",
        alternative=alternative if alternative >= 0 else None,
        text="The alternative keeps the noise at an unchanged learning rate: 1 - (1 - m) / k.",
    )


def _weight_decay(optimizer: str, before: float, batch: BatchChange, learning_rate_factor: float) -> Change:
    name = optimizer.lower()
    family = family_of(optimizer)
    if family is RuleFamily.ADAM and "adamw" not in name:
        return _kept("weight_decay", before, "L2 inside Adam is divided by √v̂ and has no rule; AdamW has one")
    return Change(
        field="weight_decay",
        before=before,
        after=before * batch.factor / learning_rate_factor,
        rule="ε λ / B is kept",
        holds_for="a plan of as many examples as before",
        is_in_range=True,
        is_verified="adamw" in name,
        source="Bergsma et al. 2025, arXiv:2505.13738: the time scale B / (ε λ D)",
        text="Verified for AdamW; elsewhere the same reasoning without a test.",
    )


def _warmup(before: float, batch: BatchChange) -> Change:
    return Change(
        field="warmup_steps",
        before=before,
        after=before,
        rule="as many steps, so k times the examples",
        holds_for="a learning rate that grows as √k",
        is_in_range=batch.is_below_noise_scale,
        is_verified=False,
        source="LEGW: You et al. 2019, arXiv:1901.08256",
        alternative=before / batch.factor,
        text=f"In examples the warm-up becomes {batch.factor:.3g} times as long; the alternative keeps it in examples.",
    )


def _kept(field: str, before: float, why: str) -> Change:
    return Change(
        field=field,
        before=before,
        after=before,
        rule="kept",
        holds_for="nothing is known",
        is_in_range=False,
        is_verified=False,
        source=None,
        text=f"{why[0].upper()}{why[1:]}.",
    )
