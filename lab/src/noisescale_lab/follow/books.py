"""What a follower remembers: plain values, the same on every rank, and all that a checkpoint needs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from noisescale.window.standing import LossSums
from noisescale_lab.follow.memory import Memory, Probation
from noisescale_lab.follow.walk import Span, Stretch

PUT_BACK = "put weights and optimizer states back"
NOT_KEPT = "leave the weights, of which this process has no copy from before the raise"

NO_LOSSES = LossSums()


# One decision of a follower, with its reason in words and numbers.


@dataclass(frozen=True, slots=True)
class Decision:
    """A change of the batch size or the learning rate, and of what goes with it.

    Attributes:
        step: Optimizer steps that the follower had seen when it was taken, or carried out.
        from_batch: In examples.
        to_batch: In examples.
        from_rate_factor: On the learning rates that the run began with.
        to_rate_factor: The same, from here on.
        reason: In words.
        is_dry_run: Nothing was changed.
        noise_scale: In examples, that a new batch rests on; None of a change of the rate alone.
        critical_batch: In examples, the same.
        is_on_probation: It is undone where the loss rises.
        is_undo: It takes a raise back.
        is_put_back: Weights and optimizer states, too.
        look_after: Steps until the next look; None: as usual.
        also: What else was changed, a sentence each.
    """

    step: int
    from_batch: int
    to_batch: int
    from_rate_factor: float
    to_rate_factor: float
    reason: str
    is_dry_run: bool
    noise_scale: float | None = None
    critical_batch: float | None = None
    is_on_probation: bool = False
    is_undo: bool = False
    is_put_back: bool = False
    look_after: int | None = None
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        would = "would " if self.is_dry_run else ""
        also = "".join(f"; {sentence}" for sentence in self.also)
        probation = ", on probation" if self.is_on_probation else ""
        return f"step {self.step:,}: {would}{self._what()}{also}{probation}. {self.reason}."

    def _what(self) -> str:
        change = self.to_rate_factor / self.from_rate_factor
        parts = [] if self.to_batch == self.from_batch else [f"batch {self.from_batch:,} to {self.to_batch:,} examples"]
        if change != 1 or not parts:
            parts.append(f"the learning rate to {change:.3g} × ({self.to_rate_factor:.3g} × the first one)")
        back = f"{PUT_BACK if self.is_put_back or self.is_dry_run else NOT_KEPT}, and " if self.is_undo else ""
        return f"{back}set {' and '.join(parts)}"

    def metrics(self) -> dict[str, float]:
        """What is recorded with the run."""
        known = {"follow/noise_scale": self.noise_scale, "follow/critical_batch": self.critical_batch}
        return {
            "follow/batch_size": self.to_batch,
            "follow/learning_rate_factor": self.to_rate_factor,
            "follow/is_undo": float(self.is_undo),
            "follow/is_dry_run": float(self.is_dry_run),
        } | {name: value for name, value in known.items() if value is not None}

    def to_state(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Decision":
        """From plain values."""
        return cls(**{**state, "also": tuple(state["also"])})


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
        promised_updates: Updates whose promise is known.
        promised: -Σ u · G over them.
        promised_variance: Of that sum.
    """

    losses: LossSums = NO_LOSSES
    num_terms: float = 0.0
    trace_cov: float = 0.0
    grad_sq_norm: float = 0.0
    path_updates: float = 0.0
    path_sum: float = 0.0
    promised_updates: float = 0.0
    promised: float = 0.0
    promised_variance: float = 0.0


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
