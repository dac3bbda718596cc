"""Why a sweep has no B_crit, and what it does say."""

from dataclasses import dataclass
from enum import StrEnum

from noisescale_server.analysis.estimate import Bounds


class RefusalReason(StrEnum):
    """Why no critical batch is given."""

    TOO_FEW_BATCH_SIZES = "too_few_batch_sizes"
    STEPS_RISE = "steps_rise_with_batch_size"
    EXAMPLES_FALL = "examples_fall_with_batch_size"
    REPEATS_DISAGREE = "repeats_disagree"
    MISFIT = "misfit"
    ALL_BELOW = "all_batch_sizes_below_critical"
    ALL_ABOVE = "all_batch_sizes_above_critical"
    UNDETERMINED = "undetermined"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A sweep that was not fitted.

    Attributes:
        reason: The rule.
        explanation: The reason with its numbers and the way out, for a reader.
        critical_batch: What is known of B_crit, in examples; None if nothing.
        min_steps: What is known of S_min, in steps; None if nothing.
        min_examples: What is known of E_min, in examples; None if nothing.
    """

    reason: RefusalReason
    explanation: str
    critical_batch: Bounds | None = None
    min_steps: Bounds | None = None
    min_examples: Bounds | None = None
