"""A run of a source with its roles chosen: what the preview shows and the delivery sends."""

import math
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from noisescale.description import RunDescription
from noisescale_importers.answers.summary import Summary
from noisescale_importers.reading import Reading
from noisescale_importers.roles import MAY_COUNT, Taken, chosen, is_count, normalised, number_of
from noisescale_importers.source import Damage, Row, SourceRun, as_name, shown
from noisescale_importers.source import run_id as id_of_source_run

HEAD_ROWS = 300
"""Rows from which columns are known; the same at each import, so that a grown source keeps its roles."""

REST_SECONDS = 600.0
"""A source that has not changed for so long has ended, where it does not say so itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the command line asks for.

    Attributes:
        kind: Name of the importer.
        project: Where runs go.
        task: Their task; None: as the source says.
        source_name: Stands for the folder of the source in what tells runs apart.
        flags: By role, what fills it.
        tags: Of all runs.
        state: "finished" or "running" for sources that do not say; None: how long they rest decides.
    """

    kind: str
    project: str
    task: str | None = None
    source_name: str | None = None
    flags: Mapping[str, str]
    tags: Sequence[str] = ()
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run, ready to be shown or sent.

    Attributes:
        source: The run.
        columns: Names of its values, in the order in which they come.
        roles: What fills each role.
        examples: The first value of each column.
        damages: What cannot be read among the first rows.
        has_rows: Whether there is a row at all.
        has_steps: Whether the source itself says the steps of its rows.
        not_taken: By role, why what has its name does not fill it.
    """

    source: SourceRun
    columns: tuple[str, ...]
    roles: Mapping[str, Taken]
    examples: Mapping[str, float]
    damages: tuple[Damage, ...]
    has_rows: bool
    has_steps: bool = False
    not_taken: Mapping[str, str] = field(default_factory=dict)

    def reading(self) -> Reading:
        """A fresh reader of its rows."""
        return Reading(self.roles, self.number("sequence-length") or self.source.units, self.source.is_one_row)

    def column(self, role: str) -> str | None:
        """The column of a role."""
        taken = self.roles.get(role)
        return None if taken is None else taken.column

    def number(self, role: str) -> float | None:
        """The number of a role: of the whole run, or of its first row."""
        taken = self.roles.get(role)
        if taken is None:
            return None
        return taken.number if taken.column is None else self.examples.get(taken.column)


@dataclass(frozen=True, slots=True)
class Head:
    """The first rows of a run.

    Attributes:
        source: The run.
        examples: By column the first number, a finite one where there is one.
        counts: Columns that count batches, where others hold their size.
        damages: What cannot be read of them.
        has_rows: Whether there is a row at all.
        has_steps: Whether the source itself says the steps of its rows.
    """

    source: SourceRun
    examples: Mapping[str, float]
    counts: tuple[str, ...]
    damages: tuple[Damage, ...]
    has_rows: bool
    has_steps: bool


def head_of(run: SourceRun) -> Head:
    """The first rows of a run; the same at each import, so that a grown source keeps its roles."""
    examples: dict[str, float] = {}
    may_count: dict[str, list[float]] = defaultdict(list)
    damages: list[Damage] = []
    has_rows = has_steps = False
    for row in islice(run.rows(), HEAD_ROWS):
        if isinstance(row, Damage):
            damages.append(row)
            continue
        has_rows, has_steps = True, row.step is not None
        for name, value in row.values.items():
            if name not in examples or not math.isfinite(examples[name]):
                examples[name] = value
            if normalised(name) in MAY_COUNT:
                may_count[name].append(value)
    counts = tuple(name for name, values in may_count.items() if is_count(name, values, are_runs=run.is_one_row))
    return Head(run, examples, counts, tuple(damages), has_rows, has_steps)


def prepare(head: Head, wishes: Wishes, elsewhere: Collection[str] = ()) -> Prepared:
    """Choose the roles of a run.

    Args:
        head: Its first rows.
        wishes: Of the command line.
        elsewhere: Columns of the source that this run does not have among its first rows.

    Raises:
        ConfigError: For a flag that names no column.
    """
    run, columns = head.source, tuple(head.examples)
    roles, not_taken = {}, {}
    if head.has_rows:
        counts = set(head.counts) - set(wishes.flags.values())
        sizes = [name for name in columns if name not in counts]
        roles = chosen(sizes, run.config, run.roles, wishes.flags, elsewhere)
        if counts and "batch" not in roles:
            not_taken["batch"] = f"{shown(min(counts), 40)} counts batches, it is no size"
    return Prepared(run, columns, roles, head.examples, head.damages, head.has_rows, head.has_steps, not_taken)


def missing_columns(heads: Sequence[Head], wishes: Wishes) -> set[str]:
    """What flags name and the first rows of no run have, but later rows do: an evaluation may come late."""
    known = {name for head in heads for name in head.examples}
    wanted = {
        text
        for text in wishes.flags.values()
        if text not in known
        and text.lower() != "none"
        and number_of(text) is None
        and not any(text in head.source.config for head in heads)
    }
    found: set[str] = set()
    for head in heads if wanted else ():
        for row in head.source.rows():
            if isinstance(row, Row):
                found |= wanted & row.values.keys()
            if found == wanted:
                return found
    return found


def task_of(run: SourceRun, wishes: Wishes) -> str:
    """The task: as asked for, else as the source says; of a table of runs both, as its rows are of many tasks."""
    group = run.group if run.is_one_row or wishes.task is None else None
    parts = [part for part in (wishes.task, group) if part]
    return as_name(": ".join(parts)) or "default"


def run_id_of(run: SourceRun, wishes: Wishes) -> str:
    """The id of the run on the server."""
    return id_of_source_run(run, kind=wishes.kind, project=wishes.project, source_name=wishes.source_name)


def status_of(run: SourceRun, wishes: Wishes) -> str | None:
    """How the run has ended, "finished" or "failed"; None where the source may grow."""
    if run.state in ("finished", "failed"):
        return run.state
    if wishes.state is not None:
        return "finished" if wishes.state == "finished" else None
    is_resting = run.changed_at is not None and time.time() - run.changed_at > REST_SECONDS
    return "finished" if run.state == "unknown" and is_resting else None


def description_of(prepared: Prepared, wishes: Wishes) -> dict[str, object]:
    """The run as the protocol describes it.

    Raises:
        ConfigError: For a project or tag that the server would refuse.
    """
    run, reading = prepared.source, prepared.reading()
    price = prepared.number("price")
    origin = {
        "importer": wishes.kind,
        "source": shown(run.place, 256),
        "roles": {role: _said(taken) for role, taken in prepared.roles.items()},
    }
    return RunDescription(
        project=wishes.project,
        task=task_of(run, wishes),
        name=as_name(run.name or ""),
        example=reading.example,
        unit=reading.unit,
        units_per_example=reading.units_per_example,
        config={**{shown(key, 256): value for key, value in run.config.items()}, "imported_from": origin},
        tags=tuple(wishes.tags),
        usd_per_device_hour=price if price is not None and 0 <= price < math.inf else None,
    ).to_json()


def _said(taken: Taken) -> object:
    return taken.column if taken.column is not None else taken.number


def summary_of(prepared: Prepared, wishes: Wishes) -> Summary:
    """An empty summary of the run, to be filled by its rows."""
    run, reading, seed = prepared.source, prepared.reading(), prepared.number("seed")
    run_id = run_id_of(run, wishes)
    return Summary(
        run_id=run_id,
        name=as_name(run.name or "") or run_id[:8],
        task=task_of(run, wishes),
        metric=prepared.column("metric"),
        has_open_metric="metric" not in prepared.roles and "metric" not in wishes.flags,
        norm_name=prepared.column("gradient-norm"),
        seed=None if seed is None or not math.isfinite(seed) else int(seed),
        unit=reading.unit,
        units_per_example=reading.units_per_example,
        steps_to_target=_steps_to_target(prepared) if run.is_one_row else None,
        is_one_row=run.is_one_row,
        status=run.trial_status,
        targets=tuple(run.targets),
    )


def _steps_to_target(prepared: Prepared) -> float | None:
    """None where the target was not reached, which tables say by an infinity or by no number."""
    number = prepared.number("steps-to-target")
    return number if number is not None and math.isfinite(number) else None
