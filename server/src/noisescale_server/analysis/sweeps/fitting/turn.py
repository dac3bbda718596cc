"""What is said of a sweep's turn."""

from dataclasses import dataclass

from noisescale_server.analysis.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Turn:
    """That examples to the target rise again at small batches, as E = E_0 (1 + B / B_crit + (s / B)^p).

    Attributes:
        best_batch: B_opt, the batch with the fewest examples; an end is None where it lies beyond the batch sizes.
        rise: Examples at the smallest batch size over those at B_opt, less 1, by the curve.
        probability: Of so clear a turn by chance.
        batch_sizes: Below B_opt, where the rise is more than the theory's.
        start: s, in examples.
        power: p.
        explanation: What was left out of S_min, E_min and B_crit, and why, for a reader.
    """

    best_batch: Estimate
    rise: float
    probability: float
    batch_sizes: tuple[float, ...]
    start: float
    power: float
    explanation: str
