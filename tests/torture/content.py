"""What a writer logs: every record follows from its number, which no other record of any process has."""

import math
from dataclasses import dataclass

from noisescale_core.estimators.noise_scale import two_batch

PER_WRITER = 1_000_000
"""Numbers that one process may use."""

SMALL, BIG = 8, 64


@dataclass(frozen=True, slots=True)
class Row:
    """A stored measurement, as far as it says what was logged."""

    loss: float
    trace_cov: float
    grad_sq_norm: float


def is_measurement(number: int) -> bool:
    """Two of three records are measurements, the others metrics."""
    return number % 3 != 0


def norms_of(number: int) -> dict[str, float]:
    """The arguments of `log_norms`."""
    return {
        "small_batch_size": SMALL,
        "big_batch_size": BIG,
        "small_sq_norm": 3.0 + number % 97 / 97,
        "big_sq_norm": 1.0 + number % 89 / 890,
        "loss": float(number),
    }


def row_of(number: int) -> Row:
    """What must be stored of it."""
    given = norms_of(number)
    terms = two_batch(
        small_sq_norm=given["small_sq_norm"],
        big_sq_norm=given["big_sq_norm"],
        small_batch_size=SMALL,
        big_batch_size=BIG,
    )
    return Row(given["loss"], terms.trace_cov, terms.grad_sq_norm)


def metrics_of(number: int) -> dict[str, float]:
    """The arguments of `log_metrics`."""
    return {"number": float(number), "root": math.sqrt(number)}
