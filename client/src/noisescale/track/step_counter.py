"""Numbers the optimizer steps of a run and counts its examples."""

import math
import operator
from collections import deque
from statistics import median_high

from noisescale.guard import Notices
from noisescale.rows.updates import Update
from noisescale_core.advice.parts.reasons import OF_FLAGS, code_of
from noisescale_core.errors import ConfigError
from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.step_sizes import SEEN, batch_in_use, is_far_smaller

MARK_EVERY = 50
"""Steps between two marks: the pace is that of the last 50 to 100 steps."""

LARGEST = 1 << 53


# The sizes of a run's steps: the batch in use, and which steps are too small to tell anything beside the others.


class RecentSizes:
    """The sizes of the last steps.

    Args:
        notices: Says once that a step is left out.
    """

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._seen: deque[float] = deque(maxlen=SEEN)
        self._kept: deque[float] = deque(maxlen=SEEN)
        self._newest: float | None = None

    @property
    def batch_in_use(self) -> float | None:
        """Examples of a step as they are now; None while unknown."""
        return batch_in_use(self._kept)

    def sees_again(self, size: float) -> bool:
        """Take a step with as many examples as the one before; False for one with others, which is not taken."""
        if size != self._newest:
            return False
        self._seen.append(size)
        self._kept.append(size)
        return True

    def see(self, update: Update) -> Update:
        """The update, without its terms where it has far fewer examples than most steps."""
        size = update.global_batch
        if size is None:
            return update
        if update.terms is None:
            self._kept.append(size)
            return update
        self._seen.append(size)
        # nearly all steps are as the one before, and that is all they pay
        if size != self._newest and is_far_smaller(size, self._seen):
            self._say(size)
            return update._replace(terms=None, layers=None, flags=update.flags | Flags.SMALLER_STEP)
        self._newest = size
        self._kept.append(size)
        return update

    def _say(self, size: float) -> None:
        words = OF_FLAGS[Flags.SMALLER_STEP].warning.format(size=f"{size:,g}", usual=f"{median_high(self._seen):,g}")
        self._notices.once(code_of(Flags.SMALLER_STEP), words)


# How long an optimizer step takes lately.


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


class StepCounter:
    """Step numbers, also where the caller gives some, and cumulative examples.

    Attributes:
        next_step: Number of the next step that nobody numbers.
    """

    def __init__(self) -> None:
        self.next_step = 0
        self._offset = 0
        self._num_counted = 0
        self._examples = 0.0

    @property
    def newest_step(self) -> int:
        """The last step that was numbered; 0 before the first."""
        return max(0, self.next_step - 1)

    def start_watch(self) -> None:
        """The optimizer's own steps count from 0 again."""
        self._offset = self.next_step
        self._num_counted = 0

    def number(self, step: int | None) -> int:
        """The number of a step: as given, or the next.

        Raises:
            ConfigError: For a number that is none of a step.
        """
        number = self.next_step if step is None else checked_step(step)
        self.next_step = number + 1
        return number

    def take(self, step: int | None, num_examples: float | None) -> tuple[int, int | None]:
        """The number of a step and the cumulative examples with it; None where those of the step are not known.

        Raises:
            ConfigError: For a number that is none of a step.
        """
        # as `number` and `count`, in one call: each logged step pays for it
        number = self.next_step if step is None else checked_step(step)
        self.next_step = number + 1
        if num_examples is None:
            return number, None
        self._examples = examples = self._examples + num_examples
        return number, round(examples)

    def number_watched(self, step: int | None, num_steps: int) -> int:
        """The number of a watched step; a given one shifts all that follow.

        The first one of a resumed job also says how many steps earlier processes made.

        Args:
            step: As given by the caller.
            num_steps: Optimizer steps before this one.
        """
        if step is not None:
            self._offset = checked_step(step) - num_steps
            if self.next_step == 0:
                self._num_counted = -self._offset
        return self.number(num_steps + self._offset)

    def number_now(self, step: int | None, num_steps: int) -> int:
        """The number of the watched step that runs now, without logging it.

        Args:
            step: As given by the caller.
            num_steps: Optimizer steps before this one.
        """
        return num_steps + self._offset if step is None else checked_step(step)

    def pass_by(self, num_steps: int) -> int:
        """The number of a watched step that nobody numbers.

        Args:
            num_steps: Optimizer steps before this one.
        """
        number = num_steps + self._offset
        self.next_step = number + 1
        return number

    def count_watched(self, batch_size: float | None, num_steps: int) -> int | None:
        """Cumulative examples; steps that were not logged count as large as this one. None where it is unknown.

        Args:
            batch_size: Examples of this step.
            num_steps: Optimizer steps before this one.
        """
        num_covered = max(1, num_steps + 1 - self._num_counted)
        self._num_counted = num_steps + 1
        return None if batch_size is None else self.count(batch_size * num_covered)

    @property
    def num_examples(self) -> int:
        """Cumulative examples so far."""
        return round(self._examples)

    def count(self, num_examples: float) -> int:
        """Cumulative examples after so many more."""
        self._examples += num_examples
        return round(self._examples)


def checked_step(step: int) -> int:
    """The step itself.

    Raises:
        ConfigError: Unless 0 ≤ step < 2^53: beyond it JSON readers lose digits.
    """
    number = operator.index(step)
    if not 0 <= number < LARGEST:
        raise ConfigError(f"step must be at least 0 and below 2^53, got {number}: count optimizer steps from 0")
    return number


def checked_size(name: str, size: float, *, may_be_zero: bool = False) -> float:
    """The number of examples itself.

    Raises:
        ConfigError: For one that is not positive and finite.
    """
    if type(size) is int and 0 < size < LARGEST:  # as nearly all are
        return float(size)
    number = float(size)
    if 0 < number < math.inf and not isinstance(size, bool):
        return number
    if isinstance(size, bool) or number != 0 or not may_be_zero:
        raise ConfigError(f"{name} must be a positive number of examples, got {size!r}")
    return number
