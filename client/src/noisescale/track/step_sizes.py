"""The sizes of a run's steps: the batch in use, and which steps are too small to tell anything beside the others."""

from collections import deque
from statistics import median_high

from noisescale.guard import Notices
from noisescale.rows.updates import Update
from noisescale_core.advice.parts.reasons import OF_FLAGS, code_of
from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.step_sizes import SEEN, batch_in_use, is_far_smaller


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
