"""What a run's looks say of its noise scale: without those at learning rates so low that φ is mostly the decay's."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
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


class Peak:
    """The highest learning rate of a run, as it would be at each batch.

    A rate of a larger batch counts as what the proportional rule makes of it: one that fell with its batch has not
    decayed, and φ does not rise by it, as it goes by rate over batch (McCandlish et al. 2018, appendix C).
    """

    def __init__(self, stretches: Iterable[tuple[float | None, float | None]]) -> None:
        """Read off what a run has spent.

        Args:
            stretches: Learning rate and batch in examples of each; None where it is not known.
        """
        known = sorted((batch or 0.0, rate) for rate, batch in stretches if rate and 0 < rate < math.inf)
        self._batches = [batch for batch, _ in known]
        self._up_to = [0.0, *accumulate((rate for _, rate in known), max)]
        per_example = (rate / batch if batch > 0 else 0.0 for batch, rate in reversed(known))
        self._beyond = [0.0, *accumulate(per_example, max)][::-1]

    def at(self, batch: float | None) -> float:
        """The highest rate of all, in terms of this batch; 0 where none was logged.

        Args:
            batch: In examples; None where it is not known, and rates count as they are.
        """
        place = bisect_right(self._batches, batch) if batch else len(self._batches)
        return max(self._up_to[place], (batch or 0.0) * self._beyond[place])

    def informs(self, learning_rate: float | None, batch: float | None) -> bool:
        """Whether φ at this rate and batch tells anything of B_crit; yes where no rate was logged.

        Args:
            learning_rate: At the time.
            batch: In examples, at the time.
        """
        peak = self.at(batch)
        if learning_rate is None or not learning_rate >= 0 or not 0 < peak < math.inf:
            return True
        return informs_critical_batch(learning_rate=learning_rate, peak_learning_rate=peak)


def known_noise_scale(looks: Sequence[Look]) -> KnownNoiseScale | None:
    """What the looks say together; None before 8 measured steps, or where no look can be used.

    Args:
        looks: Of the run so far, oldest first.
    """
    peak = Peak((one.learning_rate, _batch(one)) for one in looks)
    places = [place for place, one in enumerate(looks) if peak.informs(one.learning_rate, _batch(one))]
    found = belief([looks[place] for place in places])
    if found is None:
        return None
    done, last = math.fsum(one.num_updates for one in looks), places[-1]
    until = math.fsum(one.num_updates for one in looks[: last + 1])
    rate, highest = looks[last].learning_rate, peak.at(_batch(looks[last]))
    relative_rate = min(1.0, rate / highest) if rate and 0 < highest < math.inf and rate > 0 else 1.0
    return KnownNoiseScale(found, until / done, relative_rate)


def _batch(look: Look) -> float | None:
    """Its mean batch in examples."""
    return look.examples / look.num_batches if look.num_batches and look.examples > 0 else None


# Learning rates so low that the noise scale says little about B_crit (McCandlish et al. 2018, appendix C).


def peak_of(spent: Iterable["SpentPoint"]) -> Peak:
    """The highest learning rate of a run's stretches.

    Args:
        spent: They.
    """
    return Peak((point.learning_rate, point.batch_size) for point in spent)


def is_decayed(run: "RunSetting") -> bool:
    """Whether the learning rate has fallen below a tenth of its peak, so that φ is mostly the decay's.

    Args:
        run: With the learning rates of what it has spent.
    """
    return run.learning_rate is not None and not peak_of(run.spent).informs(run.learning_rate, run.batch_size)


def last_informed_step(run: "RunSetting") -> int | None:
    """The last step at which the learning rate still said something; None where the stretches do not tell.

    Args:
        run: With the learning rates and steps of what it has spent.
    """
    peak = peak_of(run.spent)
    step = float(run.steps_done)
    for point in reversed(run.spent):
        if peak.informs(point.learning_rate, point.batch_size):
            return round(step) - 1 if step >= 1 else None
        if point.num_steps is None:
            return None
        step -= point.num_steps
    return None
