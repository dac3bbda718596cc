"""The batch of a language model before its first step, from the tokens it is to be trained on.

From published sweeps: Zhang et al. 2024 (arXiv:2410.21676), Li et al. 2025 (Step Law, arXiv:2503.04715) and MLPerf's
reference convergence points. They are of pre-training from scratch on text, one epoch, Adam or AdamW, at a tuned rate:
not of fine-tuning, reinforcement learning or another optimizer.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from noisescale_core.errors import DomainError
from noisescale_core.estimators.student_t import t_quantile
from noisescale_core.theory.domain import require_positive, require_share

OPTIMIZERS = ("adam", "adamw")

NUM_POINTS = 23
"""Verified points that B_crit rests on: five of Zhang's sweeps, sixteen of Step Law's table, two of MLPerf's."""

REACH = (1e9, 4e10)
"""Tokens between which these points lie."""

UNCERTAINTY = math.log(1.7)
"""Of ln B_crit, as the scale of a t distribution with 4 degrees of freedom.

A law fitted without one of the three sources misses that one's points by × 1.42 to × 1.74 (root mean square), at most
by × 2.15 (`benchmarks/results/priors.csv`): inside the 95 % interval of × 4.4."""

FAR = (1e12, math.log(3.0))
"""Tokens beyond the points, and the scale there; in between it grows with the logarithm."""

DEGREES_OF_FREEDOM = 4

GROWTH = (0.44, 0.42, 0.68)
"""Power of the tokens seen that the noise scale goes as, and the ends that are published: Step Law's, all points'."""

TOKENS_PER_PARAMETER = 20.0
"""What is assumed where only the size is said (Hoffmann et al. 2022, arXiv:2203.15556)."""

MOST_TOKENS = 1e18
"""More than there are, for a model or as a price: a law of two parameters says nothing there."""

NUM_CASES = 64
"""Equally likely values of B_crit over which cost is averaged."""

STEPS_PER_DOUBLING = 8
"""How finely a batch is looked for."""


