"""A run's noise scale as named numbers for logs and trackers."""

import math

from noisescale.window.recent_updates import NoiseScale

PREFIX = "noisescale/"

STATES = {"unresolved": 0.0, "tentative": 1.0, "resolved": 2.0}


def shown_values(noise_scale: NoiseScale) -> dict[str, float]:
    """Finite numbers by name: the state always, the others once they are resolved.

    `state` is 0 unresolved, 1 tentative, 2 resolved. Without a value there is no interval or term either: a tracker
    would draw a bound as if it were measured.

    Args:
        noise_scale: From `Run.noise_scale()`.
    """
    now = noise_scale.estimate
    values: dict[str, float | None] = {"state": STATES[noise_scale.state]}
    if now.value is not None:
        values |= {
            "noise_scale": now.value,
            "noise_scale_low": now.low,
            "noise_scale_high": now.high,
            "z": now.z,
            "trace_cov": now.trace_cov,
            "grad_sq_norm": now.grad_sq_norm,
        }
    return {PREFIX + name: value for name, value in values.items() if value is not None and math.isfinite(value)}
