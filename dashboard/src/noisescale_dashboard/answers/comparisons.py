"""What the REST API answers about comparisons: over tasks, over runs, over sizes of models."""

from dataclasses import dataclass, replace

from noisescale_dashboard.answers.common import UNKNOWN, Interval, Json, Numbers, decoded, interval


@dataclass(frozen=True, slots=True)
class ComparedTask:
    """A task and an optimizer with noise scale and B_crit, in the task's unit; `left_out` says why it counts not."""

    project: str
    task: str
    unit: str
    sweep_id: str
    optimizer: str | None = None
    noise_scale: Interval = UNKNOWN
    start: Interval = UNKNOWN
    critical_batch: Interval = UNKNOWN
    target: float | None = None
    metric: str | None = None
    kappa: Interval = UNKNOWN
    left_out: str | None = None

    @property
    def has_both(self) -> bool:
        """Whether the task has a place in the scatter."""
        return self.noise_scale.value is not None and self.critical_batch.value is not None


@dataclass(frozen=True, slots=True)
class PublishedNumber:
    """A published number: a point (`value`), a range (`low` to `high`) or a lower bound (`low`)."""

    form: str
    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class PublishedTask:
    """A published task with both numbers, averaged over training, and at its start where known."""

    task: str
    unit: str
    form: str
    noise_scale: PublishedNumber
    critical_batch: PublishedNumber
    noise_scale_at_start: PublishedNumber | None = None
    critical_batch_at_start: PublishedNumber | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class PublishedCriticalBatch:
    """B_crit of a published sweep, in its examples; its noise scale is not published."""

    suite: str
    workload: str
    version: str = ""
    critical_batch: Interval = UNKNOWN


@dataclass(frozen=True, slots=True)
class Statistics:
    """How well noise scales predict critical batches over tasks, each with its interval over tasks."""

    num_tasks: int
    r_squared: Interval = UNKNOWN
    r_squared_of_identity: Interval = UNKNOWN
    slope: Interval = UNKNOWN
    rms_factor: Interval = UNKNOWN
    typical_kappa: Interval = UNKNOWN
    within_factor_2: Interval = UNKNOWN
    within_factor_3: Interval = UNKNOWN
    decades_of_noise_scale: float = 0.0
    decades_of_critical_batch: float = 0.0


@dataclass(frozen=True, slots=True)
class Rung:
    """A task of a chain; `high` is None for a lower bound."""

    task: str
    low: float
    high: float | None = None


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """A chain of tasks from easy to hard, and whether the numbers rise; `holds` is None where intervals overlap."""

    chain: str
    quantity: str
    rungs: tuple[Rung, ...]
    holds: bool | None = None
    factor_low: float = 0.0
    factor_high: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Noise scale against critical batch over tasks, one's own and published."""

    tasks: tuple[ComparedTask, ...]
    statistics: Statistics | None
    statistics_missing: str | None
    orders: tuple[TaskOrder, ...]
    published: tuple[PublishedTask, ...]
    published_statistics: Statistics
    published_orders: tuple[TaskOrder, ...]
    published_sweeps: tuple[PublishedCriticalBatch, ...]
    article_r_squared: float

    @property
    def drawn(self) -> tuple[ComparedTask, ...]:
        """One's own tasks that have both numbers."""
        return tuple(task for task in self.tasks if task.has_both)

    @property
    def left_out(self) -> tuple[ComparedTask, ...]:
        """Those that the statistics leave out."""
        return tuple(task for task in self.tasks if task.left_out is not None)