@dataclass(frozen=True, slots=True)
class PriorInterval:
    """A number with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class LanguageModel:
    """What is known of the training before it begins.

    Attributes:
        tokens: To be trained on.
        is_mixture: Of experts, each token going to some of them.
    """

    tokens: float
    is_mixture: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no number of tokens.

        Raises:
            DomainError: Unless tokens lie between 1 and 1e18.
        """
        require_positive("a model is trained on some tokens", tokens=self.tokens)
        _require_possible("tokens", self.tokens)

    @property
    def is_extrapolated(self) -> bool:
        """No verified point is of as few or as many tokens."""
        return not REACH[0] <= self.tokens <= REACH[1]

    @cached_property
    def floor(self) -> float:
        """Tokens of the batch with the lowest loss for a fixed number of tokens; smaller ones waste tokens again.

        Fitted over Step Law's table: 17 dense cells (4e9 to 1e11 tokens, rms × 1.20) and 16 of mixtures (2e9 to 2e10,
        × 1.23).
        """
        at_ten_billion, exponent = (2.55e5, 0.42) if self.is_mixture else (2.85e5, 0.61)
        return at_ten_billion * math.pow(self.tokens / 1e10, exponent)

    def critical_batch(self, batch: float) -> float:
        """B_crit in tokens, where the planned tokens are spent at this batch.

        2.2e6 (E_min / 1e10)^0.436 with E_min = tokens / (1 + batch / B_crit), the tokens to the same loss at a small
        batch; each group of points has weight one. Mixtures lie 2.65 × above it.
        """
        usual = 2.2e6 * (2.65 if self.is_mixture else 1.0)
        found = usual * math.pow(self.tokens / 1e10, 0.436)
        for _ in range(50):  # the exponent is below 1, so this closes in by half each time
            found = usual * math.pow(self.tokens / (1 + batch / found) / 1e10, 0.436)
        return found

    @property
    def uncertainty(self) -> float:
        """Scale of ln B_crit; mixtures are 16 cells of one table, which say nothing of other tables."""
        beyond = max(0.0, math.log(self.tokens / REACH[1]), math.log(REACH[0] / self.tokens))
        within, far = UNCERTAINTY, FAR[1]
        scale = within + (far - within) * beyond / math.log(FAR[0] / REACH[1])
        return math.hypot(scale, math.log(1.5)) if self.is_mixture else scale

    def cases(self, critical: float) -> list[float]:
        """Equally likely B_crit around this one."""
        half = [
            t_quantile(0.5 + (i + 0.5) / NUM_CASES, DEGREES_OF_FREEDOM) * self.uncertainty
            for i in range(NUM_CASES // 2)
        ]
        return [critical * math.exp(sign * one) for one in half for sign in (-1, 1)]


@dataclass(frozen=True, slots=True)
class Advice:
    """A batch before the first step, in tokens.

    Attributes:
        batch: Of least expected cost; its interval is that of the best batch, as far as B_crit is known.
        critical: B_crit.
        floor: The batch with the lowest loss for a fixed number of tokens.
        regret: Expected extra cost over the best batch, as a share.
        regret_in_20: What one case in twenty exceeds.
        ramp_gain: What a batch that grows with the noise scale saves against the best constant one, as a share.
        is_extrapolated: The published points are of other numbers of tokens.
    """

    batch: PriorInterval
    critical: PriorInterval
    floor: float
    regret: float
    regret_in_20: float
    ramp_gain: PriorInterval
    is_extrapolated: bool


def advise(model: LanguageModel, *, tokens_per_step: float | None = None, preference: float = 0.5) -> Advice:
    """The batch of least expected cost.

    The tokens to a loss are E_min (1 + (B + B_opt² / B) / B_crit), so at a price r of a step, in tokens, the best
    batch is √(B_opt² + r B_crit) but for terms of higher order.

    Args:
        model: What is planned.
        tokens_per_step: r, what a step saved is worth in tokens; None: `preference` says it as a share of B_crit.
        preference: Weight of steps against tokens, between 0 (money) and 1 (time): r = B_crit (λ / (1 - λ))².

    Raises:
        DomainError: Unless the price is positive and the preference between 0 and 1.
    """
    if tokens_per_step is not None:
        require_positive("a step saved is worth some tokens", tokens_per_step=tokens_per_step)
        _require_possible("tokens_per_step", tokens_per_step)
    require_share("a weight of steps against tokens", preference=preference)
    share = (preference / (1 - preference)) ** 2
    batch = model.floor
    for _ in range(8):  # B_crit is of the tokens that this batch needs
        critical = model.critical_batch(batch)
        prices = [(one, share * one if tokens_per_step is None else tokens_per_step) for one in model.cases(critical)]
        batch = _cheapest(model.floor, prices)
    reach = math.exp(t_quantile(0.975, DEGREES_OF_FREEDOM) * model.uncertainty)
    ends = [
        _best(model.floor, one, share * one if tokens_per_step is None else tokens_per_step)
        for one in (critical / reach, critical * reach)
    ]
    regrets = sorted(
        math.expm1(_log_cost(batch, model.floor, *case) - _log_cost(_best(model.floor, *case), model.floor, *case))
        for case in prices
    )
    return Advice(
        batch=PriorInterval(batch, *ends),
        critical=PriorInterval(critical, critical / reach, critical * reach),
        floor=model.floor,
        regret=max(0.0, sum(regrets) / len(regrets)),
        regret_in_20=max(0.0, regrets[math.ceil(0.95 * len(regrets)) - 1]),
        ramp_gain=PriorInterval(
            *(ramp_gain(growth, share if tokens_per_step is None else tokens_per_step / critical) for growth in GROWTH)
        ),
        is_extrapolated=model.is_extrapolated,
    )


def ramp_gain(growth: float, price_ratio: float) -> float:
    """What a batch that follows the noise scale saves against the best constant one, as a share of the latter's cost.

    With φ ∝ progress^q a constant batch costs (1 + √ρ)² per token of E_min at its best, ρ = r / B_crit, and one that is
    √(r φ) at every moment 1 + ρ + 2 √ρ √(1 - q) / (1 - q / 2).

    Args:
        growth: q, from 0 to below 1.
        price_ratio: ρ, what a step is worth in critical batches.

    Source: McCandlish et al. 2018, arXiv:1812.06162, eq. D.6, integrated.
    """
    root = math.sqrt(price_ratio)
    return 2 * root * (1 - math.sqrt(1 - growth) / (1 - growth / 2)) / (1 + root) ** 2


def _require_possible(name: str, tokens: float) -> None:
    if not 1 <= tokens <= MOST_TOKENS:
        raise DomainError(f"{name} must lie between 1 and {MOST_TOKENS:g}, got {tokens:g}: count tokens")


def _best(floor: float, critical: float, price: float) -> float:
    """Where `_log_cost` is least: the positive root of B³ - (r B_crit + B_opt²) B - 2 r B_opt²."""
    linear, constant = price * critical + floor * floor, 2 * price * floor * floor
    batch = math.sqrt(linear) + math.cbrt(constant)  # above the root, from where Newton's steps fall to it
    for _ in range(60):
        batch -= (batch**3 - linear * batch - constant) / (3 * batch * batch - linear)
    return batch


def _log_cost(batch: float, floor: float, critical: float, price: float) -> float:
    """Ln of steps × (price + batch), but for what no batch changes."""
    return math.log1p((batch + floor * floor / batch) / critical) + math.log1p(price / batch)


def _cheapest(floor: float, prices: list[tuple[float, float]]) -> float:
    """The batch of least mean log cost, among those that are best in some case."""
    ends = [_best(floor, *case) for case in prices]
    low, high = math.log2(min(ends)), math.log2(max(ends))
    number = max(1, math.ceil(STEPS_PER_DOUBLING * (high - low)))
    batches = [2 ** (low + (high - low) * i / number) for i in range(number + 1)]
    return min(batches, key=lambda batch: sum(_log_cost(batch, floor, *case) for case in prices))
