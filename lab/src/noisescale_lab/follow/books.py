"""What a follower remembers: plain values, the same on every rank, and all that a checkpoint needs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from noisescale_lab.follow.decision import Decision
from noisescale_lab.follow.policy import Memory


@dataclass(frozen=True, slots=True)
class Books:
    """The state between two looks.

    Attributes:
        steps: Optimizer steps seen by the last look or change.
        next_look: Steps at which the next look is due.
        examples: Examples trained on by then.
        batch: That was decided last, in examples; in a dry run the job trains with another.
        rate_factor: That was decided last, on the learning rates that the run began with.
        memory: The policy's.
        examples_per_step: r as a number, in examples per step; None until a preference has met a resolved noise scale.
        highest_rate: Largest learning rate of the schedule so far, without the factor.
        last_rate: The same at the last look.
        waiting: A decision that the job is not ready for.
        num_looks: So far.
        why: What the last look found, in words.
    """

    steps: int
    next_look: int
    examples: float
    batch: int
    rate_factor: float
    memory: Memory
    examples_per_step: float | None
    highest_rate: float
    last_rate: float
    waiting: Decision | None = None
    num_looks: int = 0
    why: str = "no look yet"

    def to_state(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Books":
        """From plain values."""
        waiting = state["waiting"]
        return cls(
            **{
                **state,
                "memory": Memory(**state["memory"]),
                "waiting": None if waiting is None else Decision.from_state(waiting),
            }
        )
