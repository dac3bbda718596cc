"""The series, layers, streams and metrics of runs as the REST API answers them; see `answers.py`."""

from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_dashboard.answers.common import NOT_MEASURED, Estimate, Json, Numbers, decoded


@dataclass(frozen=True, slots=True)
class Points:
    """Columns of a series, oldest first, all of one length."""

    step: tuple[int, ...] = ()
    examples: Numbers = ()
    wall_time: Numbers = ()
    value: Numbers = ()
    low: Numbers = ()
    high: Numbers = ()
    state: tuple[str, ...] = ()
    reason: tuple[str | None, ...] = ()
    value_min: Numbers = ()
    value_max: Numbers = ()
    trace_cov: Numbers = ()
    trace_cov_se: Numbers = ()
    grad_sq_norm: Numbers = ()
    grad_sq_norm_se: Numbers = ()
    loss: Numbers = ()
    loss_min: Numbers = ()
    loss_max: Numbers = ()
    global_batch: Numbers = ()
    lr: Numbers = ()


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at a step: `batch`, `lr` or `resumed`."""

    step: int
    kind: str
    before: float | None = None
    after: float | None = None


@dataclass(frozen=True, slots=True)
class NoiseScaleSeries:
    """The noise scale over training, in examples."""

    points: Points
    latest: Estimate = NOT_MEASURED
    run_average: Estimate = NOT_MEASURED
    events: tuple[Event, ...] = ()
    unit: str = "examples"
    units_per_example: float = 1
    window_steps: int | None = None
    widened: bool = False
    steps_per_block: int | None = None
    steps_per_point: int | None = None
    num_points: int = 0


def noise_scale_series(data: Json) -> NoiseScaleSeries:
    """The series in `data`."""
    return decoded(NoiseScaleSeries, {**data, "events": _events(data)})


def _events(data: Json) -> list[Json]:
    """The events with names that Python has for their fields."""
    rows = data.get("events") or ()
    return [{**row, "before": row.get("from"), "after": row.get("to")} for row in rows]


@dataclass(frozen=True, slots=True)
class ShortSeries:
    """A few points of a run's whole noise scale, in examples, and what has happened along them."""

    points: Points
    events: tuple[Event, ...] = ()


def short_series(data: Json) -> dict[str, ShortSeries]:
    """The short series of each run in `data`."""
    rows = {run_id: {"points": one, "events": _events(one)} for run_id, one in data["runs"].items()}
    return decoded(dict[str, ShortSeries], rows)


def sparklines(data: Json) -> dict[str, Points]:
    """The few points of each run in `data`."""
    return decoded(dict[str, Points], data["runs"])


@dataclass(frozen=True, slots=True)
class GroupSeries:
    """A layer's noise scale over training, few points."""

    step: tuple[int, ...] = ()
    value: Numbers = ()
    low: Numbers = ()
    high: Numbers = ()
    state: tuple[str, ...] = ()
    trace_cov: Numbers = ()
    trace_cov_se: Numbers = ()
    grad_sq_norm: Numbers = ()
    grad_sq_norm_se: Numbers = ()


@dataclass(frozen=True, slots=True)
class Group:
    """One layer or parameter group."""

    name: str
    estimate: Estimate = NOT_MEASURED
    series: GroupSeries = GroupSeries()
    trace_cov: float | None = None
    trace_cov_se: float | None = None
    grad_sq_norm: float | None = None
    grad_sq_norm_se: float | None = None


def groups(data: Json) -> tuple[Group, ...]:
    """The layers in `data`, in network order."""
    return decoded(tuple[Group, ...], data["groups"])


@dataclass(frozen=True, slots=True)
class LostRange:
    """Records that never reached the server, declared by the client."""

    first_seq: int
    last_seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class Stream:
    """One process that logged into a run, with its ledger; of both sorts of ranges the first ones, and how many."""

    stream_id: str
    kind: str = "simple"
    num_stored: int = 0
    num_lost: int = 0
    num_rejected: int = 0
    acked_seq: int = 0
    first_step: int | None = None
    last_step: int | None = None
    started_at: str | None = None
    finished_at: str | None = None
    num_live_ranges: int = 0
    live_steps: tuple[Sequence[int], ...] = ()
    num_lost_ranges: int = 0
    lost: tuple[LostRange, ...] = ()


def streams(data: Json) -> tuple[Stream, ...]:
    """The streams in `data`, oldest first."""
    return decoded(tuple[Stream, ...], [{**row, "lost": _lost(row)} for row in data["streams"]])


def _lost(data: Json) -> list[Json]:
    return [{**row, "first_seq": row["from"], "last_seq": row["to"]} for row in data.get("lost") or ()]


@dataclass(frozen=True, slots=True)
class Metric:
    """A value logged beside the gradients, such as an evaluation loss: columns of one length, oldest first."""

    name: str
    step: tuple[int, ...] = ()
    value: Numbers = ()
    min: Numbers = ()
    max: Numbers = ()
    wall_time: Numbers = ()

    @property
    def last(self) -> tuple[int, float] | None:
        """The last step with a value, and that value."""
        pairs = zip(reversed(self.step), reversed(self.value), strict=True)
        return next(((step, value) for step, value in pairs if value is not None), None)


def metrics(data: Json) -> tuple[Metric, ...]:
    """The metrics in `data`, by name."""
    return decoded(tuple[Metric, ...], data["metrics"])


# What the REST API answers about a run's learning rate.


@dataclass(frozen=True, slots=True)
class RateAtStep:
    """What was known at a step; octaves are log₂(rate ÷ best rate), None while nothing was said."""

    step: int
    learning_rate: float | None = None
    verdict: str | None = None
    ratio: float | None = None
    octaves: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class RateVerdict:
    """Whether the rate is too low, right or too high; `factor` is best rate ÷ rate, None where nothing is said."""

    headline: str = ""
    reason: str = ""
    verdict: str | None = None
    step: int | None = None
    learning_rate: float | None = None
    octaves: float | None = None
    factor: float | None = None
    factor_low: float | None = None
    factor_high: float | None = None
    probability: float | None = None
    kept_share: float | None = None
    kept_share_low: float | None = None
    kept_share_high: float | None = None
    points: tuple[RateAtStep, ...] = ()


def rate_verdict(data: Json) -> RateVerdict:
    """The verdict in `data`."""
    return decoded(RateVerdict, data)
