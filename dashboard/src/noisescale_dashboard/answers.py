"""What the REST API answers, as frozen dataclasses; the words are those of docs/rest.md."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import msgspec

Json = Mapping[str, Any]
Numbers = tuple[float | None, ...]
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
