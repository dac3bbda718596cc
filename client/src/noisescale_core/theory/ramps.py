"""Batch-size ramps that people use without a noise scale, each by its published rule, and what one takes.

All are functions of the examples used so far, as trainers count them. Examples here are whatever the batch counts:
Brown et al. and Merrill et al. count tokens.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_not_negative, require_positive
from noisescale_core.theory.schedule import Outcome, Stretch

_SO_FAR = "a run starts at 0"


@dataclass(frozen=True, slots=True)
class LinearRamp:
    """The batch grows linearly in the examples used, then stays.

    Source: Brown et al. 2020, arXiv:2005.14165, appendix B: from 32,000 tokens over the first 4 to 12 billion.

    Attributes:
        first: Batch at the start.
        last: Batch from `over` on.
        over: Examples after which it is reached.
    """

    first: float
    last: float
    over: float

    def __post_init__(self) -> None:
        """Refuse what is no ramp.

        Raises:
            DomainError: If a number is not positive.
        """
        require_positive("a batch holds at least one example", first=self.first, last=self.last)
        require_positive("give the examples until the last batch", over=self.over)

    def batch(self, examples: float) -> float:
        """The batch after so many examples.

        Args:
            examples: Used so far.

        Raises:
            DomainError: If the number is negative.
        """
        require_not_negative(_SO_FAR, examples=examples)
        return self.first + (self.last - self.first) * min(1.0, examples / self.over)

    def steps(self, examples: float) -> float:
        """Optimizer steps until so many examples are used: ∫ dE / B(E), a logarithm inside the ramp.

        Args:
            examples: Used in all.

        Raises:
            DomainError: If the number is negative.
        """
        require_not_negative(_SO_FAR, examples=examples)
        inside = min(examples, self.over)
        growth = self.batch(inside) / self.first - 1
        # log1p(x) / x stays exact where the ramp is flat
        rising = inside / self.first * (math.log1p(growth) / growth if growth else 1.0)
        return rising + (examples - inside) / self.last


@dataclass(frozen=True, slots=True)
class Doublings:
    """The batch doubles at given numbers of examples.

    Source: Merrill et al. 2025, arXiv:2505.23971: double where the critical batch, measured by branches,
    has come to exceed twice the batch, and multiply the learning rate by √2.

    Attributes:
        first: Batch at the start.
        at_examples: Examples used at each doubling, rising.
    """

    first: float
    at_examples: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse what is no ramp.

        Raises:
            DomainError: If the batch is not positive, or the doublings do not rise.
        """
        require_positive("a batch holds at least one example", first=self.first)
        if list(self.at_examples) != sorted(self.at_examples) or any(at < 0 for at in self.at_examples):
            raise DomainError(f"at_examples must rise from 0, got {self.at_examples}: sort them")

    def batch(self, examples: float) -> float:
        """The batch after so many examples.

        Args:
            examples: Used so far.

        Raises:
            DomainError: If the number is negative.
        """
        require_not_negative(_SO_FAR, examples=examples)
        return self.first * 2.0 ** sum(at <= examples for at in self.at_examples)

    def learning_rate_factor(self, examples: float) -> float:
        """The learning rate relative to the start: √2 for each doubling, for Adam.

        Args:
            examples: Used so far.
        """
        return math.sqrt(self.batch(examples) / self.first)


def should_double(*, batch: float, local_critical_batch: float) -> bool:
    """Whether the critical batch has come to exceed twice the batch.

    Source: Merrill et al. 2025, arXiv:2505.23971.

    Args:
        batch: In use, in examples.
        local_critical_batch: By branches from a checkpoint, in examples.

    Raises:
        DomainError: If either is not positive.
    """
    require_positive("measure it by branches", batch=batch, local_critical_batch=local_critical_batch)
    return local_critical_batch > 2 * batch


@dataclass(frozen=True, slots=True)
class Cut:
    """What follows a planned cut of the learning rate.

    Attributes:
        batch: In examples.
        learning_rate: ε.
    """

    batch: float
    learning_rate: float


def grow_instead_of_cutting(
    *, batch: float, learning_rate: float, divisor: float, largest_batch: float = math.inf
) -> Cut:
    """Where the plan divides the learning rate, multiply the batch instead: ε / B falls alike.

    What the largest batch leaves over is taken from the learning rate after all. For SGD far below the noise scale.
    Source: Smith et al. 2018, arXiv:1711.00489.

    Args:
        batch: In examples.
        learning_rate: ε before the cut.
        divisor: By what the plan divides ε.
        largest_batch: In examples.

    Raises:
        DomainError: If a number is not positive, the divisor below 1, or the batch above the largest.
    """
    _check_cut(batch, learning_rate, divisor)
    if batch > largest_batch:
        raise DomainError(f"largest_batch must hold the present batch {batch:g}, got {largest_batch:g}: raise it")
    growth = min(divisor, largest_batch / batch)
    return Cut(batch * growth, learning_rate * growth / divisor)


def seesaw(*, batch: float, learning_rate: float, divisor: float = 2.0) -> Cut:
    """Where the plan divides the learning rate by a, divide it by √a and multiply the batch by a.

    At a = 2 each halving becomes a doubling of the batch and ε / √2. Source: Seesaw, arXiv:2510.14717.

    Args:
        batch: In examples.
        learning_rate: ε before the cut.
        divisor: By what the plan divides ε, a.

    Raises:
        DomainError: If a number is not positive or the divisor below 1.
    """
    _check_cut(batch, learning_rate, divisor)
    return Cut(batch * divisor, learning_rate / math.sqrt(divisor))


def outcome_of_ramp(profile: Sequence[Stretch], batch_at: Callable[[float], float], *, num_parts: int = 100) -> Outcome:
    """Steps and examples of a ramp on a run whose noise scale is known.

    An ideal step takes 1 + φ / B steps and B + φ examples (McCandlish et al. 2018, arXiv:1812.06162, eq. D.1), and B
    depends on the examples so far: the midpoint rule, `num_parts` for each stretch.

    Args:
        profile: The whole run, oldest first.
        batch_at: The ramp: examples used so far → batch.
        num_parts: Parts of each stretch.

    Raises:
        DomainError: If there is no part.
    """
    require_positive("100 is plenty", num_parts=num_parts)
    steps = examples = 0.0
    for stretch in profile:
        width = stretch.ideal_steps / num_parts
        for _ in range(num_parts):
            middle = examples + (batch_at(examples) + stretch.noise_scale) * width / 2
            batch = batch_at(middle)
            steps += (1 + stretch.noise_scale / batch) * width
            examples += (batch + stretch.noise_scale) * width
    return Outcome(steps, examples)


def _check_cut(batch: float, learning_rate: float, divisor: float) -> None:
    require_positive("a cut needs both", batch=batch, learning_rate=learning_rate)
    if not 1 <= divisor < math.inf:
        raise DomainError(f"divisor must be at least 1, got {divisor:g}: give by how much the learning rate is cut")
