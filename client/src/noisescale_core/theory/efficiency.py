"""What share of the best possible progress a batch size buys, per example and per step.

Both shares add to one: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.7, divided by its two limits.
"""

from noisescale_core.theory.domain import require_not_negative, require_positive


def example_efficiency(noise_scale: float, batch_size: float) -> float:
    """e(B) = φ / (B + φ): progress per example, relative to the best possible; 1 for tiny batches.

    Args:
        noise_scale: φ in examples; 0 and infinity are its limits.
        batch_size: B in examples.

    Raises:
        DomainError: If the noise scale is negative or the batch not positive.
    """
    _check(noise_scale, batch_size)
    return 1 / (1 + batch_size / noise_scale) if noise_scale > 0 else 0.0


def step_efficiency(noise_scale: float, batch_size: float) -> float:
    """w(B) = B / (B + φ): progress per optimizer step, relative to the best possible; 1 for huge batches.

    Args:
        noise_scale: φ in examples; 0 and infinity are its limits.
        batch_size: B in examples.

    Raises:
        DomainError: If the noise scale is negative or the batch not positive.
    """
    _check(noise_scale, batch_size)
    return 1 / (1 + noise_scale / batch_size)


def _check(noise_scale: float, batch_size: float) -> None:
    require_not_negative("an unresolved noise scale has a bound, no value", noise_scale=noise_scale)
    require_positive("a batch holds at least one example", batch_size=batch_size)
