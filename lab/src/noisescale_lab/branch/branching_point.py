"""Where a run stood when its branches left it, and what they add to what its noise scale says."""

from dataclasses import dataclass

from noisescale.run.run import Run
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate


@dataclass(frozen=True, slots=True)
class BranchingPoint:
    """A run at one moment.

    Attributes:
        step: Its last optimizer step that was logged.
        noise_scale: Kind `simple` of the latest window, in examples.
    """

    step: int
    noise_scale: NoiseScaleEstimate


@dataclass(frozen=True, slots=True)
class KappaBounds:
    """Between what κ = B_crit ÷ noise scale lies here; None where branches set no bound.

    Attributes:
        low: Largest batch as good as every smaller one, over the upper end of the noise scale.
        high: Smallest batch that was worse than a smaller one, over its lower end.
    """

    low: float | None
    high: float | None


def point_of(run: Run | None) -> BranchingPoint | None:
    """Where the run stands; None without a run that records."""
    if run is None or not run.is_recording:
        return None
    return BranchingPoint(run.newest_step, run.noise_scale().estimate)


def kappa_bounds(point: BranchingPoint | None, low: float | None, high: float | None) -> KappaBounds | None:
    """What a local critical batch between `low` and `high` says of κ; None where it or the noise scale is unknown.

    Args:
        point: Where the branches left.
        low: Largest batch size that was as good as every smaller one, in examples; None if none was shown to be.
        high: Smallest one that was worse than a smaller one; None if none was.
    """
    if point is None or (low is None and high is None):
        return None
    scale = point.noise_scale
    if scale.value is None or scale.low is None or scale.high is None:
        return None
    # an interval that reaches 0 bounds κ on one side only
    above = high / scale.low if high is not None and scale.low > 0 else None
    return KappaBounds(None if low is None else low / scale.high, above)


def said(point: BranchingPoint, bounds: KappaBounds | None) -> str:
    """The noise scale of that moment, and what the branches make of it."""
    scale = point.noise_scale
    if scale.value is None or scale.low is None or scale.high is None:
        return f"Step {point.step:,}: the noise scale is not resolved there, so these branches stand alone."
    shown = f"Step {point.step:,}: noise scale {scale.value:,.4g} [{scale.low:,.4g}, {scale.high:,.4g}] examples"
    if bounds is None:
        return f"{shown}; these branches do not bound the critical batch."
    ends = [
        part
        for part in (
            None if bounds.low is None else f"above {bounds.low:.3g}",
            None if bounds.high is None else f"below {bounds.high:.3g}",
        )
        if part is not None
    ]
    return f"{shown}; here κ, critical batch ÷ noise scale, is {' and '.join(ends)}."
