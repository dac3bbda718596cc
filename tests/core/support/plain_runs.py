"""A run of which only a window is known, for the tests of its decision: noise scale 1,000 at batch 256, no plan."""

from noisescale_core.advice.parts.parts import RunSoFar
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, Reason, State


def noise_scale(value=1000.0, low=800.0, high=1300.0, z=7.0, **changes):
    fields = {
        "state": State.RESOLVED,
        "value": value,
        "low": low,
        "high": high,
        "level": 0.95,
        "z": z,
        "reason": None,
        "updates_needed": None,
        "num_updates": 64,
        "num_blocks": 16,
        "trace_cov": 1.0,
        "trace_cov_se": 0.1,
        "grad_sq_norm": 0.001,
        "grad_sq_norm_se": 0.0001,
    }
    return NoiseScaleEstimate(**(fields | changes))


def unresolved(low=650.0, reason=Reason.INTERVAL_UNBOUNDED, z=1.2, updates_needed=900):
    return noise_scale(
        state=State.UNRESOLVED, value=None, low=low, high=None, z=z, reason=reason, updates_needed=updates_needed
    )


def run(batch_size=256.0, estimate=None, **changes):
    fields = {"optimizer": "SGD", "learning_rate": 0.1, "example": "image", "unit": "images"}
    return RunSoFar(noise_scale=estimate or noise_scale(), batch_size=batch_size, **(fields | changes))
