"""The best learning rate as a function of the batch size: three published curves, to predict with or to fit.

All learning rates are in the optimizer's own unit, all batches and noise scales in examples.
"""

import math
from dataclasses import dataclass

from noisescale_core.theory.domain import require_positive

_BATCH = "a batch holds at least one example"
_FIT = "fit it to the best learning rates of at least three batch sizes"


@dataclass(frozen=True, slots=True)
class SaturatingCurve:
    """ε(B) = ε* / (1 + B*/B)^α: rises as B^α far below B*, constant far above.

    α = 1 for SGD, where B* is the noise scale (eq. 2.6), and between 0.5 and 1 for Adam and RMSprop.
    Source: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.6 and appendix A.2, eq. A.3.

    Attributes:
        limit: ε*, the best learning rate of huge batches.
        batch_scale: B*.
        exponent: α.
    """

    limit: float
    batch_scale: float
    exponent: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no curve.

        Raises:
            DomainError: If a parameter is not positive.
        """
        require_positive(_FIT, limit=self.limit, batch_scale=self.batch_scale, exponent=self.exponent)

    def at(self, batch: float) -> float:
        """ε(B).

        Args:
            batch: B in examples.

        Raises:
            DomainError: If the batch is not positive.
        """
        require_positive(_BATCH, batch=batch)
        return self.limit / math.pow(1 + self.batch_scale / batch, self.exponent)


@dataclass(frozen=True, slots=True)
class SurgeCurve:
    """ε(B) = 2 ε_max / (√(B_n/B) + √(B/B_n)): rises as √B, peaks at B_n, falls beyond.

    For sign-like updates (Adam). The curve is the published one near and below its peak; a better approximation levels
    off at a constant for huge batches, where this one goes on falling.
    Source: Li et al. 2024, arXiv:2405.14578, eq. 2.

    Attributes:
        peak: ε_max, the largest best learning rate.
        peak_batch: B_n, the batch at which it is best.
    """

    peak: float
    peak_batch: float

    def __post_init__(self) -> None:
        """Refuse what is no curve.

        Raises:
            DomainError: If a parameter is not positive.
        """
        require_positive(_FIT, peak=self.peak, peak_batch=self.peak_batch)

    def at(self, batch: float) -> float:
        """ε(B).

        Args:
            batch: B in examples.

        Raises:
            DomainError: If the batch is not positive.
        """
        require_positive(_BATCH, batch=batch)
        return 2 * self.peak / (math.sqrt(self.peak_batch / batch) + math.sqrt(batch / self.peak_batch))


@dataclass(frozen=True, slots=True)
class PowerCurve:
    """ε(B) = ε_1 B^p: p = 1/2 is the square-root rule, p = 1 the linear one (Goyal et al. 2017, arXiv:1706.02677).

    Attributes:
        at_one: ε_1, extrapolated to a batch of one example.
        exponent: p.
    """

    at_one: float
    exponent: float = 0.5

    def __post_init__(self) -> None:
        """Refuse what is no curve.

        Raises:
            DomainError: If a parameter is not positive.
        """
        require_positive(_FIT, at_one=self.at_one, exponent=self.exponent)

    def at(self, batch: float) -> float:
        """ε(B).

        Args:
            batch: B in examples.

        Raises:
            DomainError: If the batch is not positive.
        """
        require_positive(_BATCH, batch=batch)
        return self.at_one * math.pow(batch, self.exponent)


SVHN_SGD = SaturatingCurve(limit=0.27, batch_scale=96.0)
"""Fitted to SVHN with SGD. Source: McCandlish et al. 2018, arXiv:1812.06162, appendix D.2, footnote 20."""