def comparison(data: Json) -> Comparison:
    """The comparison in `data`; published statistics are those of the tasks that were published as points."""
    published = data["published"]
    own = data.get("statistics")
    return Comparison(
        tasks=tuple(_task(row, data["average"]) for row in data["tasks"]),
        statistics=decoded(Statistics, own) if own else None,
        statistics_missing=data.get("statistics_missing"),
        orders=decoded(tuple[TaskOrder, ...], data["orders"]),
        published=decoded(tuple[PublishedTask, ...], published["tasks"]),
        published_statistics=decoded(Statistics, published["statistics"][0]["statistics"]),
        published_orders=decoded(tuple[TaskOrder, ...], published["orders"]),
        published_sweeps=decoded(tuple[PublishedCriticalBatch, ...], data["published_sweeps"]),
        article_r_squared=published["article_r_squared"],
    )


def _task(data: Json, average: str) -> ComparedTask:
    scale, units = data.get("noise_scale") or {}, data.get("units_per_example") or 1
    known = decoded(ComparedTask, {name: value for name, value in data.items() if name != "noise_scale"})
    return replace(
        known,
        noise_scale=_in_units(scale.get(average), units),
        start=_in_units(scale.get("start"), units),
        critical_batch=_in_units(data.get("critical_batch"), units),
    )


def _in_units(data: Json | None, units: float) -> Interval:
    found = interval(data)

    def times(number: float | None) -> float | None:
        return None if number is None else number * units

    return Interval(times(found.value), times(found.low), times(found.high), found.level)


@dataclass(frozen=True, slots=True)
class SizedTask:
    """A task whose runs have models of several sizes."""

    project: str
    task: str
    num_runs: int
    num_sizes: int


def sized_tasks(data: Json) -> tuple[SizedTask, ...]:
    """The tasks in `data`, those with most sizes first."""
    return decoded(tuple[SizedTask, ...], data["tasks"])


@dataclass(frozen=True, slots=True)
class RunAtLosses:
    """A run's resolved windows as columns, oldest first; noise scales in examples, `size` that of its model."""

    run_id: str
    name: str
    size: float | None = None
    loss: tuple[float, ...] = ()
    noise_scale: tuple[float, ...] = ()
    is_warm: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class SizeEffect:
    """By which factor the noise scale changes for ten times the size, at equal loss."""

    explanation: str
    factor_per_decade: Interval = UNKNOWN
    interaction: Interval = UNKNOWN
    common_low: float = 0.0
    common_high: float = 0.0


@dataclass(frozen=True, slots=True)
class ModelSizes:
    """Runs of one task by the size of their models, and the test at equal loss or why there is none."""

    size_key: str
    runs: tuple[RunAtLosses, ...]
    effect: SizeEffect | None = None
    has_common_losses: bool | None = None
    reason: str | None = None


def model_sizes(data: Json) -> ModelSizes:
    """The test in `data`."""
    return decoded(ModelSizes, data)


@dataclass(frozen=True, slots=True)
class AlignedPoints:
    """Columns of a run along an axis, oldest first; noise scale and batch in examples."""

    x: Numbers = ()
    value: Numbers = ()
    low: Numbers = ()
    high: Numbers = ()
    state: tuple[str, ...] = ()
    loss: Numbers = ()
    loss_min: Numbers = ()
    loss_max: Numbers = ()
    global_batch: Numbers = ()
    example_efficiency: Numbers = ()
    example_efficiency_low: Numbers = ()
    example_efficiency_high: Numbers = ()


@dataclass(frozen=True, slots=True)
class AlignedRun:
    """A run along the axis that all runs share."""

    run_id: str
    points: AlignedPoints


@dataclass(frozen=True, slots=True)
class Ratio:
    """The noise scale of a run over that of the first one, where both have come equally far."""

    run_id: str
    x: tuple[float, ...] = ()
    value: Numbers = ()
    low: Numbers = ()
    high: Numbers = ()
    is_resolved: tuple[bool, ...] = ()
    mean: Interval = UNKNOWN


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """Runs along one axis; those in `missing` do not exist."""

    x: str
    runs: tuple[AlignedRun, ...]
    missing: tuple[str, ...] = ()
    ratios: tuple[Ratio, ...] = ()


def compared_runs(data: Json) -> ComparedRuns:
    """The runs in `data`."""
    return decoded(ComparedRuns, data)
