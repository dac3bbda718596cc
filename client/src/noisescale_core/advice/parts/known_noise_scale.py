"""What a run's looks say of its noise scale: without those at learning rates so low that φ is mostly the decay's."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noisescale_core.estimators.belief import Belief, belief
from noisescale_core.estimators.looks import Look
from noisescale_core.theory.temperature import informs_critical_batch

if TYPE_CHECKING:
    from noisescale_core.advice.parts.parts import RunSetting, SpentPoint


@dataclass(frozen=True, slots=True)
class KnownNoiseScale:
    """The noise scale by all looks that count, and the moment that it is of: that of the last of them.

    Attributes:
        belief: How likely each noise scale is, in examples.
        share: Of the updates so far, those up to that moment.
        relative_rate: Learning rate there, over the highest so far; 1 where none was logged.
    """

    belief: Belief
    share: float = 1.0
    relative_rate: float = 1.0


def known_noise_scale(looks: Sequence[Look]) -> KnownNoiseScale | None:
    """What the looks say together; None before 8 measured steps, or where no look can be used.

    Args:
        looks: Of the run so far, oldest first.
    """
    peak = max((one.learning_rate or 0.0 for one in looks), default=0.0)
    places = [place for place, one in enumerate(looks) if says_something(one.learning_rate, peak)]
    found = belief([looks[place] for place in places])
    if found is None:
        return None
    done, last = math.fsum(one.num_updates for one in looks), places[-1]
    until = math.fsum(one.num_updates for one in looks[: last + 1])
    return KnownNoiseScale(found, until / done, _relative_rate(looks, looks[last]))


def _relative_rate(looks: Sequence[Look], last: Look) -> float:
    """Rate of a look over the highest so far; 1 where none was logged.

    Rates of larger batches count as what they would be at the batch of that look: one that fell with its batch has not
    decayed, and φ does not rise by it.
    """
    rates = [one.learning_rate * min(1.0, _batch(last) / _batch(one)) for one in looks if one.learning_rate]
    rate, peak = last.learning_rate, max(rates, default=0.0)
    return min(1.0, rate / peak) if rate and 0 < peak < math.inf and rate > 0 else 1.0


def _batch(look: Look) -> float:
    """Its mean batch; 1 where none is known, as for all looks of a run then."""
    return look.examples / look.num_batches if look.num_batches and look.examples > 0 else 1.0


def says_something(learning_rate: float | None, peak: float) -> bool:
    """Whether φ at this learning rate tells anything of B_crit; yes where no rate was logged.

    Args:
        learning_rate: At the time.
        peak: The highest so far.
    """
    if learning_rate is None or not learning_rate >= 0 or not 0 < peak < math.inf:
        return True
    return informs_critical_batch(learning_rate=learning_rate, peak_learning_rate=peak)


# Learning rates so low that the noise scale says little about B_crit (McCandlish et al. 2018, appendix C).


def is_decayed(run: "RunSetting") -> bool:
    """Whether the learning rate has fallen below a tenth of its peak, so that φ is mostly the decay's.

    Args:
        run: With the learning rates of what it has spent.
    """
    rates = [point.learning_rate for point in run.spent if point.learning_rate is not None]
    peak = max((rate for rate in rates if math.isfinite(rate)), default=0.0)
    if run.learning_rate is None or not peak > 0 or not run.learning_rate >= 0:
        return False
    return not informs_critical_batch(learning_rate=run.learning_rate, peak_learning_rate=peak)


def last_informed_step(run: "RunSetting") -> int | None:
    """The last step at which the learning rate still said something; None where the stretches do not tell.

    Args:
        run: With the learning rates and steps of what it has spent.
    """
    peak = max((point.learning_rate or 0.0 for point in run.spent), default=0.0)
    step = float(run.steps_done)
    for point in reversed(run.spent):
        if informs(point, peak):
            return round(step) - 1 if step >= 1 else None
        if point.num_steps is None:
            return None
        step -= point.num_steps
    return None


def informs(point: "SpentPoint", peak_learning_rate: float) -> bool:
    """Whether the learning rate was high enough for the noise scale to say something about B_crit.

    Args:
        point: A stretch.
        peak_learning_rate: Of the run so far; 0 where no rate was logged.
    """
    return says_something(point.learning_rate, peak_learning_rate)
