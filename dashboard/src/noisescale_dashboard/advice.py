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
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well the noise scale is tied to a measured critical batch here."""

    state: str = "uncalibrated"
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the rest of the plan takes at a batch; hours and USD are empty where nobody said what they take."""

    batch_size: float
    is_present: bool = False
    is_recommended: bool = False
    hours: Interval = UNKNOWN
    usd: Interval = UNKNOWN


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
    step: int | None = None
    effect: str | None = None
    current_batch_size: float | None = None
    recommended_batch_size: float | None = None
    preference: float | None = None
    next_step: str | None = None


def recommendation(data: Json) -> Recommendation:
    """The recommendation in `data`."""
    predicted = data.get("predicted") or {}
    rate = data.get("learning_rate") or {}
    nested = {
        "noise_scale": estimate(data.get("noise_scale")),
        "interval": interval(data.get("interval")),
        "statistical_interval": interval(data.get("statistical_interval")),
        "critical_batch": interval(data.get("critical_batch")),
        "calibration": picked(Calibration, data.get("calibration") or {}),
        "learning_rate": picked(LearningRate, {**rate, "candidates": tuple(rate.get("candidates") or ())}),
        "example_efficiency": _now_and_then(data.get("example_efficiency")),
        "step_efficiency": _now_and_then(data.get("step_efficiency")),
        "steps_factor": interval(predicted.get("steps_factor")),
        "examples_factor": interval(predicted.get("examples_factor")),
        "waste": _waste(data.get("waste") or {}),
        "predictions": tuple(_prediction(row) for row in (data.get("predictions") or {}).get("batches", ())),
        "warnings": tuple(picked(Caution, row) for row in data.get("warnings") or ()),
    }
    return picked(Recommendation, {"headline": None, "reason": None, **data, **nested})


def _now_and_then(data: Json | None) -> NowAndThen:
    pair = data or {}
    return NowAndThen(interval(pair.get("now")), interval(pair.get("recommended")))


def _prediction(data: Json) -> Prediction:
    return picked(Prediction, {**data, "hours": interval(data.get("hours")), "usd": interval(data.get("usd"))})


def _waste(data: Json) -> Waste:
    usd = data.get("usd")
    return Waste(
        interval(data.get("examples")),
        interval(data.get("fraction")),
        Interval(value=usd) if isinstance(usd, int | float) else interval(usd),
        data.get("text"),
    )
