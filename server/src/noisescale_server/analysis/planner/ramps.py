"""Batch-size ramps that people use without a noise scale, each by its published rule, and what one takes.

All are functions of the examples used so far, as trainers count them. Examples here are whatever the batch counts:
Brown et al. and Merrill et al. count tokens.
"""

import math
from dataclasses import dataclass

from noisescale_core.theory.domain import require_not_negative, require_positive

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
