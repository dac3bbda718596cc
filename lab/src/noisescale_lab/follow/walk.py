"""The path of a run whose batch and learning rate change on the way, as if the present ones had held from the start.

How far the parameters got is one number of the whole path, and the lengths of its updates go with the settings of the
moment. A rate is judged by the updates that it would have made: those of each stretch are scaled to the present rate,
and for SGD to the noise of the present batch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_core.estimators.path import Path
from noisescale_core.theory.learning_rate import RuleFamily, family_of

LEAST_SHARE = 0.05
"""Of an update's square that stays at any batch: the means of the two terms of few steps may take more away."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Updates between two changes.

    Attributes:
        num_updates: How many.
        batch: In examples.
        rate_factor: Of the base learning rate, in any unit that all stretches share.
        sum_sq_norm: Σ |u|² over them, without weight decay.
        trace_cov: Mean estimate of tr Σ over them; None where it is not known.
        grad_sq_norm: Mean estimate of |G|².
    """

    num_updates: float
    batch: float
    rate_factor: float
    sum_sq_norm: float
    trace_cov: float | None = None
    grad_sq_norm: float | None = None


def path_at(
    stretches: Sequence[Stretch],
    *,
    sq_distance: float,
    momentum: float,
    optimizer: str | None,
    batch: float,
    rate_factor: float,
    variance: float = 0.0,
) -> Path | None:
    """The path as if all updates had been made with one batch and base rate; None without updates.

    Args:
        stretches: Since θ_0.
        sq_distance: |θ - θ_0|² now.
        momentum: Share of an update that the next one repeats.
        optimizer: Class name.
        batch: In examples.
        rate_factor: Of the base learning rate, in the stretches' unit.
        variance: Of Σ |u|², as some updates only were looked at.
    """
    if not stretches:
        return None
    is_sgd = family_of(optimizer) is RuleFamily.SGD
    made = math.fsum(one.sum_sq_norm for one in stretches)
    total = math.fsum(
        one.sum_sq_norm * (rate_factor / one.rate_factor) ** 2 * (_of_batch(one, batch) if is_sgd else 1.0)
        for one in stretches
    )
    scale = total / made if made > 0 else 1.0
    return Path(math.fsum(one.num_updates for one in stretches), total, variance * scale * scale, sq_distance, momentum)


def _of_batch(one: Stretch, batch: float) -> float:
    """|g|² at another batch over that of the stretch; an update of Adam is as long whatever the noise."""
    noise, signal = one.trace_cov, one.grad_sq_norm
    if one.batch == batch or noise is None or signal is None or not noise > 0:
        return 1.0
    then, now = max(signal, 0.0) + noise / batch, max(signal, 0.0) + noise / one.batch
    return max(LEAST_SHARE, then / now)
