"""How many examples a small batch has, as far as its forwards tell."""

from collections.abc import Sequence
from typing import NamedTuple

TWICE = (
    "two backward passes went through one forward: add the losses and call backward() once, or put both passes into "
    "`with run.micro_batch():`; where they hold different examples, each into one with their number"
)

UNPAIRED = "several forwards came before it, and none of them was followed yet; from the next step on each is"


class Examples(NamedTuple):
    """The examples of a small batch.

    Attributes:
        num: None where the forwards do not tell.
        reason: Why the step has no estimate, or no batch size of its own; None where it may have both.
        adds_up: The gradient may be the sum of small batches with sizes, given a batch size.
    """

    num: float | None
    reason: str | None = None
    adds_up: bool = True


COUNTED_BEFORE = Examples(0.0, TWICE, adds_up=False)


def of_unpaired(sizes: Sequence[float | None]) -> Examples:
    """Of a small batch that came through some of these forwards: a given batch size is spread evenly if all are equal.

    Args:
        sizes: Of the forwards.
    """
    return Examples(None, UNPAIRED, adds_up=len(set(sizes)) == 1)
