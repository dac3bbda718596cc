"""One decision of a follower, with its reason in words and numbers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

PUT_BACK = "put weights and optimizer states back"
NOT_KEPT = "leave the weights, of which this process has no copy from before the raise"


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
