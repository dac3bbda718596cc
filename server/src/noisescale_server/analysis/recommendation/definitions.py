"""What papers call the critical or maximum useful batch size, and what each is in B_crit.

A number without its definition and its target cannot be compared: under one trade-off curve the published definitions
differ by a factor of 50. Conversions hold where S = S_min (1 + B_crit / B) does (McCandlish et al. 2018,
arXiv:1812.06162, eq. 2.11), and not across targets.
"""

from dataclasses import dataclass
from enum import StrEnum

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_positive, require_share


class Definition(StrEnum):
    """How a critical batch was defined."""

    HALF_EFFICIENCY = "half_efficiency"
    EXAMPLE_EFFICIENCY = "example_efficiency"
    EXAMPLE_OVERHEAD = "example_overhead"
    OVERHEAD_FROM_BATCH = "overhead_from_batch"
    PERFECT_SCALING = "perfect_scaling"
    PLATEAU = "plateau"
    LOCAL_LOSS_TOLERANCE = "local_loss_tolerance"


DEFINED_BY = {
    Definition.HALF_EFFICIENCY: "E_min / S_min, where steps and examples are both twice their minimum "
    "(McCandlish et al. 2018; Bergsma et al. 2025, arXiv:2505.13738)",
    Definition.EXAMPLE_EFFICIENCY: "the batch at which examples are so efficient, as a share of the best",
    Definition.EXAMPLE_OVERHEAD: "the batch that needs so many more examples than an infinitely small one, as a share",
    Definition.OVERHEAD_FROM_BATCH: "the batch that needs so many more steps than perfect scaling from a stated batch, "
    "as a share (Zhang et al. 2024, arXiv:2410.21676: 0.20 from 256 sequences)",
    Definition.PERFECT_SCALING: "the end of perfect scaling: S B within this share of its minimum "
    "(Shallue et al. 2018, arXiv:1811.03600)",
    Definition.PLATEAU: "the maximum useful batch: S within this share of S_min "
    "(Shallue et al. 2018, arXiv:1811.03600)",
    Definition.LOCAL_LOSS_TOLERANCE: "the largest batch whose branch ends within this loss of every smaller one, "
    "in nats (Merrill et al. 2025, arXiv:2505.23971: 0.01 after 2 billion tokens)",
}
"""Each definition in words, with who uses it."""


@dataclass(frozen=True, slots=True)
class DefinedCriticalBatch:
    """A critical batch with the definition and the target that it belongs to.

    Attributes:
        value: In `unit`.
        definition: What "critical" means here.
        target: The performance level, in words.
        unit: What the value counts: examples, or images, tokens.
        share: The share or tolerance that the definition needs; None for half efficiency.
        from_batch: Where perfect scaling starts, in `unit`, for an overhead from there; else None.
    """

    value: float
    definition: Definition
    target: str
    unit: str
    share: float | None = None
    from_batch: float | None = None

    def __post_init__(self) -> None:
        """Refuse a number that cannot be compared.

        Raises:
            DomainError: If the value is not positive, the target empty, or the share missing or out of place.
        """
        require_positive("an unresolved critical batch has a bound, no value", value=self.value)
        if not self.target.strip():
            raise DomainError("target must name the performance level, got an empty text: B_crit depends on it")
        _require_share_of(self.definition, self.share)
        _require_batch_of(self.definition, self.from_batch)

    def to(
        self, definition: Definition, *, share: float | None = None, from_batch: float | None = None
    ) -> "DefinedCriticalBatch":
        """The same run's critical batch by another definition.

        Args:
            definition: What "critical" shall mean.
            share: The share that this definition needs.
            from_batch: The batch that this definition starts from, in `unit`.

        Raises:
            DomainError: If either definition has no conversion, the share or the batch is missing, or the value is
                below any that perfect scaling from its batch allows.
        """
        _require_share_of(definition, share)
        _require_batch_of(definition, from_batch)
        half = (self.value - _least(self.share, self.from_batch)) / _in_b_crit(self.definition, self.share)
        if half <= 0:
            raise DomainError(
                f"value must be above {_least(self.share, self.from_batch):g}, (1 + share) of the batch that scaling "
                f"starts from, got {self.value:g}: a trade-off of steps and examples allows no smaller one"
            )
        value = half * _in_b_crit(definition, share) + _least(share, from_batch)
        return DefinedCriticalBatch(value, definition, self.target, self.unit, share, from_batch)


def _least(share: float | None, from_batch: float | None) -> float:
    """What an overhead from a batch adds: E(B) = (1 + q) E(B₀) is B = q B_crit + (1 + q) B₀."""
    return 0.0 if from_batch is None or share is None else (1 + share) * from_batch


def _in_b_crit(definition: Definition, share: float | None) -> float:
    """The definition's batch, in B_crit, but for what `_least` adds."""
    if definition is Definition.HALF_EFFICIENCY:
        return 1.0
    if share is None or definition is Definition.LOCAL_LOSS_TOLERANCE:
        raise DomainError(
            "definition must follow from the trade-off of steps and examples, got local_loss_tolerance: measure it anew"
        )
    if definition is Definition.EXAMPLE_EFFICIENCY:
        return 1 / share - 1
    # E / E_min - 1 = B / B_crit for an overhead in examples, and S / S_min - 1 = B_crit / B for the plateau
    return 1 / share if definition is Definition.PLATEAU else share


def _require_share_of(definition: Definition, share: float | None) -> None:
    if definition is Definition.HALF_EFFICIENCY:
        if share is not None:
            raise DomainError(f"share must be left out for half_efficiency, got {share:g}: use example_efficiency")
        return
    if share is None:
        raise DomainError(f"share must be given for {definition}, got None: {DEFINED_BY[definition]}")
    if definition is Definition.EXAMPLE_EFFICIENCY:
        require_share(DEFINED_BY[definition], share=share)
    else:
        require_positive(DEFINED_BY[definition], share=share)


def _require_batch_of(definition: Definition, from_batch: float | None) -> None:
    if definition is Definition.OVERHEAD_FROM_BATCH:
        if from_batch is None:
            raise DomainError(f"from_batch must be given for {definition}, got None: {DEFINED_BY[definition]}")
        require_positive(DEFINED_BY[definition], from_batch=from_batch)
    elif from_batch is not None:
        raise DomainError(f"from_batch must be left out for {definition}, got {from_batch:g}: use overhead_from_batch")
