"""Which runs: everything that a list of runs can be narrowed by, as conditions of a query."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, Literal
from uuid import UUID

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Numeric,
    Subquery,
    Text,
    and_,
    case,
    cast,
    func,
    literal_column,
    not_,
    or_,
    select,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from noisescale_server.storage.platform.tables import NAME_PARTS, Project, Run, SweepRun, Task
from noisescale_server.storage.recommendation import has_diverged, is_one_of
from noisescale_server.storage.runs.runs import heard_since

CONFIG: Final = "config."
MIN_OF_ID = 6
"""Characters of an id that are looked for: fewer would find runs that have no such name, too."""
BEGINNING_OF_ID = re.compile(rf"[0-9a-fA-F-]{{{MIN_OF_ID},36}}")
NUMBER: Final = r"^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?$"
"""A text that is compared as a number; Python and Postgres read this pattern alike."""
DIGITS_OF_ID: Final = 32
LETTERS_IN_A_ROW: Final = 3
"""Letters in a row by which names are found along an index."""

Comparison = Literal["=", "!=", "<", "<=", ">", ">="]

WORDS: Final[Mapping[str, InstrumentedAttribute[Any]]] = MappingProxyType(
    {
        "project": Project.name,
        "task": Task.name,
        "optimizer": Run.optimizer,
        "family": Run.family,
        "device": Run.device,
    }
)
NUMBERS: Final[Mapping[str, InstrumentedAttribute[Any]]] = MappingProxyType(
    {
        "lr": Run.latest_lr,
        "loss": Run.latest_loss,
        "step": Run.latest_step,
        "batch": Run.latest_global_batch,
        "noise_scale": Run.noise_scale_value,
        "devices": Run.num_devices,
    }
)
"""Fields of a run that a `Condition` compares, besides the keys of its config: texts, and numbers."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A field of a run compared with a value.

    Attributes:
        field: A name of `WORDS` or `NUMBERS`, or "config." and a key.
        by: How they are compared.
        value: A text; None stands for runs that do not say the field.
        number: The same as a number, where it is one.
    """

    field: str
    by: Comparison
    value: str | None
    number: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs; None or empty means any.

    Attributes:
        statuses: Any of running, silent, crashed, finished, failed, and diverged, which may go with any of the others.
        tags: All of them.
        text: Part of the name, in any case, or the first characters of the id, from `MIN_OF_ID` on.
        without: Parts that the name has none of, in any case.
        pattern: A regular expression of Postgres that the name matches somewhere, in any case.
        conditions: All of them.
        without_trials: Leave out what a sweep or a reproduction has trained.
        sweep: Runs of this sweep.
        silent_before: Runs without data since this moment are silent.
        crashed_before: Runs without data since this moment have crashed.
        updated_after: Runs with data since this moment.
        decisions: Any of them.
    """

    silent_before: datetime
    crashed_before: datetime
    project: str | None = None
    task: str | None = None
    statuses: Sequence[str] = ()
    tags: Sequence[str] = ()
    text: str | None = None
    without: Sequence[str] = ()
    pattern: str | None = None
    conditions: Sequence[Condition] = ()
    without_trials: bool = False
    sweep: UUID | None = None
    archived: bool = False
    batch_min: float | None = None
    batch_max: float | None = None
    noise_scale_min: float | None = None
    noise_scale_max: float | None = None
    ids: Sequence[UUID] | None = None
    updated_after: datetime | None = None
    decisions: Sequence[str] = ()


async def conditions(session: AsyncSession, wanted: RunFilter) -> list[ColumnElement[bool]]:
    """What a query of runs must hold, all of it.

    Names are looked up first: of an id Postgres knows how many runs are of it.
    """
    return [
        # as an index takes it
        type_coerce(Run.archived, Boolean) if wanted.archived else not_(Run.archived),
        *await _filed_under(session, wanted),
        *_where_it_belongs(wanted),
        *_names(wanted),
        *_states(wanted),
        *_ranges(wanted),
        *map(_compared, wanted.conditions),
    ]


def is_trial() -> ColumnElement[bool]:
    """Whether the run was trained to answer a question about batch sizes: for a sweep, or for a reproduction."""
    return Run.trial_of.is_not(None)


def is_no_trial() -> ColumnElement[bool]:
    """Whether it was not, as the indexes of lists say it."""
    return Run.trial_of.is_(None)


def _is_swept(sweep: UUID) -> ColumnElement[bool]:
    of_sweep = select(SweepRun.run_id).where(SweepRun.run_id == Run.id, SweepRun.is_stored)
    return of_sweep.where(SweepRun.sweep_id == sweep).correlate(Run).exists()


def has_status(status: str, wanted: RunFilter) -> ColumnElement[bool]:
    """Whether a run is in this state, by the moments of the filter."""
    is_open = Run.finish_status.is_(None)
    match status:
        case "diverged":
            return has_diverged()
        case "running":
            return and_(is_open, Run.updated_at > wanted.silent_before)
        case "silent":
            return and_(is_open, Run.updated_at <= wanted.silent_before, Run.updated_at > wanted.crashed_before)
        case "crashed":
            return and_(is_open, Run.updated_at <= wanted.crashed_before)
        case _:
            return Run.finish_status == status


