"""Which schedule a learning rate has followed so far."""

import math
from collections.abc import Sequence

from noisescale_core.advice.learning_rate.rate_coefficients import Schedule

SAME = 1e-3
"""Of the peak: rates this near are one."""

LIKE = 0.02
"""Of the peak, and a tenth of the fall: how near to a cosine a rate has to be."""


def schedule_of(rates: Sequence[tuple[int, float]], planned_steps: int | None) -> Schedule:
    """The schedule of the rates so far, warm-up left out.

    Args:
        rates: (step, learning rate), oldest first.
        planned_steps: Of the whole run; None where nobody has said, and then no cosine is seen.
    """
    peak = max((rate for _, rate in rates), default=0.0)
    if not 0 < peak < math.inf:
        return "unknown"
    first = next(place for place, (_, rate) in enumerate(rates) if rate >= (1 - SAME) * peak)
    after = rates[first:]
    start, newest = after[0][0], after[-1][0]
    if 2 * start > newest:
        return "unknown"
    if all(rate >= (1 - SAME) * peak for _, rate in after):
        return "constant"
    if planned_steps is None or planned_steps <= start:
        return "unknown"
    falls = [(1 - rate / peak, _cosine_fall((step - start) / (planned_steps - start))) for step, rate in after]
    return "cosine" if all(abs(own - fall) <= LIKE + fall / 10 for own, fall in falls) else "unknown"


def _cosine_fall(share: float) -> float:
    return 0.5 * (1 - math.cos(math.pi * min(share, 1.0)))
