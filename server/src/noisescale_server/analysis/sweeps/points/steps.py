"""How many optimizer steps a run needed, as exactly as it is known."""

import math
from dataclasses import dataclass
from enum import StrEnum

from noisescale_server.analysis.errors import AnalysisError


class Outcome(StrEnum):
    """How a run ended with regard to a target."""

    REACHED = "reached"
    NOT_REACHED = "not_reached"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True, slots=True)
class StepsToTarget:
    """Steps to the target: a value inside (low, high].

    Attributes:
        outcome: Reached; not reached by the run's end (right-censored); or infeasible, since it diverged.
        steps: Interpolated crossing; None unless reached.
        low: Last step seen before the target; the run's end if it was not reached.
        high: First step seen past the target; infinite if it was not reached.
    """

    outcome: Outcome
    steps: float | None
    low: float
    high: float

    @classmethod
    def at(cls, steps: float, *, after: float | None = None, seen_at: float | None = None) -> "StepsToTarget":
        """A target that was reached after this many steps, known within (after, seen_at] or exactly.

        Raises:
            AnalysisError: Unless 0 <= after <= steps <= seen_at, steps positive and finite.
        """
        low = steps if after is None else after
        high = steps if seen_at is None else seen_at
        if not (0 <= low <= steps <= high < math.inf and steps > 0):
            raise AnalysisError(f"steps must be positive and inside (after, seen_at], got {steps} in ({low}, {high}]")
        return cls(Outcome.REACHED, steps, low, high)

    @classmethod
    def beyond(cls, steps: float) -> "StepsToTarget":
        """A target that was not reached within this many steps.

        Raises:
            AnalysisError: Unless steps are positive and finite.
        """
        if not 0 < steps < math.inf:
            raise AnalysisError(f"a run that did not reach its target needs a positive length, got {steps} steps")
        return cls(Outcome.NOT_REACHED, None, steps, math.inf)

    @classmethod
    def never(cls) -> "StepsToTarget":
        """A run that diverged: it says nothing about the steps of a good run."""
        return cls(Outcome.INFEASIBLE, None, 0.0, math.inf)
