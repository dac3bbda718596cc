"""What per-example norms leave out, why, and what to do about it: four kinds, one message.

The kinds are those of Opacus' error messages (never, not yet, use this instead, switch this off), in our words.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

NAMES_SHOWN = 3
"""Parameters named for each reason; the others are counted."""


class Kind(StrEnum):
    """What can be done about a parameter without per-example norms."""

    NEVER = "never"
    NOT_YET = "not yet"
    USE_INSTEAD = "use instead"
    SWITCH_OFF = "switch off"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A parameter that is not measured.

    Attributes:
        name: Of the parameter in the model, or of the layer that stands in the way of all.
        kind: What can be done.
        reason: A clause that goes after the names.
    """

    name: str
    kind: Kind
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
    names: dict[tuple[Kind, str], list[str]] = {}
    for entry in sorted(left_out, key=lambda entry: list(Kind).index(entry.kind)):
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
