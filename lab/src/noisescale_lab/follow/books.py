"""What a follower remembers: plain values, the same on every rank, and all that a checkpoint needs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from noisescale.window.standing import LossSums
from noisescale_lab.follow.decision import Decision
from noisescale_lab.follow.memory import Memory, Probation
from noisescale_lab.follow.walk import Span, Stretch

NO_LOSSES = LossSums()


@dataclass(frozen=True, slots=True)
class Seen:
    """The run's sums at the last look, of which the next one takes the difference.

    Attributes:
        losses: That were logged.
        num_terms: Measured updates.
        trace_cov: Σ tr Σ over them.
        grad_sq_norm: Σ |G|² over them.
        path_updates: Updates of the path.
        path_sum: Σ |u|² over them.
    """

    losses: LossSums = NO_LOSSES
    num_terms: float = 0.0
    trace_cov: float = 0.0
    grad_sq_norm: float = 0.0
    path_updates: float = 0.0
    path_sum: float = 0.0


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
        highest_rate: Largest learning rate of the schedule so far, without the factor.
        last_rate: The same at the last look.
        risen_until: Steps at the last look at which the schedule's rate had risen.
        seen: Sums at the last look.
        stretches: Of the path, between changes of batch and rate.
        kept_stretches: Those when the weights were kept last.
        spans: Losses and what they were promised, a look each.
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
    highest_rate: float
    last_rate: float
    risen_until: int = 0
    seen: Seen = Seen()
    stretches: tuple[Stretch, ...] = ()
    kept_stretches: tuple[Stretch, ...] = ()
    spans: tuple[Span, ...] = ()
    waiting: Decision | None = None
    num_looks: int = 0
    why: str = "no look yet"

    def to_state(self) -> dict[str, Any]:
        """As plain values."""
        state = asdict(self)
        state["seen"]["losses"] = list(self.seen.losses)
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Books":
        """From plain values."""
        waiting, memory, seen = state["waiting"], state["memory"], state["seen"]
        probation = memory["probation"]
        return cls(
            **{
                **state,
                "memory": Memory(**{**memory, "probation": None if probation is None else Probation(**probation)}),
                "seen": Seen(**{**seen, "losses": LossSums(*seen["losses"])}),
                "stretches": tuple(Stretch(**one) for one in state["stretches"]),
                "kept_stretches": tuple(Stretch(**one) for one in state["kept_stretches"]),
                "spans": tuple(Span(**one) for one in state["spans"]),
                "waiting": None if waiting is None else Decision.from_state(waiting),
            }
        )
