"""A batch size that follows the noise scale, what it saves over the best constant one, and why that is little.

Progress is counted in ideal steps s: what a step of a huge batch would make. An ideal step at batch B takes 1 + φ / B
real steps and B + φ examples. Minimising r S + E over B(s) gives B(s) = √(r φ(s)), and then
(S / S_min - 1)(E / E_min - 1) = γ = (∫ √φ ds)² / (S_min E_min) ≤ 1, where the best constant batch has 1 on the right.
Source: McCandlish et al. 2018, arXiv:1812.06162, appendix D, eq. D.1 to D.7.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_any, require_not_negative, require_positive
from noisescale_core.theory.trade_off import TradeOff

_PROFILE = "give the noise scale over the run, piece by piece"

HYSTERESIS = 1.4
"""The batch changes only where the wanted one is off by more than this factor."""


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


# A schedule as a trainer takes it: a few stages of whole batches, changed seldom, with what each takes.
#
# The batch √(r φ) of McCandlish et al. 2018, arXiv:1812.06162, eq. D.6, is held until it is off by more than a factor:
# the regret of a batch off by x is at most (2 + x + 1/x) / 4 - 1, 3 % at 1.4, so following closer buys nothing.


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the run at one batch.

    Attributes:
        batch: In examples.
        first_step: Optimizer step at which it begins, from 0.
        first_example: Examples used before it begins.
        steps: Optimizer steps that it takes.
        examples: Examples that it takes.
    """

    batch: int
    first_step: float
    first_example: float
    steps: float
    examples: float


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which batches a trainer can run.

    Attributes:
        multiple_of: Devices × micro-batch.
        smallest: In examples.
        largest: In examples.
        powers_of_two: Whether only `multiple_of` × 1, 2, 4, … will do.
        may_fall: Whether the batch may shrink again.
        hysteresis: The factor that a change must exceed.
    """

    multiple_of: int = 1
    smallest: float = 1.0
    largest: float = math.inf
    powers_of_two: bool = False
    may_fall: bool = False
    hysteresis: float = HYSTERESIS

    def __post_init__(self) -> None:
        """Refuse what no trainer can run.

        Raises:
            DomainError: If a bound is not positive, they exclude each other, or the hysteresis is below 1.
        """
        require_positive("1 where any batch can be run", multiple_of=self.multiple_of, smallest=self.smallest)
        if not self.largest >= max(self.smallest, self.multiple_of):
            raise DomainError(
                f"largest must hold one of multiple_of and not lie below smallest, got {self.largest:g}: raise it"
            )
        if not 1 <= self.hysteresis < math.inf:
            raise DomainError(f"hysteresis must be at least 1, got {self.hysteresis:g}: 1.4 costs at most 3 %")

    def round(self, batch: float) -> int:
        """The nearest batch that can be run, on the log scale, rounded down at the largest.

        Args:
            batch: In examples.
        """
        wanted = min(max(batch, self.smallest), self.largest) / self.multiple_of
        lower = 2 ** max(0, math.floor(math.log2(max(wanted, 1)))) if self.powers_of_two else max(1, math.floor(wanted))
        upper = 2 * lower if self.powers_of_two else lower + 1
        is_nearer = wanted * wanted > lower * upper and upper * self.multiple_of <= self.largest
        must_rise = lower * self.multiple_of < self.smallest and upper * self.multiple_of <= self.largest
        return (upper if is_nearer or must_rise else lower) * self.multiple_of


def stages(
    profile: Sequence[Stretch],
    *,
    examples_per_step: float,
    bounds: Bounds,
    now: int | None = None,
    rounded: Callable[[float], int] | None = None,
) -> list[Stage]:
    """The stages that follow a forecast of the noise scale.

    Args:
        profile: The noise scale from now on, oldest first.
        examples_per_step: r.
        bounds: Which batches can be run, and how seldom they change.
        now: Batch in use; None to start with the first that is wanted.
        rounded: From a wanted batch to one that can be run; None: by the bounds.

    Raises:
        DomainError: If the profile is empty, or a noise scale in it 0.
    """
    require_any("profile", len(profile), "give the noise scale from now on, piece by piece")
    found: list[Stage] = []
    batch = now
    for part in profile:
        wanted = scheduled_batch(noise_scale=part.noise_scale, examples_per_step=examples_per_step)
        batch = _next(batch, wanted, bounds, rounded or bounds.round)
        steps, examples = (
            (1 + part.noise_scale / batch) * part.ideal_steps,
            (batch + part.noise_scale) * part.ideal_steps,
        )
        last = found[-1] if found else Stage(batch, 0.0, 0.0, 0.0, 0.0)
        if found and last.batch == batch:
            found[-1] = Stage(batch, last.first_step, last.first_example, last.steps + steps, last.examples + examples)
        else:
            found.append(
                Stage(batch, last.first_step + last.steps, last.first_example + last.examples, steps, examples)
            )
    return found


def _next(batch: int | None, wanted: float, bounds: Bounds, rounded: Callable[[float], int]) -> int:
    if batch is None:
        return rounded(wanted)
    # by what is wanted: where whole batches lie a factor of 1.5 apart, waiting for the next but one costs 6 %
    if wanted > bounds.hysteresis * batch:
        return max(batch, rounded(wanted))
    if bounds.may_fall and wanted * bounds.hysteresis < batch:
        return min(batch, rounded(wanted))
    return batch
