"""What share of the best possible progress a batch size buys, per example and per step.

Both shares add to one: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.7, divided by its two limits.
"""


def example_efficiency(noise_scale: float, batch_size: float) -> float:
    """e(B) = φ / (B + φ): progress per example, relative to the best possible; 1 for tiny batches."""
    return noise_scale / (batch_size + noise_scale)


def step_efficiency(noise_scale: float, batch_size: float) -> float:
    """w(B) = B / (B + φ): progress per optimizer step, relative to the best possible; 1 for huge batches."""
    return batch_size / (batch_size + noise_scale)
