"""The noise scale that an answer rests on."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measured:
    """The noise scale that the advice rests on, in examples.

    Attributes:
        state: "resolved", "tentative" or "unresolved".
        value: None while unresolved.
        low: Lower end of the interval, or a bound.
        high: Upper end; None without one.
        level: Of the interval.
        z: |G|² in its own standard errors.
    """

    state: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    z: float | None = None
