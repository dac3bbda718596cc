"""The newest noise scale, repeated in the experiment tracker that a team already has."""

from collections.abc import Callable

from noisescale.guard import Faults, never_raises
from noisescale.mirrors.shown_values import shown_values
from noisescale.mirrors.trackers import Mirror
from noisescale.window.recent_updates import NoiseScale

MIRROR_SECONDS = 1.0


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
