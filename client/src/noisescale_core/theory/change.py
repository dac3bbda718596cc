"""A change of the batch size, and the change of one hyperparameter that goes with it."""

import math
from dataclasses import dataclass

from noisescale_core.theory.domain import require_not_negative, require_positive


@dataclass(frozen=True, slots=True)
class BatchChange:
    """The global batch goes from B to B' = k B.

    Attributes:
        from_batch: B in examples.
        to_batch: B' in examples.
        noise_scale: φ in examples; None where it is not known, and rules then assume that noise dominates.
    """

    from_batch: float
    to_batch: float
    noise_scale: float | None

    def __post_init__(self) -> None:
        """Refuse what is no change of a batch.

        Raises:
            DomainError: If a batch is not positive or the noise scale negative.
        """
        require_positive("a batch holds at least one example", from_batch=self.from_batch, to_batch=self.to_batch)
        if self.noise_scale is not None:
            require_not_negative("None where it is not resolved", noise_scale=self.noise_scale)

    @property
    def factor(self) -> float:
        """The k in B' = k B."""
        return self.to_batch / self.from_batch

    @property
    def known_noise_scale(self) -> float:
        """The noise scale, or infinity where it is not known: the limit in which noise dominates."""
        return math.inf if self.noise_scale is None else self.noise_scale

    @property
    def is_below_noise_scale(self) -> bool:
        """Whether noise dominates the gradient at both batches; False where the noise scale is not known."""
        return self.noise_scale is not None and max(self.from_batch, self.to_batch) <= self.noise_scale


@dataclass(frozen=True, slots=True)
class Change:
    """How one hyperparameter follows the batch.

    Attributes:
        field: Its name.
        before: Its value now.
        after: Its value then; None where the rule has no answer here.
        rule: The rule in a few words.
        holds_for: Where the rule holds, in words.
        is_in_range: Whether this change of batch lies there.
        is_verified: Whether theory or published tests cover this optimizer.
        source: Paper, or None where there is no rule.
        alternative: What another rule says, explained in the text.
        text: What else to know.
    """

    field: str
    before: float
    after: float | None
    rule: str
    holds_for: str
    is_in_range: bool
    is_verified: bool
    source: str | None
    alternative: float | None = None
    text: str = ""
