"""What the REST API answers, as frozen dataclasses; the words are those of docs/rest.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import msgspec

Json = Mapping[str, Any]
Row = TypeVar("Row")


def picked(row: type[Row], data: Json) -> Row:
    """`row` filled with those fields of `data` that it knows: a newer server may say more."""
    known = {field.name for field in fields(row)}  # type: ignore[arg-type]  # Row is always a dataclass here
    return row(**{name: value for name, value in data.items() if name in known})


def decoded(kind: type[Row], data: Json) -> Row:
    """`data` with all its parts as `kind`: null is what nobody said, and a newer server may say more.

    Raises:
        msgspec.ValidationError: Where a part is something else than docs/rest.md says.
    """
    return msgspec.convert(_said(data), kind)


def _said(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _said(one) for name, one in value.items() if one is not None}
    return [_said(one) for one in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its interval; all None where nothing can be said."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None


UNKNOWN = Interval()


def interval(data: Json | None) -> Interval:
    """The interval in `data`, an empty one for null or {}."""
    return picked(Interval, data or {})


@dataclass(frozen=True, slots=True)
class Estimate:
    """A noise scale in examples, with its state (docs/rest.md, "An estimate")."""

    state: str = "unresolved"
    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    z: float | None = None
    reason: str | None = None
    reason_text: str | None = None
    num_updates: int | None = None
    num_blocks: int | None = None
    updates_needed: float | None = None
    step: int | None = None


NOT_MEASURED = Estimate()


def estimate(data: Json | None) -> Estimate:
    """The estimate in `data`; an unresolved one for null."""
    return picked(Estimate, data) if data else NOT_MEASURED


@dataclass(frozen=True, slots=True)
class Decision:
    """Which batch size to use, short enough for a table row."""

    decision: str = "insufficient_evidence"
    batch_size: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    probability: float | None = None
    saving: float | None = None


@dataclass(frozen=True, slots=True)
class Kappa:
    """κ of a run; without `measurements` (sweeps and branches) it is the spread over published tasks."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    measurements: int = 0


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to know of a run's measurement, with the way out."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Divergence:
    """Since which step the loss or the gradients of a run are not finite, as a sentence too."""

    step: int
    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """One training run with its latest values."""

    id: str
    project: str
    task: str
    name: str
    status: str
    created_at: str
    updated_at: str
    noise_scale: Estimate
    example_efficiency: Interval
    step_efficiency: Interval
    decision: Decision
    divergence: Divergence | None = None
    kappa: Kappa = Kappa()
    tags: tuple[str, ...] = ()
    config: Json | None = None
    unit: str = "examples"
    example: str = "example"
    units_per_example: float = 1
    num_devices: int | None = None
    device: str | None = None
    usd_per_device_hour: float | None = None
    family: str | None = None
    planned_steps: int | None = None
    archived: bool = False
    finished_at: str | None = None
    optimizer: str | None = None
    estimator: str | None = None
    num_ranks: int | None = None
    measure_every: int | None = None
    notes: tuple[str, ...] = ()
    remarks: str = ""
    notices: tuple[Notice, ...] = ()
    kinds: tuple[str, ...] = ()
    lr: float | None = None
    loss_reduction: str | None = None
    first_step: int | None = None
    last_step: int | None = None
    examples: int | None = None
    global_batch: float | None = None
    num_micro_batches: int | None = None
    loss: float | None = None


def run(data: Json) -> Run:
    """The run in `data`."""
    nested = {
        "noise_scale": estimate(data.get("noise_scale")),
        "example_efficiency": interval(data.get("example_efficiency")),
        "step_efficiency": interval(data.get("step_efficiency")),
        "decision": picked(Decision, data.get("decision") or {}),
        "divergence": picked(Divergence, data["divergence"]) if data.get("divergence") else None,
        "kappa": picked(Kappa, data.get("kappa") or {}),
        "tags": tuple(data.get("tags") or ()),
        "notes": tuple(data.get("notes") or ()),
        "notices": tuple(picked(Notice, row) for row in data.get("notices") or ()),
        "kinds": tuple(data.get("kinds") or ()),
    }
    return picked(Run, {**data, **nested})


