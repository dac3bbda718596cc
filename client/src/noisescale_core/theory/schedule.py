"""A batch size that follows the noise scale, what it saves over the best constant one, and why that is little.

Progress is counted in ideal steps s: what a step of a huge batch would make. An ideal step at batch B takes 1 + φ / B
real steps and B + φ examples. Minimising r S + E over B(s) gives B(s) = √(r φ(s)), and then
(S / S_min - 1)(E / E_min - 1) = γ = (∫ √φ ds)² / (S_min E_min) ≤ 1, where the best constant batch has 1 on the right.
Source: McCandlish et al. 2018, arXiv:1812.06162, appendix D, eq. D.1 to D.7.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_any, require_not_negative, require_positive
from noisescale_core.theory.trade_off import TradeOff

_PROFILE = "give the noise scale over the run, piece by piece"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a run with one noise scale.

    Attributes:
        ideal_steps: Progress in it, counted in steps of a huge batch.
        noise_scale: φ in examples.
    """

    ideal_steps: float
    noise_scale: float

    def __post_init__(self) -> None:
        """Refuse what makes no progress.

        Raises:
            DomainError: If the progress is not positive or the noise scale negative or infinite.
        """
        require_positive("leave out stretches without progress", ideal_steps=self.ideal_steps)
        require_not_negative("use its bound where it is not resolved", noise_scale=self.noise_scale)
        if self.noise_scale == math.inf:
            raise DomainError("noise_scale must be finite, got inf: leave out stretches where it is not resolved")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run takes.

    Attributes:
        steps: S, optimizer steps.
        examples: E, examples.
    """

    steps: float
    examples: float

    def cost(self, examples_per_step: float) -> float:
        """J = r S + E, in examples.

        Args:
            examples_per_step: r.

        Raises:
            DomainError: If r is not positive.
        """
        require_positive("say what a step is worth, see prices.py", examples_per_step=examples_per_step)
        return examples_per_step * self.steps + self.examples


def scheduled_batch(*, noise_scale: float, examples_per_step: float) -> float:
    """B(s) = √(r φ(s)), eq. D.6, in examples.

    Args:
        noise_scale: φ now, in examples.
        examples_per_step: r. There is no schedule without it: B = φ is the special case r = φ.

    Raises:
        DomainError: If either is not positive.
    """
    require_positive("an unresolved noise scale schedules nothing", noise_scale=noise_scale)
    require_positive("say what a step is worth, see prices.py", examples_per_step=examples_per_step)
    return noise_scale * math.sqrt(examples_per_step / noise_scale)


def trade_off_of(profile: Sequence[Stretch], *, target: str) -> TradeOff:
    """S_min = ∫ ds and E_min = ∫ φ ds: the trade-off of all constant batches.

    Args:
        profile: The whole run, oldest first.
        target: What is reached at its end.

    Raises:
        DomainError: If the profile is empty or without noise.
    """
    require_any("profile", len(profile), _PROFILE)
    return TradeOff(
        min_steps=math.fsum(stretch.ideal_steps for stretch in profile),
        min_examples=math.fsum(stretch.ideal_steps * stretch.noise_scale for stretch in profile),
        target=target,
    )


def outcome(profile: Sequence[Stretch], batches: Sequence[float]) -> Outcome:
    """Steps and examples of a run with one batch in each stretch, eq. D.1.

    Args:
        profile: The whole run, oldest first.
        batches: Batch in each stretch, in examples.

    Raises:
        DomainError: If the two differ in length or a batch is not positive.
    """
    if len(profile) != len(batches):
        raise DomainError(
            f"batches must be one for each stretch, got {len(batches)} for {len(profile)}: repeat what stays the same"
        )
    for batch in batches:
        require_positive("a batch holds at least one example", batch=batch)
    pairs = list(zip(profile, batches, strict=True))
    return Outcome(
        steps=math.fsum(part.ideal_steps * (1 + part.noise_scale / batch) for part, batch in pairs),
        examples=math.fsum(part.ideal_steps * (batch + part.noise_scale) for part, batch in pairs),
    )


def gamma(profile: Sequence[Stretch]) -> float:
    """γ = (∫ √φ ds)² / (∫ ds ∫ φ ds), eq. D.7: 1 for a constant noise scale, less the more it changes.

    Args:
        profile: The whole run, oldest first.
    """
    least = trade_off_of(profile, target="the end of the profile")
    mean = math.fsum(part.ideal_steps * math.sqrt(part.noise_scale) for part in profile) / least.min_steps
    # 1 - γ is the relative variance of √φ: formed so, γ cannot exceed 1 by rounding
    variance = math.fsum(part.ideal_steps * (math.sqrt(part.noise_scale) - mean) ** 2 for part in profile)
    return 1 - variance / least.min_examples


def saving(*, gamma: float, balance: float = 1.0) -> float:
    """What the best schedule saves of the cost of the best constant batch, as a share.

    2 (1 - √γ) / (2 + x + 1/x) with x = √(r / B_crit). At r = B_crit it is (1 - √γ) / 2, of steps and of examples alike:
    1 % at γ = 0.96, 2.5 % at 0.90, 8 % at 0.71. Elsewhere it is less.

    Args:
        gamma: γ of the run.
        balance: r / B_crit; 1 where steps and examples are valued alike.

    Raises:
        DomainError: Unless 0 < γ ≤ 1 and the balance is positive.
    """
    require_positive("1 values steps and examples alike", balance=balance)
    if not 0 < gamma <= 1:
        raise DomainError(f"gamma must lie above 0 and not above 1, got {gamma:g}: compute it by gamma(profile)")
    root = math.sqrt(balance)
    return 2 * (1 - math.sqrt(gamma)) / (2 + root + 1 / root)
