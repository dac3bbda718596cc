"""The API's recommendation of a batch size, as frozen dataclasses; the words are those of docs/rest.md."""

from dataclasses import dataclass

from noisescale_dashboard.answers.common import NOT_MEASURED, UNKNOWN, Estimate, Interval, Json, decoded


@dataclass(frozen=True, slots=True)
class NowAndThen:
    """A quantity with the batch in use and with the recommended one."""

    now: Interval = UNKNOWN
    recommended: Interval = UNKNOWN


@dataclass(frozen=True, slots=True)
class LearningRate:
    """The learning rate that goes with the recommended batch."""

    current: float | None = None
    recommended: float | None = None
    low: float | None = None
    high: float | None = None
    rule: str | None = None
    candidates: tuple[float, ...] = ()
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Waste:
    """Examples that taught nothing new so far, predicted."""

    examples: Interval = UNKNOWN
    fraction: Interval = UNKNOWN
    usd: Interval = UNKNOWN
    hours: Interval = UNKNOWN
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well the noise scale is tied to a measured critical batch here.

    `measurements` are sweeps, branches and followed runs.
    """

    state: str = "uncalibrated"
    kappa: Interval = UNKNOWN
    measurements: int = 0
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the rest of the plan takes at a batch; hours and USD are empty where nobody said what they take."""

    batch_size: float
    is_present: bool = False
    is_recommended: bool = False
    steps: Interval = UNKNOWN
    examples: Interval = UNKNOWN
    units: Interval = UNKNOWN
    hours: Interval = UNKNOWN
    usd: Interval = UNKNOWN


@dataclass(frozen=True, slots=True)
class Predictions:
    """The rest of the plan at several batches."""

    batches: tuple[Prediction, ...] = ()
    steps_left: float | None = None
    assumes: str | None = None

    @property
    def now(self) -> Prediction | None:
        """At the batch in use."""
        return next((one for one in self.batches if one.is_present), None)

    @property
    def then(self) -> Prediction | None:
        """At the recommended batch."""
        return next((one for one in self.batches if one.is_recommended), None)


@dataclass(frozen=True, slots=True)
class Factors:
    """Steps and examples to the same loss at the recommended batch, relative to now."""

    steps_factor: Interval = UNKNOWN
    examples_factor: Interval = UNKNOWN


@dataclass(frozen=True, slots=True)
class Limited:
    """The best batch inside the reader's limits before rounding, and which of them moved it."""

    batch_size: float | None = None
    low: float | None = None
    high: float | None = None
    binding: tuple[str, ...] = ()
    binding_names: tuple[str, ...] = ()
    text: str | None = None
    possible: str | None = None


@dataclass(frozen=True, slots=True)
class ExchangeRate:
    """How many examples a saved step is worth, and where that number comes from."""

    examples_per_step: float | None = None
    source: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the rest of the run, from optimizer step `step` on."""

    step: int
    batch_size: float
    num_steps: float | None = None
    learning_rate: float | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """Stages for the rest of the run, the first one from now on; `saving` is against the best constant batch."""

    stages: tuple[Stage, ...] = ()
    saving: float | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """How one hyperparameter follows the batch; `after` is None where the rule has no answer."""

    field: str
    rule: str = ""
    before: float | None = None
    after: float | None = None
    holds_for: str | None = None
    is_in_range: bool = True
    is_verified: bool = True
    source: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class NextStep:
    """Something to do that makes the answer surer; its cost stands in `text`."""

    kind: str
    text: str
    is_extra: bool = False


@dataclass(frozen=True, slots=True)
class Caution:
    """A caution that goes with a recommendation."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Odds:
    """How likely the recommended batch is cheaper than the present one, and what is at stake, as shares of the cost."""

    probability: float
    saving: float
    worst_case: float
    present_regret: float
    regret: float
    assumes: str


@dataclass(frozen=True, slots=True)
class AtPreference:
    """The batch for a reader who values steps otherwise."""

    preference: float
    batch_size: float
    text: str


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Which batch size to use, why, and what it would change."""

    decision: str
    headline: str
    short_reason: str = ""
    sureness: str | None = None
    reason: str | None = None
    noise_scale: Estimate = NOT_MEASURED
    odds: Odds | None = None
    otherwise: tuple[AtPreference, ...] = ()
    interval: Interval = UNKNOWN
    statistical_interval: Interval = UNKNOWN
    critical_batch: Interval = UNKNOWN
    calibration: Calibration = Calibration()
    learning_rate: LearningRate = LearningRate()
    example_efficiency: NowAndThen = NowAndThen()
    step_efficiency: NowAndThen = NowAndThen()
    predicted: Factors = Factors()
    waste: Waste = Waste()
    warnings: tuple[Caution, ...] = ()
    predictions: Predictions = Predictions()
    limited: Limited | None = None
    exchange_rate: ExchangeRate | None = None
    schedule: Schedule | None = None
    schedule_missing: str | None = None
    rescaling: tuple[Change, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    step: int | None = None
    effect: str | None = None
    current_batch_size: float | None = None
    recommended_batch_size: float | None = None
    preference: float | None = None
    next_step: str | None = None


def recommendation(data: Json) -> Recommendation:
    """The recommendation in `data`."""
    return decoded(Recommendation, data)
