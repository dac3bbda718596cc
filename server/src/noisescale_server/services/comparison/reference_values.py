"""Published values to compare one's own with.

They are package data and not a table: each release ships exactly the values that were reviewed with it, a correction
is a diff with its source, and no migration has to repeat them. All of them fit into 100 KiB of memory.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

from noisescale_server.analysis.comparison.comparison import Statistics, statistics
from noisescale_server.analysis.comparison.task_order import Rung, TaskOrder, task_order

SHARED_FIELDS = frozenset({"task", "quantity", "value", "unit", "source", "source_address", "evidence", "note", "kind"})


@dataclass(frozen=True, slots=True)
class ReferenceValue:
    """One published value.

    Attributes:
        task: What was trained.
        quantity: What the value is, such as `critical_batch_size_average`.
        value: As `kind` says: a number, [low, high], a record, text, or None.
        unit: Unit of the value.
        source: Where it was published.
        source_address: Its address, or how it was computed.
        evidence: How strong: primary text, transcriptions, recomputed.
        note: A caveat.
        kind: number, range, record, text or none.
        details: Conditions of this value alone, such as the loss it holds at.
    """

    task: str
    quantity: str
    value: Any
    unit: str
    source: str
    source_address: str
    evidence: str
    note: str | None
    kind: str
    details: dict[str, Any]


def load() -> tuple[ReferenceValue, ...]:
    """Every value that ships with this release, in the order of its sources."""
    text = files("noisescale_server").joinpath("data", "reference_values.json").read_text(encoding="utf-8")
    return tuple(_from_row(row) for row in json.loads(text)["values"])


def find(
    values: Iterable[ReferenceValue], *, task: str | None = None, quantity: str | None = None
) -> list[ReferenceValue]:
    """Those of one task, of one quantity, or of both; names are compared without regard to case."""
    return [item for item in values if _is_same(task, item.task) and _is_same(quantity, item.quantity)]


def _is_same(wanted: str | None, name: str) -> bool:
    return wanted is None or wanted.casefold() == name.casefold()


def _from_row(row: dict[str, Any]) -> ReferenceValue:
    shared: dict[str, Any] = {name: row.get(name) for name in SHARED_FIELDS}
    details = {name: value for name, value in row.items() if name not in SHARED_FIELDS}
    return ReferenceValue(**shared, details=details)


# The published noise scales and critical batches of tasks, to stand beside one's own, and their comparison, computed by
# the same code as one's own.
#
# Source: McCandlish et al. 2018, arXiv:1812.06162, Table 1, as it ships among the reference values.

NOISE_SCALE = "simple_noise_scale_average"
NOISE_SCALE_AT_START = "simple_noise_scale_start"
CRITICAL_BATCH = "critical_batch_size_average"
CRITICAL_BATCH_AT_START = "critical_batch_size_start"
CRITICAL_BATCH_BOUND = "critical_batch_size_average_lower_bound"

Form = Literal["point", "range", "lower_bound"]


@dataclass(frozen=True, slots=True)
class PublishedNumber:
    """A number as it was published.

    Attributes:
        form: A point; a range over several tasks (`low` to `high`); or a lower bound (`low`).
        value: Of a point.
        low: Of a range or a lower bound.
        high: Of a range.
    """

    form: Form
    value: float | None
    low: float | None
    high: float | None

    @property
    def representative(self) -> float:
        """The point, the geometric middle of the range, or the bound itself."""
        if self.value is not None:
            return self.value
        assert self.low is not None, "a range and a bound have one"
        return self.low if self.high is None else math.sqrt(self.low * self.high)


@dataclass(frozen=True, slots=True)
class PublishedTask:
    """A published task.

    Attributes:
        task: Its name.
        unit: What both numbers count.
        noise_scale: Averaged over training.
        critical_batch: Averaged over training; a bound where it was not measured.
        noise_scale_at_start: At the start, or None.
        critical_batch_at_start: At the start, or None.
        source: Where it was published.
        source_address: Its address.
        evidence: How the number was read.
        note: A caveat, or None.
    """

    task: str
    unit: str
    noise_scale: PublishedNumber
    critical_batch: PublishedNumber
    noise_scale_at_start: PublishedNumber | None
    critical_batch_at_start: PublishedNumber | None
    source: str
    source_address: str
    evidence: str
    note: str | None

    @property
    def form(self) -> Form:
        """What the task is in a chart."""
        return self.critical_batch.form if self.noise_scale.form == "point" else self.noise_scale.form


def published_tasks(values: Iterable[ReferenceValue]) -> tuple[PublishedTask, ...]:
    """Every task with both numbers, in the order of the reference values."""
    by_name = {(item.task, item.quantity): item for item in values}
    found = []
    for (task, quantity), noise_scale in by_name.items():
        critical_batch = by_name.get((task, CRITICAL_BATCH)) or by_name.get((task, CRITICAL_BATCH_BOUND))
        if quantity == NOISE_SCALE and critical_batch is not None:
            starts = [_number(by_name.get((task, name))) for name in (NOISE_SCALE_AT_START, CRITICAL_BATCH_AT_START)]
            found.append(_task(noise_scale, critical_batch, *starts))
    return tuple(found)


def pairs(tasks: Iterable[PublishedTask], *forms: Form) -> list[tuple[float, float]]:
    """(noise scale, critical batch) of the tasks of these forms, a range at its middle and a bound at itself."""
    return [(one.noise_scale.representative, one.critical_batch.representative) for one in tasks if one.form in forms]


def _task(
    noise_scale: ReferenceValue,
    critical_batch: ReferenceValue,
    noise_scale_at_start: PublishedNumber | None,
    critical_batch_at_start: PublishedNumber | None,
) -> PublishedTask:
    scale, critical = _number(noise_scale), _number(critical_batch)
    assert scale is not None, "the table has a noise scale for every task"
    assert critical is not None, "and a critical batch or a bound of it"
    return PublishedTask(
        task=noise_scale.task,
        unit=noise_scale.unit,
        noise_scale=scale,
        critical_batch=critical,
        noise_scale_at_start=noise_scale_at_start,
        critical_batch_at_start=critical_batch_at_start,
        source=critical_batch.source,
        source_address=critical_batch.source_address,
        evidence=critical_batch.evidence,
        note=critical_batch.note,
    )


def _number(item: ReferenceValue | None) -> PublishedNumber | None:
    if item is None or item.kind == "none":
        return None
    value: Any = item.value
    if item.kind == "range":
        return PublishedNumber("range", None, float(value[0]), float(value[1]))
    if item.quantity == CRITICAL_BATCH_BOUND:
        return PublishedNumber("lower_bound", None, float(value), None)
    return PublishedNumber("point", float(value), None, None)


CHAINS = {
    "image classification": ("MNIST", "SVHN", "ImageNet (ResNet-50)"),
    "reinforcement learning": ("Atari (7 games, A2C)", "Dota 1v1 (PPO)", "Dota 5v5 (PPO)"),
}
"""From easy to hard; single games of Atari are published as a range alone."""

SELECTIONS: tuple[tuple[str, tuple[Form, ...]], ...] = (
    ("point tasks", ("point",)),
    ("point tasks and the middle of Atari", ("point", "range")),
    ("point tasks, the middle of Atari, and Dota 5v5 at its lower bound", ("point", "range", "lower_bound")),
)


@dataclass(frozen=True, slots=True)
class PublishedStatistics:
    """The statistics of some of the published tasks."""

    tasks: str
    statistics: Statistics


@dataclass(frozen=True, slots=True)
class PublishedComparison:
    """Published tasks with their statistics and order.

    Attributes:
        tasks: Table 1.
        statistics: For the point tasks, and with ranges and bounds at one value.
        orders: Chains from easy to hard.
        article_r_squared: What the authors' article gives, with single Atari games.
    """

    tasks: tuple[PublishedTask, ...]
    statistics: tuple[PublishedStatistics, ...]
    orders: tuple[TaskOrder, ...]
    article_r_squared: float


@lru_cache(maxsize=1)
def _computed(tasks: tuple[PublishedTask, ...], article: float) -> PublishedComparison:
    found = []
    for name, forms in SELECTIONS:
        one = statistics(pairs(tasks, *forms))
        assert one is not None, "Table 1 has eight point tasks"
        found.append(PublishedStatistics(name, one))
    return PublishedComparison(tasks, tuple(found), _orders(tasks), article)


def published(values: Sequence[ReferenceValue]) -> PublishedComparison:
    """The published comparison; computed once a process."""
    article = next(float(item.value) for item in values if item.quantity == "r2_noise_scale_vs_critical_batch")
    return _computed(published_tasks(values), article)


def _orders(tasks: Sequence[PublishedTask]) -> tuple[TaskOrder, ...]:
    by_name = {one.task: one for one in tasks}
    found = []
    for chain, names in CHAINS.items():
        members = [by_name[name] for name in names]
        found.append(task_order(chain, "noise_scale", [_rung(one.task, one.noise_scale) for one in members]))
        found.append(task_order(chain, "critical_batch", [_rung(one.task, one.critical_batch) for one in members]))
    return tuple(found)


def _rung(task: str, number: PublishedNumber) -> Rung:
    if number.value is not None:
        return Rung(task, number.value, number.value)
    assert number.low is not None, "a range and a bound have one"
    return Rung(task, number.low, number.high)
