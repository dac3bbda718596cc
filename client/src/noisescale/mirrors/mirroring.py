"""The newest noise scale, repeated in the experiment tracker that a team already has."""

import math
from collections.abc import Callable

from noisescale.guard import Faults, never_raises
from noisescale.mirrors.trackers import Mirror
from noisescale.window.recent_updates import NoiseScale

PREFIX = "noisescale/"

STATES = {"unresolved": 0.0, "tentative": 1.0, "resolved": 2.0}

MIRROR_SECONDS = 1.0


# A run's noise scale as named numbers for logs and trackers.


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


class Mirroring:
    """Hands the latest window to a mirror, at most once a second.

    Args:
        mirror: Where to.
        now: Seconds.
        faults: Told about errors of the mirror.
    """

    is_recording = True

    def __init__(self, mirror: Mirror, now: Callable[[], float], faults: Faults) -> None:
        self.faults = faults
        self._mirror = mirror
        self._now = now
        self._last_time: float | None = None
        self._last_step: int | None = None

    def leave_out(self, call: str) -> None:
        """Never asked to: it always records."""

    @never_raises
    def offer(self, step: int, noise_scale: Callable[[], NoiseScale], *, is_last: bool = False) -> None:
        """Mirror this step's noise scale if a second has passed, or if it is the last one and not mirrored yet."""
        now = self._now()
        is_due = self._last_time is None or now - self._last_time >= MIRROR_SECONDS or is_last
        if is_due and step != self._last_step:
            self._last_time, self._last_step = now, step
            self._mirror.log(step, shown_values(noise_scale()))
