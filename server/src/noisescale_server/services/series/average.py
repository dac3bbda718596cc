"""One noise scale for a whole run: the mean over steps of the resolved window values.

The ratio of whole-run sums would be wrong: |G|² falls by orders of magnitude, so it would show the run's beginning.
"""

from collections.abc import Sequence

from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, Reason, State

LEVEL = 0.95


def run_average(steps: Sequence[float], windows: Sequence[NoiseScaleEstimate]) -> NoiseScaleEstimate:
    """The mean of the resolved values, each with the weight of its steps; unresolved while there is none.

    Its interval is the mean of the windows' intervals: windows overlap and drift together, so averaging does not make
    it narrower.
    """
    resolved = [
        (weight, one) for weight, one in zip(steps, windows, strict=True) if one.state is State.RESOLVED and weight > 0
    ]
    total = sum(weight for weight, _ in resolved)

    def mean(name: str) -> float:
        return sum(weight * float(getattr(one, name)) for weight, one in resolved) / total

    return NoiseScaleEstimate(
        state=State.RESOLVED if resolved else State.UNRESOLVED,
        value=mean("value") if resolved else None,
        low=mean("low") if resolved else None,
        high=mean("high") if resolved else None,
        level=LEVEL,
        z=None,
        reason=None if resolved else (windows[-1].reason if windows else None) or Reason.TOO_FEW_UPDATES,
        updates_needed=None,
        num_updates=round(total),
        num_blocks=len(resolved),
        trace_cov=None,
        trace_cov_se=None,
        grad_sq_norm=None,
        grad_sq_norm_se=None,
    )
