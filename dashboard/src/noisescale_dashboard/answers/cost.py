"""What the REST API says of time, money and compute, as frozen dataclasses; the words are those of docs/rest.md."""

from dataclasses import dataclass

from noisescale_dashboard.answers.common import Json, decoded


@dataclass(frozen=True, slots=True)
class Technique:
    """A line of the checklist: yes, no or unknown, and what says so."""

    name: str
    answer: str
    basis: str


@dataclass(frozen=True, slots=True)
class OnSpot:
    """The same training on interruptible machines."""

    hours: float
    usd: float
    pays: bool


@dataclass(frozen=True, slots=True)
class Training:
    """A run of one's own, or a submission, that reached the target."""

    key: str
    name: str
    origin: str
    day: str
    hours: float
    price_said: str
    is_on_front: bool = False
    is_record: bool = False
    usd: float | None = None
    device: str | None = None
    num_devices: int | None = None
    device_hours: float | None = None
    batch_size: float | None = None
    software: str = ""
    excluded: str | None = None
    run_id: str | None = None
    project: str = ""
    paused_hours: float = 0.0
    on_spot: OnSpot | None = None
    techniques: tuple[Technique, ...] = ()
    engineering_hours: float | None = None
    change: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A training that was faster than all before it."""

    key: str
    name: str
    day: str
    value: float
    of_baseline: float
    of_previous: float


@dataclass(frozen=True, slots=True)
class Improvement:
    """From the best of the first day to the best of all."""

    baseline: str
    best: str
    before: float
    after: float
    times: float


@dataclass(frozen=True, slots=True)
class SameHardware:
    """The line of records on as many devices of one kind."""

    device: str
    num_devices: int
    times: float
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A cause of a speed-up, its factor, and how it is known."""

    cause: str
    times: float
    basis: str


@dataclass(frozen=True, slots=True)
class RecordStep:
    """What the way from one record to the next consists of."""

    before: str
    after: str
    times: float
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Factor:
    """A published factor next to what the entries say."""

    said: str
    basis: str
    published: float | None = None
    computed: float | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """Trainings to one target: DAWNBench's, or runs of one's own."""

    metric: str
    target: float
    rows: tuple[Training, ...]
    front: tuple[str, ...] = ()
    records: tuple[Record, ...] = ()
    same_hardware: tuple[SameHardware, ...] = ()
    steps: tuple[RecordStep, ...] = ()
    improvement: Improvement | None = None
    improvement_usd: Improvement | None = None
    factors: tuple[Factor, ...] = ()
    source: str = ""
    num_runs: int | None = None
    num_reached: int | None = None
    num_unpriced: int = 0
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Between:
    """A value with its interval; an end that is not there is open."""

    value: float
    low: float | None = None
    high: float | None = None
    level: float = 0.95


@dataclass(frozen=True, slots=True)
class Growth:
    """Doublings a year, months to double, and the fitted value on the last day."""

    doublings_per_year: Between
    at_end: float
    num: int
    months: Between | None = None


@dataclass(frozen=True, slots=True)
class Compute:
    """PF-days of a run and how they were counted."""

    pf_days: float
    basis: str
    said: str


@dataclass(frozen=True, slots=True)
class RunCompute:
    """A run with what it took."""

    run_id: str
    name: str
    project: str
    day: str
    compute: Compute
    price_said: str
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class PublishedLine:
    """A published doubling time in months, drawn through the end of the fit."""

    months: float
    at_start: float
    at_end: float


@dataclass(frozen=True, slots=True)
class Device:
    """A kind of device by its data sheet."""

    device: str
    year: int
    peak_tflops: float
    format: str
    memory_gb: float


@dataclass(frozen=True, slots=True)
class DeviceTrend:
    """How devices grew by the year of their release."""

    peak: Growth | None = None
    memory: Growth | None = None


@dataclass(frozen=True, slots=True)
class ComputeGrowth:
    """Compute of runs over time."""

    runs: tuple[RunCompute, ...]
    num_left_out: int
    why_left_out: str
    published_source: str
    peaks_source: str
    growth: Growth | None = None
    spending: Growth | None = None
    per_usd: Growth | None = None
    of_priced: Growth | None = None
    lines: tuple[PublishedLine, ...] = ()
    devices: tuple[Device, ...] = ()
    device_trend: DeviceTrend = DeviceTrend()


def board(data: Json) -> Board:
    """The board in `data`."""
    return decoded(Board, data)


def compute_growth(data: Json) -> ComputeGrowth:
    """The growth in `data`."""
    return decoded(ComputeGrowth, data)


@dataclass(frozen=True, slots=True)
class Bill:
    """Every trial of a sweep, in hours and USD."""

    num_trials: int
    num_infeasible: int
    num_timed: int
    hours: float
    device_hours: float
    num_priced: int
    prices_said: tuple[str, ...] = ()
    usd: float | None = None
    winner_hours: float | None = None
    winner_usd: float | None = None


@dataclass(frozen=True, slots=True)
class BestOf:
    """Steps of the best of n trials; an end that is not there: none may reach the target."""

    num_trials: int
    none_reaches: float
    median: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Strategy:
    """The best of the first n trials by the order in which they are tried."""

    random: tuple[float | None, ...]
    grid: tuple[float | None, ...]
    informed: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class OfBatchSize:
    """The search at one batch size."""

    batch_size: float
    num_rates: int
    best_of: tuple[BestOf, ...]
    strategies: Strategy
    best_rate: float | None = None
    best_steps: float | None = None
    foreseen: float | None = None


@dataclass(frozen=True, slots=True)
class FewerTrials:
    """B_crit with n trials a batch size."""

    num_trials: int
    without_fit: float
    median: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class SearchCost:
    """What the search of a sweep cost, and what fewer trials would have found."""

    unit: str
    bill: Bill
    sizes: tuple[OfBatchSize, ...] = ()
    critical_batches: tuple[FewerTrials, ...] = ()
    target: float | None = None


@dataclass(frozen=True, slots=True)
class Lever:
    """What can be done about one part of the time."""

    share_of: str
    share: float
    most_times: float
    what: str
    effort_said: str


@dataclass(frozen=True, slots=True)
class Memory:
    """What a device holds, and what is assumed."""

    said: str
    device: str | None = None
    memory_gb: float | None = None
    micro_batch: float | None = None


@dataclass(frozen=True, slots=True)
class TimeOfRun:
    """Where a run's time goes, and what it uses of known techniques."""

    memory: Memory
    shares: dict[str, float]
    missing: tuple[str, ...] = ()
    levers: tuple[Lever, ...] = ()
    techniques: tuple[Technique, ...] = ()
    unexplained: float | None = None


def search_cost(data: Json) -> SearchCost:
    """The cost of searching in `data`."""
    return decoded(SearchCost, data)


def time_of_run(data: Json) -> TimeOfRun:
    """Where the time goes, in `data`."""
    return decoded(TimeOfRun, data)
