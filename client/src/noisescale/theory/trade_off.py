"""The trade-off between optimizer steps and examples, and the batch size that prices choose.

Model: S = S_min (1 + B_crit / B), E = B S, so (S / S_min - 1)(E / E_min - 1) = 1 with B_crit = E_min / S_min.
Source: McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11 and appendix D.1. The cost model is J = r S + E,
where r is how many examples one would spend to save one optimizer step.
"""

import math


def steps_factor(*, from_batch: float, to_batch: float, critical_batch: float) -> float:
    """S(to) / S(from): how the number of optimizer steps to the same loss changes."""
    return (1 + critical_batch / to_batch) / (1 + critical_batch / from_batch)


def examples_factor(*, from_batch: float, to_batch: float, critical_batch: float) -> float:
    """E(to) / E(from): how the number of examples to the same loss changes."""
    return (critical_batch + to_batch) / (critical_batch + from_batch)


def best_batch(*, critical_batch: float, examples_per_step: float) -> float:
    """B that minimises r S + E: √(r B_crit), r in examples per step."""
    # a ratio under the root: the product of two large numbers overflows where their geometric mean does not
    return critical_batch * math.sqrt(examples_per_step / critical_batch)


def exchange_rate(*, preference: float, critical_batch: float) -> float:
    """The r, in examples per step, that a preference between examples (0) and steps (1) stands for.

    Minimising λ log S + (1 - λ) log E gives B = B_crit λ / (1 - λ), which is √(r B_crit) at r = B_crit (λ / (1 - λ))².

    Raises:
        ValueError: Unless 0 < preference < 1: at the ends the best batch is 0 or infinite.
    """
    if not 0 < preference < 1:
        raise ValueError(f"preference must be between 0 and 1, both excluded, got {preference:g}: 0.5 is balanced")
    odds = preference / (1 - preference)
    return critical_batch * odds * odds


def regret(*, batch: float, best: float) -> float:
    """Extra cost of training at a batch other than the best one, as a share.

    (2 + x + 1/x) / 4 - 1 for x = batch / best: 3 % at 1.4 ×, 12.5 % at 2 ×, 56 % at 4 ×. Exact at r = B_crit, where
    steps and examples are valued alike; at every other price it is less.
    """
    x = batch / best
    return (2 + x + 1 / x) / 4 - 1
