"""What a logged run wasted, and what it would have taken at another batch: from one run's own noise scales.

A real step at batch B makes w = B / (B + φ) ideal steps. The ideal steps of a run are what it achieved, so any other
batch needs S' = Σ w (1 + φ / B') steps for the same. Exact under the quadratic model of McCandlish et al. 2018,
arXiv:1812.06162, eq. 2.7 and D.1: it assumes the best learning rate at both batches and a noise scale that depends on
the progress alone.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from noisescale_core.errors import DomainError
from noisescale_core.theory.domain import require_any, require_positive
from noisescale_core.theory.efficiency import step_efficiency

_PIECES = "give the resolved stretches of a run"


@dataclass(frozen=True, slots=True)
class LoggedPiece:
    """A part of a run in which batch and noise scale were measured.

    Attributes:
        num_steps: Optimizer steps.
        batch: B in examples.
        noise_scale: φ in examples.
        low: Lower end of its interval; the value itself where none is given.
        high: Upper end.
    """

    num_steps: float
    batch: float
    noise_scale: float
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        """Refuse what was not measured.

        Raises:
            DomainError: If a number is out of range, or the noise scale outside its interval.
        """
        require_positive("leave out pieces without steps", num_steps=self.num_steps, batch=self.batch)
        require_positive("leave out pieces where it is not resolved", noise_scale=self.noise_scale)
        if not 0 <= self.least <= self.noise_scale <= self.most < math.inf:
            raise DomainError(
                f"noise_scale must lie between low and high, got {self.noise_scale:g} with low={self.low} and "
                f"high={self.high}: leave out pieces where it is not bounded"
            )

    @property
    def least(self) -> float:
        """The lower end, or the value."""
        return self.noise_scale if self.low is None else self.low

    @property
    def most(self) -> float:
        """The upper end, or the value."""
        return self.noise_scale if self.high is None else self.high

    @property
    def ideal_steps(self) -> float:
        """Progress of the piece, in steps of a huge batch."""
        return self.num_steps * step_efficiency(self.noise_scale, self.batch)


@dataclass(frozen=True, slots=True)
class ErrorRange:
    """A number between the ends that it takes where every piece errs to the same side: wider than any confidence needs.

    Attributes:
        value: At the measured noise scales.
        low: The least that the pieces' intervals allow.
        high: The most.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """What a run would have taken at another constant batch.

    Attributes:
        batch: B' in examples.
        steps: S', optimizer steps.
        examples: E' = B' S'.
    """

    batch: float
    steps: ErrorRange
    examples: ErrorRange


def had_we_used(pieces: Sequence[LoggedPiece], *, batch: float) -> Counterfactual:
    """Steps and examples of the same progress at a constant batch B': S' = Σ n w (1 + φ / B').

    Args:
        pieces: Oldest first.
        batch: B' in examples.

    Raises:
        DomainError: If there are no pieces or the batch is not positive.
    """
    require_positive("a batch holds at least one example", batch=batch)
    # each term is monotone in its φ, rising where B' < B: its ends are those of the interval
    steps = _sum(
        pieces, lambda piece, phi: piece.num_steps * (piece.batch / batch) * (batch + phi) / (piece.batch + phi)
    )
    return Counterfactual(batch, steps, ErrorRange(batch * steps.value, batch * steps.low, batch * steps.high))


def _sum(pieces: Sequence[LoggedPiece], term: Callable[[LoggedPiece, float], float]) -> ErrorRange:
    require_any("pieces", len(pieces), _PIECES)
    ends = [sorted((term(piece, piece.least), term(piece, piece.most))) for piece in pieces]
    return ErrorRange(
        value=math.fsum(term(piece, piece.noise_scale) for piece in pieces),
        low=math.fsum(low for low, _ in ends),
        high=math.fsum(high for _, high in ends),
    )
