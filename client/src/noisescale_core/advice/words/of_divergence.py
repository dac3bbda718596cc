"""What is said first of a run whose loss or gradients are not finite."""

from noisescale_core.estimators.divergence import Divergence

HEADLINE = "Training has diverged"
NEXT_STEP = (
    "Go back to a checkpoint before that step, with a lower learning rate or clipped gradients; with mixed precision "
    "look at the loss scale first."
)


def said(found: Divergence) -> str:
    """What is not finite and since when, as a clause."""
    return f"{found.what} not finite since step {found.step:,}"


def sentence(found: Divergence, *, until_step: int | None) -> str:
    """The same as a sentence, with up to which step the noise scale is.

    Args:
        found: Where the run has diverged.
        until_step: The last step that is in the noise scale; None where there is none, or it is not known.
    """
    clause = said(found)
    until = "" if until_step is None else f" The noise scale is until step {until_step:,}."
    return f"{clause[0].upper()}{clause[1:]}.{until}"