@dataclass(frozen=True, slots=True)
class RunPage:
    """One page of the run list; `next_cursor` is None on the last one."""

    runs: tuple[Run, ...]
    next_cursor: str | None
    total: int


def run_page(data: Json) -> RunPage:
    """The page of runs in `data`."""
    return RunPage(tuple(run(row) for row in data["runs"]), data.get("next_cursor"), data["total"])


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs that agree in something: how many, and medians over them, in examples."""

    value: str | None
    num_runs: int
    num_resolved: int = 0
    noise_scale: float | None = None
    global_batch: float | None = None
    loss: float | None = None


def run_groups(data: Json) -> tuple[RunGroup, ...]:
    """The groups in `data`, largest first."""
    return tuple(picked(RunGroup, row) for row in data["groups"])


@dataclass(frozen=True, slots=True)
class ChangedRuns:
    """Ids of the runs that were changed together, and of those that were not."""

    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    too_many_tags: tuple[str, ...] = ()


def changed_runs(data: Json) -> ChangedRuns:
    """What became of runs that were to be changed."""
    return picked(ChangedRuns, {name: tuple(ids) for name, ids in data.items()})


@dataclass(frozen=True, slots=True)
class Project:
    """A project and its tasks."""

    name: str
    num_runs: int
    tasks: tuple[str, ...] = ()


def projects(data: Json) -> tuple[Project, ...]:
    """The projects in `data`."""
    return tuple(picked(Project, row) for row in data["projects"])


Numbers = tuple[float | None, ...]


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
    latest: Estimate
    run_average: Estimate
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
    columns = {name: tuple(column) for name, column in data["points"].items()}
    nested = {
        "points": picked(Points, columns),
        "latest": estimate(data.get("latest")),
        "run_average": estimate(data.get("run_average")),
        "events": _events(data),
    }
    return picked(NoiseScaleSeries, {**data, **nested})


def _events(data: Json) -> tuple[Event, ...]:
    rows = data.get("events") or ()
    return tuple(Event(row["step"], row["kind"], row.get("from"), row.get("to")) for row in rows)


@dataclass(frozen=True, slots=True)
class ShortSeries:
    """A few points of a run's whole noise scale, in examples, and what has happened along them."""

    points: Points
    events: tuple[Event, ...] = ()


def short_series(data: Json) -> dict[str, ShortSeries]:
    """The short series of each run in `data`."""
    return {
        run_id: ShortSeries(
            picked(Points, {name: tuple(column) for name, column in one.items() if name != "events"}), _events(one)
        )
        for run_id, one in data["runs"].items()
    }


def sparklines(data: Json) -> dict[str, Points]:
    """The few points of each run in `data`."""
    return {
        run_id: picked(Points, {name: tuple(column) for name, column in columns.items()})
        for run_id, columns in data["runs"].items()
    }


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
    estimate: Estimate
    series: GroupSeries
    trace_cov: float | None = None
    trace_cov_se: float | None = None
    grad_sq_norm: float | None = None
    grad_sq_norm_se: float | None = None


def groups(data: Json) -> tuple[Group, ...]:
    """The layers in `data`, in network order."""
    return tuple(_group(row) for row in data["groups"])


def _group(data: Json) -> Group:
    columns = {name: tuple(column) for name, column in (data.get("series") or {}).items()}
    nested = {"estimate": estimate(data.get("estimate")), "series": picked(GroupSeries, columns)}
    return picked(Group, {**data, **nested})


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
    return tuple(_stream(row) for row in data["streams"])


def _stream(data: Json) -> Stream:
    lost = tuple(LostRange(row["from"], row["to"], row["reason"]) for row in data.get("lost") or ())
    return picked(Stream, {**data, "lost": lost, "live_steps": tuple(data.get("live_steps") or ())})


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
    return tuple(_metric(row) for row in data["metrics"])


def _metric(data: Json) -> Metric:
    columns = {name: tuple(column) for name, column in data.items() if name != "name"}
    return picked(Metric, {"name": data["name"], **columns})
