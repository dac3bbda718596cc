"""What a run has spent so far that smaller batches would not have needed."""

from collections.abc import Sequence

from noisescale_core.advice.limits.predictions import scaled
from noisescale_core.advice.parts.parts import Interval, SpentPoint, Waste
from noisescale_core.theory.cost import SECONDS_PER_HOUR
from noisescale_core.theory.efficiency import step_efficiency


def waste(spent: Sequence[SpentPoint], usd_spent: float | None, *, devices_stay: bool = False) -> Waste | None:
    """Examples so far that smaller batches would not have needed; None where no stretch has a bounded noise scale.

    Args:
        spent: The run so far, stretch by stretch.
        usd_spent: Its money; None without a price.
        devices_stay: The devices are what they are whatever the batch: then time and money do not go with examples.

    Source: an ideal step costs B + φ examples at batch B, φ of them unavoidable (McCandlish et al. 2018, appendix D.1).
    """
    all_examples = sum(point.examples for point in spent)
    known = [
        (p.examples, p.batch_size, p.value, p.low or 0.0, p.high)
        for p in spent
        if p.batch_size is not None and p.value is not None and p.high is not None
    ]
    covered = sum(examples for examples, *_ in known)
    if covered <= 0:
        return None
    value = sum(e * step_efficiency(phi, b) for e, b, phi, _, _ in known)
    least = sum(e * step_efficiency(high, b) for e, b, _, _, high in known)
    most = sum(e * step_efficiency(low, b) for e, b, _, low, _ in known)
    fraction = Interval(value / covered, least / covered, most / covered)
    usd = None if usd_spent is None or devices_stay else scaled(fraction, usd_spent)
    seconds = sum(point.seconds for point in spent if point.seconds)
    hours = scaled(fraction, seconds / SECONDS_PER_HOUR) if seconds and not devices_stay else None
    return Waste(Interval(value, least, most), fraction, covered / all_examples, usd, hours)
