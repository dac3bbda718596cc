"""What per-example norms leave out, why, and what to do about it: four kinds, one message.

The kinds are those of Opacus' error messages (never, not yet, use this instead, switch this off), in our words.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

NAMES_SHOWN = 3
"""Parameters named for each reason; the others are counted."""


class Remedy(StrEnum):
    """What can be done about a parameter without per-example norms."""

    NEVER = "never"
    NOT_YET = "not yet"
    USE_INSTEAD = "use instead"
    SWITCH_OFF = "switch off"


ELSEWHERE = (
    "its layers' contributions do not add up to its gradient: it is used outside of its layer or in a penalty, "
    "its gradient is changed by a hook, or 16 bit are too few for its sum"
)

BLIND = "no layer ran its hooks: torch.compile leaves them out"

TWICE = "two backward passes went through one forward: add the losses, or put both into `with run.micro_batch():`"

UNEVEN = "forwards of different sizes in one micro_batch(): their examples cannot be put together"

FOUND_OUT = "some parameters have no per-example norms, as this backward shows: a note says which"

FOLLOWED_NOW = (
    "some parameters are used otherwise than by a call of their layer for each example, as this backward shows: they "
    "are looked for in the autograd graph from the next step on"
)

NOT_CALLED = Remedy.USE_INSTEAD, "used without a call of its layer: call the layer"

HIDDEN = (
    Remedy.SWITCH_OFF,
    "checkpointing, or other hooks on saved tensors, around attention: they hide what it multiplies",
)

ONE_EXAMPLE = "a batch of one example does not show what is shared by all"

NO_EXAMPLES = "its layer's input does not have the model's examples in its first dimension"

LOOK_IN_GRAPH = (NO_EXAMPLES, ELSEWHERE, NOT_CALLED[1])
"""Why a layer's formula is not all that there is to a parameter: its uses may be found in the graph."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A parameter that is not measured.

    Attributes:
        name: Of the parameter in the model, or of the layer that stands in the way of all.
        kind: What can be done.
        reason: A clause that goes after the names.
    """

    name: str
    kind: Remedy
    reason: str


def message(left_out: Sequence[LeftOut], *, num_covered: int, num_parameters: int, share: float) -> str | None:
    """One message that names every reason and its parameters; None where nothing is left out.

    Args:
        left_out: What is not measured.
        num_covered: Parameters that are.
        num_parameters: All.
        share: Elements of those that are ÷ all.
    """
    if not left_out:
        return None
    names: dict[tuple[Remedy, str], list[str]] = {}
    for entry in sorted(left_out, key=lambda entry: list(Remedy).index(entry.kind)):
        names.setdefault((entry.kind, entry.reason), []).append(entry.name)
    reasons = [f"{kind}: {_list(which)} ({reason})" for (kind, reason), which in names.items()]
    advice = "" if num_covered else "; micro-batches measure the whole model"
    covered = f"{num_covered} of {num_parameters} parameters, {percent(share)} of their elements"
    return f"per-example norms cover {covered}. {'; '.join(reasons)}{advice}."


def percent(share: float) -> str:
    """A share that is not all of it never reads as 100 %."""
    return f"{math.floor(1000 * share) / 10:g} %"


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"
