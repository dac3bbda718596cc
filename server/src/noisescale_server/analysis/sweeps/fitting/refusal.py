"""Why a sweep has no B_crit, and what it does say."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from noisescale_server.analysis.estimate import Bounds
from noisescale_server.analysis.sweeps.fitting import wording
from noisescale_server.analysis.sweeps.fitting.profile_region import ProfileRegion
from noisescale_server.analysis.sweeps.points.sweep import SweepPoint


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


def one_sided(points: Sequence[SweepPoint], region: ProfileRegion, level: float, *, turn: str = "") -> Refusal:
    """What a sweep says whose B_crit is open to a side.

    Args:
        points: The sweep, from small to large.
        region: Of its likelihood.
        level: Confidence level.
        turn: That it turns at small batches, as a sentence; empty where it does not.
    """
    critical, steps = (Bounds.from_logs(ends, level) for ends in (region.log_critical_batch(), region.log_min_steps()))
    examples = Bounds.from_logs(region.log_min_examples(), level)
    sizes = points[0].batch_size, points[-1].batch_size
    if region.is_open_above and region.is_open_below:
        reason, text = RefusalReason.UNDETERMINED, wording.undetermined(*sizes)
    elif region.is_open_above:
        reason, text = RefusalReason.ALL_BELOW, wording.all_below(*sizes, bound=critical.low or 0.0)
    else:
        reason, text = RefusalReason.ALL_ABOVE, wording.all_above(*sizes, bound=critical.high or 0.0)
    return Refusal(reason, f"{turn} {text}".strip(), critical, steps, examples)
