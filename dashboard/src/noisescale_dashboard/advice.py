"""The API's recommendation of a batch size, as frozen dataclasses; the words are those of docs/rest.md."""

from dataclasses import dataclass

from noisescale_dashboard.answers import UNKNOWN, Estimate, Interval, Json, estimate, interval, picked


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
    """How well the noise scale is tied to a measured critical batch here; `measurements` are sweeps and branches."""

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
class Limited:
    """The best batch inside the reader's limits before rounding, and which of them moved it."""

    batch_size: float | None = None
    low: float | None = None
    high: float | None = None
    binding: tuple[str, ...] = ()
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
class Recommendation:
    """Which batch size to use, why, and what it would change."""

    decision: str
    headline: str | None
    reason: str | None
    noise_scale: Estimate
    interval: Interval
    statistical_interval: Interval
    critical_batch: Interval
    calibration: Calibration
    learning_rate: LearningRate
    example_efficiency: NowAndThen
    step_efficiency: NowAndThen
    steps_factor: Interval
    examples_factor: Interval
    waste: Waste
    warnings: tuple[Caution, ...]
    predictions: tuple[Prediction, ...] = ()
    steps_left: float | None = None
    assumes: str | None = None
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
    predicted, rest = data.get("predicted") or {}, data.get("predictions") or {}
    rate = data.get("learning_rate") or {}
    nested = {
        "noise_scale": estimate(data.get("noise_scale")),
        "interval": interval(data.get("interval")),
        "statistical_interval": interval(data.get("statistical_interval")),
        "critical_batch": interval(data.get("critical_batch")),
        "calibration": _calibration(data.get("calibration") or {}),
        "learning_rate": picked(LearningRate, {**rate, "candidates": tuple(rate.get("candidates") or ())}),
        "example_efficiency": _now_and_then(data.get("example_efficiency")),
        "step_efficiency": _now_and_then(data.get("step_efficiency")),
        "steps_factor": interval(predicted.get("steps_factor")),
        "examples_factor": interval(predicted.get("examples_factor")),
        "waste": _waste(data.get("waste") or {}),
        "predictions": tuple(_prediction(row) for row in rest.get("batches", ())),
        "steps_left": rest.get("steps_left"),
        "assumes": rest.get("assumes"),
        "limited": _limited(data.get("limited")),
        "exchange_rate": _exchange_rate(data.get("exchange_rate")),
        "schedule": _schedule(data.get("schedule")),
        "rescaling": tuple(picked(Change, row) for row in data.get("rescaling") or ()),
        "next_steps": tuple(picked(NextStep, row) for row in data.get("next_steps") or ()),
        "warnings": tuple(picked(Caution, row) for row in data.get("warnings") or ()),
    }
    return picked(Recommendation, {"headline": None, "reason": None, **data, **nested})


def _now_and_then(data: Json | None) -> NowAndThen:
    pair = data or {}
    return NowAndThen(interval(pair.get("now")), interval(pair.get("recommended")))


def _prediction(data: Json) -> Prediction:
    names = ("steps", "examples", "units", "hours", "usd")
    return picked(Prediction, {**data, **{name: interval(data.get(name)) for name in names}})


def _calibration(data: Json) -> Calibration:
    return picked(Calibration, {**data, "kappa": interval(data.get("kappa"))})


def _limited(data: Json | None) -> Limited | None:
    return picked(Limited, {**data, "binding": tuple(data.get("binding") or ())}) if data else None


def _exchange_rate(data: Json | None) -> ExchangeRate | None:
    return picked(ExchangeRate, data) if data else None


def _schedule(data: Json | None) -> Schedule | None:
    if not data:
        return None
    return picked(Schedule, {**data, "stages": tuple(picked(Stage, row) for row in data.get("stages") or ())})


def _waste(data: Json) -> Waste:
    return Waste(
        interval(data.get("examples")),
        interval(data.get("fraction")),
        interval(data.get("usd")),
        interval(data.get("hours")),
        data.get("text"),
    )
