"""What a row says of the path of the parameters."""

from typing import NamedTuple


class PathPart(NamedTuple):
    """What is new of the path since the last row, in the order of the wire format.

    Attributes:
        num_updates: Updates that the sums are of.
        sum_sq_norm: Σ |u|² over them.
        variance: Of that sum.
        sq_distance: |θ - θ_0|² after the last of them; None where it is not known.
        start: Number of the step whose update was the first since θ_0.
        momentum: Of the optimizer.
    """

    num_updates: int
    sum_sq_norm: float
    variance: float
    sq_distance: float | None
    start: int
    momentum: float

    def then(self, later: "PathPart") -> "PathPart":
        """Both as one; of another path the later one alone.

        Args:
            later: What came after it.
        """
        if later.start != self.start:
            return later
        return PathPart(
            self.num_updates + later.num_updates,
            self.sum_sq_norm + later.sum_sq_norm,
            self.variance + later.variance,
            self.sq_distance if later.sq_distance is None else later.sq_distance,
            later.start,
            later.momentum,
        )
