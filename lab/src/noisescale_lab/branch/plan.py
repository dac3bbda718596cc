"""Which arms to run, and for how long."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_core.errors import ConfigError
from noisescale_core.theory.learning_rate import rescale


@dataclass(frozen=True, slots=True)
class Arm:
    """A setting to train from the start state.

    Attributes:
        batch_size: In examples.
        lr: Learning rate.
        num_steps: Optimizer steps.
    """

    batch_size: int
    lr: float
    num_steps: int

    @property
    def examples(self) -> int:
        """Examples that it sees."""
        return self.batch_size * self.num_steps


@dataclass(frozen=True, slots=True)
class Length:
    """How long every arm trains: so many steps, or so many examples.

    Raises:
        ConfigError: Unless exactly one is given and positive.
    """

    num_steps: int | None
    num_examples: int | None

    def __post_init__(self) -> None:
        given = [value for value in (self.num_steps, self.num_examples) if value is not None]
        if len(given) != 1 or given[0] < 1:
            raise ConfigError(
                f"give num_steps or num_examples, positive, got {self.num_steps} and {self.num_examples}: "
                "equal examples ask whether a larger batch wastes any, equal steps whether it is worth more"
            )

    def steps(self, batch_size: int, all_sizes: Sequence[int]) -> int:
        """Steps of an arm.

        Raises:
            ConfigError: If the examples are not whole batches of every arm.
        """
        if self.num_steps is not None:
            return self.num_steps
        assert self.num_examples is not None
        if self.num_examples % batch_size:
            unit = math.lcm(*all_sizes)
            nearest = max(1, round(self.num_examples / unit)) * unit
            raise ConfigError(
                f"num_examples must be whole batches of every arm, got {self.num_examples} and batch {batch_size}: "
                f"use {nearest}"
            )
        return self.num_examples // batch_size


def arms(
    *,
    batch_size: int,
    lr: float,
    batch_sizes: Sequence[int],
    learning_rates: Sequence[float],
    length: Length,
    optimizer: str | None,
) -> tuple[Arm, ...]:
    """The present setting first, then each batch size with its rescaled rate and each learning rate, each once.

    With both lists every pair is an arm. A batch size alone takes the learning rate along, by k for SGD and √k for
    others, which holds far below the critical batch: what a larger batch loses is then lost to the batch.

    Source: Merrill et al. 2025, arXiv:2505.23971, for branches over batch sizes and these factors.

    Raises:
        ConfigError: For settings that are not positive, or no arm beside the present one.
    """
    if not (batch_size >= 1 and 0 < lr < math.inf):
        raise ConfigError(f"batch_size and lr must be positive, got {batch_size} and {lr}: name the present ones")
    if any(size < 1 for size in batch_sizes) or not all(0 < rate < math.inf for rate in learning_rates):
        raise ConfigError(f"arms must be positive, got {list(batch_sizes)} and {list(learning_rates)}")
    if learning_rates:
        settings = [(size, rate) for size in (batch_sizes or [batch_size]) for rate in learning_rates]
    else:
        settings = [(size, lr * _factor(optimizer, batch_size, size)) for size in batch_sizes]
    different = dict.fromkeys([(batch_size, lr), *settings])
    if len(different) < 2:
        raise ConfigError("branch() needs an arm beside the present setting: give batch_sizes or learning_rates")
    sizes = [size for size, _ in different]
    return tuple(Arm(size, rate, length.steps(size, sizes)) for size, rate in different)


def _factor(optimizer: str | None, from_batch: int, to_batch: int) -> float:
    return rescale(optimizer=optimizer, from_batch=from_batch, to_batch=to_batch, noise_scale=math.inf).factor
