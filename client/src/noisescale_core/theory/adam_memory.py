"""How Adam's memory follows the batch: betas and epsilon.

Far below the noise scale Adam's updates approximate one stochastic differential equation for every batch, if with
B' = k B the learning rate grows by √k, 1 - β by k, and ε shrinks by √k, as v̂ does. The equation needs noise to dominate
and k (1 - β) to stay below one. Source: Malladi et al. 2022, arXiv:2205.10287, the square-root scaling rule.
"""

import math

from noisescale_core.theory.learning_rate import BatchChange, Change

_SOURCE = "Malladi et al. 2022, arXiv:2205.10287"


def beta(field: str, before: float, batch: BatchChange) -> Change:
    """β' = 1 - k (1 - β), and β^k as the alternative that keeps the half-life in examples.

    Both agree to first order in k (1 - β). The alternative is Marek et al. 2025, arXiv:2507.07101, who tested β2.

    Args:
        field: "beta1" or "beta2".
        before: β.
        batch: From which batch to which.
    """
    after = 1 - batch.factor * (1 - before)
    text = "The alternative β^k keeps the half-life in examples."
    if after < 0:
        text = (
            f"The rule ends at k = {1 / (1 - before):.3g}; at k = {batch.factor:.3g} it would be {after:.3g}, and no "
            "decay is negative. " + text
        )
    return Change(
        field=field,
        before=before,
        after=after if after >= 0 else None,
        rule="1 - k (1 - β)",
        holds_for="both batches below the noise scale, and k (1 - β) well below 1",
        is_in_range=batch.is_below_noise_scale and after >= 0,
        is_verified=True,
        source=_SOURCE,
        alternative=before**batch.factor,
        text=text,
    )


def epsilon(before: float, batch: BatchChange) -> Change:
    """ε' = ε / √k: √v̂ is the size of the batch's noise, which falls as √k.

    Args:
        before: ε, added to √v̂.
        batch: From which batch to which.
    """
    return Change(
        field="epsilon",
        before=before,
        after=before / math.sqrt(batch.factor),
        rule="ε / √k",
        holds_for="both batches below the noise scale",
        is_in_range=batch.is_below_noise_scale,
        is_verified=True,
        source=_SOURCE,
        text="It matters only where ε is not small against √v̂.",
    )