async def _filed_under(session: AsyncSession, wanted: RunFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.project is not None:
        ids = (await session.scalars(select(Project.id).where(Project.name == wanted.project))).all()
        found.append(Run.project_id.in_(ids))
    if wanted.task is not None:
        ids = (await session.scalars(select(Task.id).where(Task.name == wanted.task))).all()
        found.append(Run.task_id.in_(ids))
    return found


def _where_it_belongs(wanted: RunFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.tags:
        found.append(type_coerce(Run.tags, ARRAY(Text)).contains(list(wanted.tags)))
    if wanted.ids is not None:
        found.append(Run.id.in_(wanted.ids))
    if wanted.sweep is not None:
        found.append(_is_swept(wanted.sweep))
    if wanted.without_trials:
        found.append(is_no_trial())
    return found


def _names(wanted: RunFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = [not_(Run.name.icontains(one, autoescape=True)) for one in wanted.without]
    if wanted.text:
        found.append(has_words(wanted.text))
    if wanted.pattern:
        found.append(Run.name.op("~*")(wanted.pattern))
    return found


def has_words(words: str) -> ColumnElement[bool]:
    """Whether the words are a part of a run's name, or the beginning of its id."""
    has_part, letters = Run.name.icontains(words, autoescape=True), parts_of(words)
    if letters:
        # the index finds few runs that may have it; where Postgres goes another way, the quick look comes first
        has_part = and_(has_part, literal_column(f"({NAME_PARTS})").op("@>")(cast(letters, ARRAY(Text))))
    return or_(has_part, *_has_id(words, Run.id))


def has_words_among(words: str, some: Subquery) -> ColumnElement[bool]:
    """The same of a few runs that are looked through, by their columns `name` and `id`."""
    return or_(some.c.name.icontains(words, autoescape=True), *_has_id(words, some.c.id))


def parts_of(text: str) -> list[str]:
    """Threes of letters by which the index finds a text, whatever the database takes for a small letter.

    One beside the other, and the last one: more of them, which overlap, cost more to look up than they leave out.
    """
    small = "".join(one.lower() if one.isascii() else one for one in text)
    last = len(small) - LETTERS_IN_A_ROW
    runs = {small[at : at + LETTERS_IN_A_ROW] for at in (*range(0, last, LETTERS_IN_A_ROW), last) if at >= 0}
    return sorted(one for one in runs if one.isascii() and "|" not in one)


def _has_id(beginning: str, column: ColumnElement[UUID] | InstrumentedAttribute[UUID]) -> list[ColumnElement[bool]]:
    """Whether an id begins so, as a range of ids."""
    if not BEGINNING_OF_ID.fullmatch(beginning):
        return []
    digits = beginning.replace("-", "")
    if len(digits) > DIGITS_OF_ID:
        return []
    first, last = UUID(digits.ljust(DIGITS_OF_ID, "0")), UUID(digits.ljust(DIGITS_OF_ID, "f"))
    # hyphens elsewhere than in ids
    return [column.between(first, last)] if str(last).startswith(beginning.lower()) else []


def _states(wanted: RunFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.statuses:
        found.append(or_(*(has_status(status, wanted) for status in wanted.statuses)))
    if wanted.statuses and set(wanted.statuses) <= {"running", "silent"}:
        found.append(heard_since(wanted.crashed_before if "silent" in wanted.statuses else wanted.silent_before))
    if wanted.updated_after is not None:
        found += [Run.updated_at > wanted.updated_after, heard_since(wanted.updated_after)]
    if wanted.decisions:
        found.append(is_one_of(wanted.decisions))
    return found


def _ranges(wanted: RunFilter) -> list[ColumnElement[bool]]:
    bounds = (
        (wanted.batch_min, Run.latest_global_batch.__ge__),
        (wanted.batch_max, Run.latest_global_batch.__le__),
        (wanted.noise_scale_min, Run.noise_scale_value.__ge__),
        (wanted.noise_scale_max, Run.noise_scale_value.__le__),
    )
    return [compare(bound) for bound, compare in bounds if bound is not None]


def _compared(one: Condition) -> ColumnElement[bool]:
    """Whether a field compares so; a run that does not say the field differs from every value."""
    match one.field:
        case "project":
            return Run.project_id.in_(select(Project.id).where(_said_so(one)))
        case "task":
            return Run.task_id.in_(select(Task.id).where(_said_so(one)))
        case _:
            return _said_so(one)


def _said_so(one: Condition) -> ColumnElement[bool]:
    said, number = _said(one.field)
    if one.by not in ("=", "!="):
        return number.op(one.by, is_comparison=True)(one.number)
    equal = said.is_(None) if one.value is None else said == one.value
    if one.number is not None:
        equal = or_(equal, number == one.number)
    return func.coalesce(equal, False) if one.by == "=" else not_(func.coalesce(equal, False))


def _said(field: str) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """What a run says of a field: as text, and as a number, null where it is none."""
    if field in NUMBERS:
        return cast(NUMBERS[field], Text), cast(NUMBERS[field], Numeric)
    if field in WORDS:
        word = cast(WORDS[field], Text)
        return word, case((word.op("~")(NUMBER), cast(word, Numeric)))
    value = Run.config[field.removeprefix(CONFIG)]
    is_number = or_(func.jsonb_typeof(value) == "number", value.astext.op("~")(NUMBER))
    return value.astext, case((is_number, cast(value.astext, Numeric)))
