"""Which runs a list is asked for, in which order: the query of GET /api/v1/runs and of its summary."""

import json
import re
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, get_args
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from noisescale_core.advice.parts.parts import DecisionWord
from noisescale_server.api.platform import cursor as cursors
from noisescale_server.api.platform.deps import UUIDS, Number, Text, check_range, read_ids, refuse_number
from noisescale_server.process.settings import Settings
from noisescale_server.services.platform.errors import refuse
from noisescale_server.services.runs import Patience, Status
from noisescale_server.storage.runs.filters import CONFIG, NUMBER, NUMBERS, WORDS, Comparison, Condition, RunFilter

MAX_CONDITIONS: Final = 16
CONDITION: Final = re.compile(
    r'(?P<field>"(?:[^"\\]|\\.)*"|[^<>=!"]+?)\s*(?P<by><=|>=|!=|=|<|>)\s*(?P<value>.+)', re.DOTALL
)
NOT_STORED: Final = re.compile("[\x00\ud800-\udfff]")
EXAMPLES: Final = "such as config.lr < 0.1, config.optimizer = adamw or task != digits"

SortName = Literal[
    "name",
    "-name",
    "created_at",
    "-created_at",
    "updated_at",
    "-updated_at",
    "last_step",
    "-last_step",
    "loss",
    "-loss",
    "noise_scale",
    "-noise_scale",
    "global_batch",
    "-global_batch",
    "example_efficiency",
    "-example_efficiency",
    "misfit",
    "-misfit",
    "saving",
    "-saving",
]


class WhichRuns(BaseModel):
    """Which runs."""

    model_config = ConfigDict(extra="forbid")

    project: Text | None = None
    task: Text | None = None
    status: Annotated[list[Literal[Status, "diverged"]], Field(max_length=6)] = []
    decision: Annotated[list[DecisionWord], Field(max_length=7, description="any of them")] = []
    tag: Annotated[list[Text], Field(max_length=32, description="runs that have all of them")] = []
    q: Annotated[Text | None, Field(description="part of the name, or the first six or more characters of the id")] = (
        None
    )
    without: Annotated[list[Text], Field(max_length=16, description="parts that the name has none of")] = []
    pattern: Annotated[Text | None, Field(description="a regular expression of Postgres that the name matches")] = None
    where: Annotated[
        list[Text],
        Field(max_length=MAX_CONDITIONS, description=f"a field, a comparison and a value, {EXAMPLES}; all of them"),
    ] = []
    trials: Annotated[
        Literal["show", "hide"], Field(description="hide: without what a sweep or a reproduction has trained")
    ] = "show"
    sweep: Annotated[UUID | None, Field(description="runs of this sweep")] = None
    archived: bool = False
    batch_min: Number | None = None
    batch_max: Number | None = None
    noise_scale_min: Number | None = None
    noise_scale_max: Number | None = None
    ids: Annotated[
        str | None, Field(max_length=10_000, description="UUIDs, separated by commas", json_schema_extra=UUIDS)
    ] = None
    updated_after: Annotated[
        AwareDatetime | None, BeforeValidator(refuse_number), Field(description="runs with data since then")
    ] = None


class RunQuery(WhichRuns):
    """Which runs, in which order, from where."""

    sort: SortName = "-updated_at"
    fold: Annotated[bool, Field(description="the trials of a sweep or a reproduction as one row, see folds")] = False
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    cursor: Annotated[str | None, Field(max_length=cursors.MAX_CURSOR_CHARACTERS)] = None


class SummaryQuery(WhichRuns):
    """Which runs, and what to group them by."""

    by: Annotated[
        Text, Field(description="project, task, optimizer, family, device, decision, status, or config. and a key")
    ]
    limit: Annotated[int, Field(ge=1, le=500)] = 100


def patience(settings: Settings) -> Patience:
    """How long a run may send nothing before it is called silent, then crashed."""
    return Patience(timedelta(seconds=settings.silent_after_seconds), timedelta(seconds=settings.crashed_after_seconds))


def run_filter(query: WhichRuns, now: datetime, settings: Settings) -> RunFilter:
    """The filter that the query asks for.

    Raises:
        InvalidInput: For a range the wrong way round, ids that are no UUIDs, or a condition that cannot be read.
    """
    check_range("batch_min", query.batch_min, "batch_max", query.batch_max)
    check_range("noise_scale_min", query.noise_scale_min, "noise_scale_max", query.noise_scale_max)
    wait = patience(settings)
    return RunFilter(
        silent_before=now - wait.silent_after,
        crashed_before=now - wait.crashed_after,
        project=query.project,
        task=query.task,
        statuses=query.status,
        tags=query.tag,
        text=query.q,
        without=query.without,
        pattern=query.pattern,
        conditions=[condition(text, at) for at, text in enumerate(query.where)],
        without_trials=query.trials == "hide",
        sweep=query.sweep,
        archived=query.archived,
        batch_min=query.batch_min,
        batch_max=query.batch_max,
        noise_scale_min=query.noise_scale_min,
        noise_scale_max=query.noise_scale_max,
        updated_after=query.updated_after,
        decisions=query.decision,
        ids=None if query.ids is None else read_ids(query.ids),
    )


def condition(text: str, at: int) -> Condition:
    """What one word of `where` says.

    A field or a value in double quotes is text as JSON writes it; null stands for runs that do not say the field.

    Raises:
        InvalidInput: Where it is no condition, of a field that is not known, or compares words by size.
    """
    name = f"where[{at}]"
    found = CONDITION.fullmatch(text.strip())
    if found is None:
        raise refuse(
            name, f"must be a field, a comparison ({', '.join(get_args(Comparison))}) and a value, {EXAMPLES}", text
        )
    field, by, value = _word(found["field"], name), found["by"], found["value"]
    is_key = field.startswith(CONFIG) and field != CONFIG
    if not is_key and field not in (*WORDS, *NUMBERS):
        known = ", ".join((*WORDS, *NUMBERS))
        raise refuse(name, f"has the unknown field {field[:60]!r}: use one of {known}, or config. and a key", text)
    if value == "null" and by in ("=", "!="):
        return Condition(field, by, None)  # type: ignore[arg-type]  # one of the pattern's
    is_number = re.fullmatch(NUMBER, value) is not None
    if not is_number and (by not in ("=", "!=") or field in NUMBERS):
        raise refuse(
            name, f"compares {field[:60]!r} with {value[:60]!r}: give a number, or compare a text by = or !=", text
        )
    return Condition(field, by, _word(value, name), Decimal(value) if is_number else None)  # type: ignore[arg-type]  # likewise


def _word(text: str, name: str) -> str:
    if not text.startswith('"'):
        return text.strip()
    try:
        word: Any = json.loads(text)
    except ValueError as error:
        raise refuse(name, "has a quote that does not end: close it, or leave both out", text) from error
    if NOT_STORED.search(str(word)) is not None:
        raise refuse(name, "holds a character that no database keeps: leave it out", text)
    return str(word)
