"""One decision of a follower, with its reason in words and numbers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Decision:
    """A change of the batch size, and of what goes with it.

    Attributes:
        step: Optimizer steps that the follower had seen when it was taken, or carried out.
        from_batch: In examples.
        to_batch: In examples.
        from_rate_factor: On the learning rates that the run began with.
        to_rate_factor: The same, from here on.
        noise_scale: That the decision rests on, in examples.
        noise_scale_low: Lower end of the latest window's interval, in examples; None where it has none.
        noise_scale_high: Upper end, in examples; None where it has none.
        level: Confidence level of the interval.
        examples_per_step: r, in examples per step.
        reason: In words.
        is_dry_run: Nothing was changed.
        also: What else was changed, a sentence each.
    """

    step: int
    from_batch: int
    to_batch: int
    from_rate_factor: float
    to_rate_factor: float
    noise_scale: float
    noise_scale_low: float | None
    noise_scale_high: float | None
    level: float
    examples_per_step: float
    reason: str
    is_dry_run: bool
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        would = "would set" if self.is_dry_run else "set"
        change = self.to_rate_factor / self.from_rate_factor
        also = "".join(f"; {sentence}" for sentence in self.also)
        return (
            f"step {self.step:,}: {would} batch {self.from_batch:,} to {self.to_batch:,} examples and the learning "
            f"rate to {change:.3g} × ({self.to_rate_factor:.3g} × the first one){also}. {self.reason}."
        )

    def metrics(self) -> dict[str, float]:
        """What is recorded with the run."""
        known = {
            "follow/noise_scale_low": self.noise_scale_low,
            "follow/noise_scale_high": self.noise_scale_high,
        }
        return {
            "follow/batch_size": self.to_batch,
            "follow/learning_rate_factor": self.to_rate_factor,
            "follow/noise_scale": self.noise_scale,
            "follow/examples_per_step": self.examples_per_step,
            "follow/is_dry_run": float(self.is_dry_run),
        } | {name: value for name, value in known.items() if value is not None}

    def to_state(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Decision":
        """From plain values."""
        return cls(**{**state, "also": tuple(state["also"])})
