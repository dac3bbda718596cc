"""What an answer holds besides the parts of an advice."""

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


@dataclass(frozen=True, slots=True)
class LimitedBatch:
    """The best batch inside all limits.

    Attributes:
        batch_size: In examples; None where they exclude each other.
        binding: The limits that moved it.
        text: Why, or what is possible.
    """

    batch_size: float | None
    binding: tuple[str, ...]
    text: str
