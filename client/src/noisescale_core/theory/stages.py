"""A schedule as a trainer takes it: a few stages of whole batches, changed seldom, with what each takes.

The batch √(r φ) of McCandlish et al. 2018, arXiv:1812.06162, eq. D.6, is held until it is off by more than a factor:
the regret of a batch off by x is at most (2 + x + 1/x) / 4 - 1, 3 % at 1.4, so following closer buys nothing.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_any, require_positive
from noisescale_core.theory.schedule import Stretch, scheduled_batch

HYSTERESIS = 1.4
"""The batch changes only where the wanted one is off by more than this factor."""


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
    found = rounded(wanted)
    if batch is None:
        return found
    # by what is wanted: where whole batches lie a factor of 1.5 apart, waiting for the next but one costs 6 %
    is_too_small = wanted > bounds.hysteresis * batch and found > batch
    is_too_large = bounds.may_fall and wanted * bounds.hysteresis < batch and found < batch
    return found if is_too_small or is_too_large else batch
