"""How long an optimizer step takes lately."""

MARK_EVERY = 50
"""Steps between two marks: the pace is that of the last 50 to 100 steps."""


class StepPace:
    """The time from one logged step to another, by two marks that move along."""

    def __init__(self) -> None:
        self._older: tuple[int, float] | None = None
        self._newer: tuple[int, float] | None = None
        self._last: tuple[int, float] | None = None

    def see(self, step: int, seconds: float) -> None:
        """A step was logged.

        Args:
            step: Its number.
            seconds: When, by any clock.
        """
        self._last = step, seconds
        if self._newer is None or step < self._newer[0]:
            self._older = self._newer = self._last
        elif step - self._newer[0] >= MARK_EVERY:
            self._older, self._newer = self._newer, self._last

    @property
    def seconds_per_step(self) -> float | None:
        """None before the second step."""
        if self._older is None or self._last is None or self._last[0] == self._older[0]:
            return None
        return max(0.0, self._last[1] - self._older[1]) / (self._last[0] - self._older[0])
