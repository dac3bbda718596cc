"""What a job knows of its run when it is asked for advice."""

from dataclasses import dataclass

from noisescale.description import RunDescription
from noisescale.window.run_history import RunHistory
from noisescale_core.advice.parts.parts import RateOff
from noisescale_core.estimators.divergence import Divergence
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """The measurements of one optimizer.

    Attributes:
        description: What the run is called and made of.
        optimizer: Class of the optimizer; None where none is watched.
        noise_scale: Of the latest window, in examples.
        has_signal: The run has shown a gradient.
        history: What was spent.
        batch_size: In use now, in examples; None while unknown.
        newest_step: The last optimizer step that was logged.
        has_ended: It takes no more steps.
        is_silent: Another rank of the job has the numbers.
        divergence: Since when loss or gradients are not finite; None where they are.
        noise_scale_step: The last step that is in the noise scale.
        rate_off: How far the learning rate is off; None where it is not, or nobody knows.
    """

    description: RunDescription
    optimizer: str | None
    noise_scale: NoiseScaleEstimate
    has_signal: bool
    history: RunHistory
    batch_size: float | None
    newest_step: int
    has_ended: bool
    is_silent: bool
    divergence: Divergence | None = None
    noise_scale_step: int | None = None
    rate_off: RateOff | None = None
