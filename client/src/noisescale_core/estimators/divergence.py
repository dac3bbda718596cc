"""Since when the loss or the gradients of a run are not finite: of such a run nothing else is worth saying first."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from noisescale_core.estimators.flags import Flags

MIN_GRADIENT_STEPS = 10
"""With a finite loss so many steps in a row: a loss scaler that is too high skips a few at the beginning of a run."""


class Seen(NamedTuple):
    """What an update, or a row of several, shows of one of the two; both false where it shows nothing.

    Attributes:
        is_finite: It had a finite value, so whatever was before is over.
        is_broken: It had values, and none was finite.
    """

    is_finite: bool
    is_broken: bool


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a run has diverged.

    Attributes:
        step: The first step of those in a row, up to the newest one, that are not finite.
        loss: It is the loss.
        gradients: It is the gradients.
    """

    step: int
    loss: bool
    gradients: bool

    @property
    def what(self) -> str:
        """What is not finite, as the subject of a sentence, with its verb."""
        if self.loss and self.gradients:
            return "loss and gradients are"
        return "the loss is" if self.loss else "the gradients are"


def seen_of_loss(flags: int, num_losses: int) -> Seen:
    """What rows show of the loss.

    Args:
        flags: All bits that they carry.
        num_losses: How many finite losses are in them.
    """
    return Seen(num_losses > 0, not num_losses and bool(flags & Flags.NONFINITE_LOSS))


def seen_of_gradients(flags: int, *, has_terms: bool) -> Seen:
    """What rows show of the gradients.

    Args:
        flags: All bits that they carry.
        has_terms: There is an estimate in them.
    """
    return Seen(has_terms, not has_terms and bool(flags & Flags.NONFINITE_GRADIENT))


def broken_since(before: int | None, seen: Iterable[tuple[int, Seen]]) -> int | None:
    """Since which step nothing was finite; None where the newest value was.

    Args:
        before: The same, before these.
        seen: Step by step what was seen.
    """
    since = before
    for step, one in seen:
        since = None if one.is_finite else since if since is not None or not one.is_broken else step
    return since


def divergence(loss_since: int | None, gradients_since: int | None, newest_step: int | None) -> Divergence | None:
    """The divergence of a run; None where there is none.

    Args:
        loss_since: Since which step no loss was finite; None where the newest one is.
        gradients_since: The same of the gradients.
        newest_step: The newest step.
    """
    is_long = gradients_since is not None and (newest_step or 0) - gradients_since + 1 >= MIN_GRADIENT_STEPS
    if loss_since is None and not is_long:
        return None
    first = min(since for since in (loss_since, gradients_since) if since is not None)
    return Divergence(first, loss=loss_since is not None, gradients=gradients_since is not None)
