"""How far estimates are from the truth, and two estimators on the same replicates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.truth.step import Array

ABSURD = np.log(10.0)
"""|log B̂ / B| beyond which a number is absurd."""


@dataclass(frozen=True, slots=True)
class Score:
    """Errors of one estimator over replicates.

    Attributes:
        rms: Root mean square of log B̂ / B where there is a number.
        rms_se: Its standard error.
        median: Median of log B̂ / B there.
        without_number: Share of replicates without a positive finite number.
        absurd: Share of replicates with a number off by more than a factor of 10.
    """

    rms: float
    rms_se: float
    median: float
    without_number: float
    absurd: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two estimators on the replicates where both give a number.

    Attributes:
        replicates: How many those are.
        ours: Root mean square of log B̂ / B of ours.
        peer: The same of the peer.
        ratio: Ours ÷ peer.
        ratio_se: Its standard error; the pairing keeps it small.
    """

    replicates: int
    ours: float
    peer: float
    ratio: float
    ratio_se: float


def log_errors(estimates: Array, truths: Array) -> Array:
    """The logarithm of B̂ / B, nan where B̂ is no positive finite number."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(is_number(estimates), np.log(np.where(is_number(estimates), estimates, 1.0) / truths), np.nan)


def is_number(estimates: Array) -> NDArray[np.bool_]:
    """Positive and finite."""
    return np.isfinite(estimates) & (estimates > 0)


def score(estimates: Array, truths: Array) -> Score:
    """The errors of estimates [R] of truths [R]."""
    errors = log_errors(estimates, truths)
    present = errors[np.isfinite(errors)]
    if len(present) < 2:
        return Score(np.nan, np.nan, np.nan, 1 - len(present) / len(errors), 0.0)
    rms = root_mean_square(present)
    return Score(
        rms=rms,
        rms_se=float(np.std(present**2) / (2 * rms * np.sqrt(len(present)))),
        median=float(np.median(present)),
        without_number=1 - len(present) / len(errors),
        absurd=float((np.abs(present) > ABSURD).sum() / len(errors)),
    )


def compare(ours: Array, peer: Array, truths: Array) -> Comparison:
    """Errors of both on the replicates where both give a number."""
    our_errors, peer_errors = log_errors(ours, truths), log_errors(peer, truths)
    both = np.isfinite(our_errors) & np.isfinite(peer_errors)
    count = int(both.sum())
    if count < 2:
        return Comparison(count, np.nan, np.nan, np.nan, np.nan)
    our_rms, peer_rms = root_mean_square(our_errors[both]), root_mean_square(peer_errors[both])
    # The ratio of two means of squares to first order: half the spread of the difference of relative squares.
    spread = np.std((our_errors[both] / our_rms) ** 2 - (peer_errors[both] / peer_rms) ** 2)
    ratio = our_rms / peer_rms
    return Comparison(count, our_rms, peer_rms, ratio, float(ratio * spread / (2 * np.sqrt(count))))


def root_mean_square(values: Array) -> float:
    """√ mean of squares."""
    return float(np.sqrt(np.mean(values**2)))
