"""Says how long it takes until the noise scale is resolved, and when it is."""

from collections.abc import Callable

from noisescale.guard import Notices
from noisescale.window.recent_updates import MIN_UPDATES, NoiseScale


class Outlook:
    """Looks after 16 updates, 32, 64 and so on: what is foretold changes with the logarithm of what is known.

    Attributes:
        next: Updates at the next look.
    """

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self.next = MIN_UPDATES
        self._has_said_resolved = False

    def look(self, num_updates: int, noise_scale: Callable[[], NoiseScale]) -> None:
        """Say where the run stands, if it is time to."""
        if num_updates < self.next or self._has_said_resolved:
            return
        self.next = 2 * num_updates
        now = noise_scale()
        self._has_said_resolved = now.state == "resolved" and now.early is None  # what is early is said again
        self._notices.say(f"noise scale after {num_updates} measured steps: {now}")
