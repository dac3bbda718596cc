"""What the REST API answers, as frozen dataclasses; the words are those of docs/rest.md."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

Json = Mapping[str, Any]
Numbers = tuple[float | None, ...]
Row = TypeVar("Row")


FREE_FORM = ("config", "details", "claim", "advice")
"""Parts that people and programs write as they like: kept as they are, nulls too."""


def decoded(kind: type[Row], data: object) -> Row:
    """`data` with all its parts as `kind`: null is what nobody said, and a newer server may say more.

    Raises:
        msgspec.ValidationError: Where a part is something else than docs/rest.md says.
    """
    return msgspec.convert(_said(data), kind)


def _said(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: one if name in FREE_FORM else _said(one) for name, one in value.items() if one is not None}
    if not isinstance(value, list | tuple) or not any(isinstance(one, Mapping | list | tuple) for one in value):
        return value  # a column of numbers: a null in it is a number that is not known
    return [_said(one) for one in value]


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
    return decoded(Interval, data or {})


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
    """κ of a run; without `measurements` (sweeps, branches and followed runs) it is the spread over published tasks."""

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
    noise_scale: Estimate = NOT_MEASURED
    example_efficiency: Interval = UNKNOWN
    step_efficiency: Interval = UNKNOWN
    decision: Decision = Decision()
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
    is_baseline: bool = False
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
    return decoded(Run, data)


@dataclass(frozen=True, slots=True)
class Fold:
    """Trials that stand behind one run of a page; `id` is that of their sweep, None for a reproduction's."""

    run_id: str
    kind: str
    name: str
    num_runs: int
    id: str | None = None
    batch_low: float | None = None
    batch_high: float | None = None
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class RunPage:
    """One page of the run list; `next_cursor` is None on the last one.

    Attributes:
        runs: A run a row.
        next_cursor: For the next page.
        total: Rows in all.
        folds: By the id of a run, the trials that it stands for.
        num_runs: Runs that the rows in all stand for.
        is_total_exact: Whether there are no more than these; the server counts no further than 10,000.
    """

    runs: tuple[Run, ...]
    next_cursor: str | None
    total: int
    folds: Mapping[str, Fold]
    num_runs: int
    is_total_exact: bool = True


def run_page(data: Json) -> RunPage:
    """The page of runs in `data`."""
    runs = decoded(tuple[Run, ...], data["runs"])
    folds = {fold.run_id: fold for fold in decoded(tuple[Fold, ...], data.get("folds") or ())}
    num_runs, is_exact = data.get("num_runs", data["total"]), data.get("is_total_exact", True)
    return RunPage(runs, data.get("next_cursor"), data["total"], folds, num_runs, is_exact)


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs that agree in something: how many, and medians over them, in examples."""

    num_runs: int
    value: str | None = None
    num_resolved: int = 0
    num_silent: int = 0
    noise_scale: float | None = None
    global_batch: float | None = None
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class RunGroups:
    """Groups, largest first; of the newest runs alone where `is_exact` is false."""

    groups: tuple[RunGroup, ...]
    is_exact: bool = True


def run_groups(data: Json) -> RunGroups:
    """The groups in `data`."""
    return RunGroups(decoded(tuple[RunGroup, ...], data["groups"]), data.get("is_exact", True))


@dataclass(frozen=True, slots=True)
class ChangedRuns:
    """Ids of the runs that were changed together, and of those that were not."""

    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    too_many_tags: tuple[str, ...] = ()


def changed_runs(data: Json) -> ChangedRuns:
    """What became of runs that were to be changed."""
    return decoded(ChangedRuns, data)


@dataclass(frozen=True, slots=True)
class Project:
    """A project and its tasks."""

    name: str
    tasks: tuple[str, ...] = ()


def projects(data: Json) -> tuple[Project, ...]:
    """The projects in `data`."""
    return decoded(tuple[Project, ...], data["projects"])
