"""What a sweep asks."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from noisescale_core.errors import ConfigError
from noisescale_lab.sweep.trial import Goal


@dataclass(frozen=True, slots=True)
class Question:
    """The design of a sweep.

    Attributes:
        batch_sizes: In examples, the largest first: it needs the fewest steps and so finds the learning rate cheaply.
        targets: Values of the metric, easy to hard.
        goal: Whether the metric falls to its targets or rises to them.
        metric: Its name; None: the loss.
        seeds: Repeats of each setting: the same ones everywhere, so that differences are those of the settings.
        learning_rates: To try at every batch size; None: searched from `first_learning_rate`.
        first_learning_rate: Where the search starts at the largest batch size.
        max_steps: Longest run.
        budget: Most examples of all runs together; None: as many as it takes.
    """

    batch_sizes: tuple[int, ...]
    targets: tuple[float, ...]
    goal: Goal
    metric: str | None
    seeds: tuple[int, ...]
    learning_rates: tuple[float, ...] | None
    first_learning_rate: float
    max_steps: int
    budget: float | None

    def __post_init__(self) -> None:
        """Refuse what no sweep can answer.

        Raises:
            ConfigError: Names the argument, its value and the way out.
        """
        if not self.batch_sizes or len(set(self.batch_sizes)) < len(self.batch_sizes) or min(self.batch_sizes) < 1:
            raise ConfigError(f"batch_sizes must be different and positive, got {self.batch_sizes}")
        if not self.targets or not all(math.isfinite(target) for target in self.targets):
            raise ConfigError(f"target must be one finite value or several, got {self.targets}")
        if self.goal not in ("min", "max"):
            raise ConfigError(f"goal must be 'min' or 'max', got {self.goal!r}")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ConfigError(f"seeds must be different and at least one, got {self.seeds}: 4 is a start")
        rates = (self.first_learning_rate, *(self.learning_rates or (1.0,)))
        if self.learning_rates == () or not all(0 < rate < math.inf for rate in rates):
            raise ConfigError(f"learning rates must be positive and finite, got {rates}")
        if self.max_steps < 1:
            raise ConfigError(f"max_steps must be at least 1, got {self.max_steps}")
        if self.budget is not None and not self.budget > 0:
            raise ConfigError(f"budget must be a positive number of examples, got {self.budget}: leave it out")

    @property
    def sign(self) -> float:
        """1 where smaller is better, -1 where larger is."""
        return 1.0 if self.goal == "min" else -1.0

    @property
    def hardest(self) -> float:
        """The target that learning rates are tuned for."""
        return self.targets[-1]

    def to_json(self) -> dict[str, object]:
        """What must be the same for a resumed sweep; batch sizes, seeds' length and limits may grow."""
        return {
            "targets": list(self.targets),
            "goal": self.goal,
            "metric": self.metric,
            "seeds": list(self.seeds),
            "learning_rates": None if self.learning_rates is None else list(self.learning_rates),
            "first_learning_rate": self.first_learning_rate,
        }


def targets_of(target: float | Sequence[float], goal: Goal) -> tuple[float, ...]:
    """One target or several, easy to hard."""
    listed = (target,) if isinstance(target, int | float) else tuple(target)
    return tuple(sorted((float(value) for value in listed), reverse=goal == "min"))


def seeds_of(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """A number of seeds as 0, 1, …; or those named."""
    return tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
