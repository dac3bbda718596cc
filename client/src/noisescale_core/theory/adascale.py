"""AdaScale: the progress of a run in steps of its base batch, so that schedules are read where they should be.

At k times the base batch a step makes the progress of r base steps, r = (σ² + μ²) / (σ² / k + μ²), σ² the variance and
μ² the squared norm of the mean of the base batch's gradient. With φ = B σ² / μ² this is the gain of
McCandlish et al. 2018, arXiv:1812.06162, eq. 2.6.
Source: Johnson et al. 2020, arXiv:2007.05105, section 3; the formulas as in the code of petuum/adaptdl.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from noisescale_core.theory.domain import require_not_negative, require_positive
from noisescale_core.theory.learning_rate import gain


def gain_of_moments(*, variance: float, sq_mean: float, scale: float) -> float:
    """The gain r from the moments of the base batch's gradient.

    Args:
        variance: σ² = tr Σ / B of the base batch, squared gradient.
        sq_mean: μ² = |G|², squared gradient.
        scale: k, the batch in base batches.

    Raises:
        DomainError: If a number is not positive.
    """
    require_positive("both moments must be resolved", variance=variance, sq_mean=sq_mean)
    require_positive("1 is the base batch", scale=scale)
    return (variance + sq_mean) / (variance / scale + sq_mean)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Attributes:
        base_batch: The batch that schedules were written for, in examples.
        base_steps: S_base, optimizer steps of the whole plan at that batch.
        steps: Optimizer steps taken.
        tau: τ, base steps that they are worth.
    """

    base_batch: float
    base_steps: float
    steps: float = 0.0
    tau: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no plan.

        Raises:
            DomainError: If the base is not positive or the progress negative.
        """
        require_positive(
            "the plan that schedules were written for", base_batch=self.base_batch, base_steps=self.base_steps
        )
        require_not_negative("a run starts at 0", steps=self.steps, tau=self.tau)

    def after(self, *, batch: float, noise_scale: float, num_steps: float = 1.0) -> "Progress":
        """The progress after some more steps: τ grows by the gain of each.

        Args:
            batch: B of these steps, in examples.
            noise_scale: φ over them, in examples.
            num_steps: How many.

        Raises:
            DomainError: If a number is not positive, or the noise scale negative.
        """
        require_positive("give whole stretches of steps", num_steps=num_steps)
        worth = num_steps * gain(from_batch=self.base_batch, to_batch=batch, noise_scale=noise_scale)
        return Progress(self.base_batch, self.base_steps, self.steps + num_steps, self.tau + worth)

    @property
    def schedule_step(self) -> int:
        """At which step of the base schedule to read the learning rate: floor(τ)."""
        return math.floor(self.tau)

    @property
    def is_finished(self) -> bool:
        """Whether the run has made the progress of the whole plan: τ ≥ S_base."""
        return self.tau >= self.base_steps

    @property
    def share(self) -> float:
        """τ / S_base, above 1 beyond the plan."""
        return self.tau / self.base_steps


def progress_of(stretches: Iterable[tuple[float, float, float]], *, base_batch: float, base_steps: float) -> Progress:
    """The progress of a logged run.

    Args:
        stretches: Number of steps, batch and noise scale of each stretch, oldest first.
        base_batch: The batch that schedules were written for, in examples.
        base_steps: Optimizer steps of the whole plan at that batch.
    """
    progress = Progress(base_batch, base_steps)
    for num_steps, batch, noise_scale in stretches:
        progress = progress.after(batch=batch, noise_scale=noise_scale, num_steps=num_steps)
    return progress
