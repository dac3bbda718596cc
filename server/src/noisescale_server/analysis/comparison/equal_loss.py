"""Windows of several runs, as regressions at equal loss take them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LossWindow:
    """One resolved window of a run.

    Attributes:
        loss: Mean training loss, positive.
        log_value: log of the noise scale.
        standard_error: Of log_value.
        learning_rate: Mean over the window; None where none was logged.
        batch_size: Mean global batch, in examples; None where it is not known.
        is_warm: Its learning rate is at least a tenth of the run's peak.
    """

    loss: float
    log_value: float
    standard_error: float
    learning_rate: float | None
    batch_size: float | None
    is_warm: bool


@dataclass(frozen=True, slots=True)
class NotKnown:
    """Too little is known; the explanation says what is missing."""

    explanation: str
