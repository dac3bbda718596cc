"""Learning rates so low that the noise scale says little about B_crit (McCandlish et al. 2018, appendix C)."""

import math

from noisescale_core.advice.parts.known_noise_scale import says_something
from noisescale_core.advice.parts.parts import RunSetting, SpentPoint
from noisescale_core.theory.temperature import informs_critical_batch


def is_decayed(run: RunSetting) -> bool:
    """Whether the learning rate has fallen below a tenth of its peak, so that φ is mostly the decay's.

    Args:
        run: With the learning rates of what it has spent.
    """
    rates = [point.learning_rate for point in run.spent if point.learning_rate is not None]
    peak = max((rate for rate in rates if math.isfinite(rate)), default=0.0)
    if run.learning_rate is None or not peak > 0 or not run.learning_rate >= 0:
        return False
    return not informs_critical_batch(learning_rate=run.learning_rate, peak_learning_rate=peak)


def last_informed_step(run: RunSetting) -> int | None:
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


def informs(point: SpentPoint, peak_learning_rate: float) -> bool:
    """Whether the learning rate was high enough for the noise scale to say something about B_crit.

    Args:
        point: A stretch.
        peak_learning_rate: Of the run so far; 0 where no rate was logged.
    """
    return says_something(point.learning_rate, peak_learning_rate)
