"""Which batch is in use where steps differ in size, and from where on a smaller step tells too little."""

from collections.abc import Sequence
from statistics import median_high

SEEN = 16
"""Steps among which a size is usual: after half as many of another size, that one is."""

FAR_SMALLER = 2**-0.5
"""Share of the usual size below which a step is left out.

One step of n examples tells |G|² with a variance near 2 (tr Σ)² / n² where noise rules. The mean over k steps of N
examples and one of r N has (k + 1/r²) / (k + 1)² of that, beside 1/k without it: less only while r² ≥ ½, for large
k. The choice is by sizes alone, so what stays is unbiased. Measured, the interval is 5 % wider with one step of r =
0.78 in eight than without it (benchmarks/results/rests.csv): what is taken is not weighted by its size.
"""


def is_far_smaller(size: float, sizes: Sequence[float]) -> bool:
    """Whether a step has far fewer examples than most of the last ones, itself included.

    Args:
        size: Its examples.
        sizes: Examples of the last steps, not empty; of two sizes in turn the larger is the usual one.
    """
    return size < FAR_SMALLER * median_high(sizes)


def batch_in_use(sizes: Sequence[float]) -> float | None:
    """The batch of a run: what the last two steps agree on, else what is usual; None without steps.

    Args:
        sizes: Examples of the last steps, without those that are far smaller.
    """
    if not sizes:
        return None
    return sizes[-1] if len(sizes) > 1 and sizes[-1] == sizes[-2] else median_high(sizes)
