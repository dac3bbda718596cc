"""Since when the loss or the gradients of the job are not finite, step by step; said once, as loud as a warning."""

from noisescale.guard import Notices
from noisescale.rows.updates import Update
from noisescale_core.advice.words import of_divergence
from noisescale_core.estimators.divergence import (
    Divergence,
    Seen,
    broken_since,
    divergence,
    seen_of_gradients,
    seen_of_loss,
)


class FiniteWatch:
    """Sees the loss and the gradients of each step.

    Attributes:
        estimated_step: The last step with an estimate; None before the first.
    """

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._loss_since: int | None = None
        self._gradients_since: int | None = None
        self._newest_step: int | None = None
        self.estimated_step: int | None = None

    @property
    def divergence(self) -> Divergence | None:
        """Where the job has diverged."""
        return divergence(self._loss_since, self._gradients_since, self._newest_step)

    def see(self, update: Update) -> None:
        """See a measured step."""
        has_terms, step = update.terms is not None, update.logged.step
        if has_terms and not update.flags:
            self.see_plain(step, update.loss)
            return
        if has_terms:
            self.estimated_step = step
        seen = seen_of_gradients(update.flags, has_terms=has_terms)
        self._gradients_since = broken_since(self._gradients_since, [(step, seen)])
        self._see_loss(step, seen_of_loss(update.flags, int(update.loss is not None)))

    def see_plain(self, step: int, loss: float | None) -> None:
        """See a measured step without flags: its terms are finite, and so is its loss if it has one."""
        if loss is not None and self._loss_since is None and self._gradients_since is None:
            self._newest_step = self.estimated_step = step  # all is finite, as nearly always
            return
        self.estimated_step = step
        self._gradients_since = broken_since(self._gradients_since, [(step, seen_of_gradients(0, has_terms=True))])
        self._see_loss(step, seen_of_loss(0, int(loss is not None)))

    def see_loss(self, step: int, *, is_finite: bool) -> None:
        """See the loss of a step of which nothing else was measured."""
        self._see_loss(step, Seen(is_finite, not is_finite))

    def _see_loss(self, step: int, seen: Seen) -> None:
        self._newest_step = step
        self._loss_since = broken_since(self._loss_since, [(step, seen)])
        if self._loss_since is None and self._gradients_since is None:
            return
        found = self.divergence
        if found is not None:
            said = of_divergence.sentence(found, until_step=self.estimated_step)
            self._notices.once("diverged", f"{said} {of_divergence.NEXT_STEP}")
