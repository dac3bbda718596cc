"""What a batch changes in the rows of its stream and its run, in one statement.

The run's row repeats what its newest measurements say, so that lists and sorting need no measurements.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators.uncertainty import NoiseScaleEstimate
from noisescale_server.storage.platform.driver import fetch
from noisescale_server.storage.runs.runs import MOVED_ON
from noisescale_server.storage.runs.streams import SIMPLE, Kind


@dataclass(frozen=True, slots=True)
class Advance:
    """What one batch changes in the stream's row: the cursor, and counts to add to the ledger."""

    next_seq: int
    first_seq: int
    crc32: int
    num_stored: int
    num_lost: int
    num_rejected: int
    num_measurements: int
    num_estimates: int
    first_step: int | None
    last_step: int | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class LatestWindow:
    """What the last 5 % of a run's steps say.

    Attributes:
        noise_scale: The estimate over them.
        flags: All bits that their rows carry.
        has_signal: The run up to there has shown a gradient.
        step: The last step that is in the estimate; None where none is.
    """

    noise_scale: NoiseScaleEstimate
    flags: int
    has_signal: bool
    step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNews:
    """Columns of `run` by name; what is None stays as it is.

    Attributes:
        newest_started_at: When the stream that brings them started.
        is_resumed: A stream newer than all others begins: what an older one said about finishing is over.
        first_step: Of this stream; the run's is the smallest of all.
        notes: None where the stream did not say how it measures; then `measure_every` and `num_ranks` stay too.
        has_finite_loss: A row has a finite loss: what was known of `loss_broken_since` is over.
        loss_broken_since: The first step since then without one.
        has_finite_gradients: Likewise of the gradients.
        gradients_broken_since: Likewise.
    """

    newest_started_at: datetime
    is_resumed: bool = False
    first_step: int | None = None
    finished_at: datetime | None = None
    finish_status: str | None = None
    measure_every: int | None = None
    num_ranks: int | None = None
    notes: Sequence[str] | None = None
    has_finite_loss: bool = False
    loss_broken_since: int | None = None
    has_finite_gradients: bool = False
    gradients_broken_since: int | None = None
    optimizer: str | None = None
    estimator: str | None = None
    loss_reduction: str | None = None
    latest_step: int | None = None
    latest_examples: int | None = None
    latest_loss: float | None = None
    latest_lr: float | None = None
    latest_global_batch: float | None = None
    latest_num_micro_batches: int | None = None
    latest_flags: int | None = None


LEAST_CHANGE_OF_MISFIT: Final = 0.02

_ADVANCE_FIELDS = tuple(field.name for field in fields(Advance))
_NEWS_FIELDS = tuple(field.name for field in fields(RunNews))
_FIRST_PLAIN_FIELD = _NEWS_FIELDS.index("optimizer")
_ESTIMATE_FIELDS = ("state", "value", "low", "high", "z", "reason", "updates_needed", "num_updates", "num_blocks")

_STREAM_TYPES = ("bigint",) * 10 + ("timestamptz",)
_NEWS_TYPES = (
    "timestamptz", "boolean", "bigint", "timestamptz", "text", "bigint", "bigint", "text[]",
    "boolean", "bigint", "boolean", "bigint", "text", "text", "text",
    "bigint", "bigint", "float8", "float8", "float8", "bigint", "bigint",
)  # fmt: skip
_WINDOW_FIELDS = (*_ESTIMATE_FIELDS, "flags", "step")
_WINDOW_TYPES = ("text", "float8", "float8", "float8", "float8", "text", *("bigint",) * 5)


def _placeholders(names: tuple[str, ...], types: tuple[str, ...], start: int) -> dict[str, str]:
    return {name: f"${start + i}::{kind}" for i, (name, kind) in enumerate(zip(names, types, strict=True))}


def _set_misfit(state: str, value: str, batch: str) -> str:
    """An index goes by it, so it stays as it is while nothing of note has changed."""
    found = f"CASE WHEN {state} = 'resolved' AND {value} > 0 AND {batch} > 0 THEN abs(ln({batch} / {value})) END"
    return f"misfit = CASE WHEN abs(misfit - {found}) < {LEAST_CHANGE_OF_MISFIT} THEN misfit ELSE {found} END"


_NUM_KEYS = 2
_STREAM = _placeholders(_ADVANCE_FIELDS, _STREAM_TYPES, _NUM_KEYS + 1)
_NEWS = _placeholders(_NEWS_FIELDS, _NEWS_TYPES, _NUM_KEYS + len(_STREAM) + 1)
_WINDOW = _placeholders(_WINDOW_FIELDS, _WINDOW_TYPES, _NUM_KEYS + len(_STREAM) + len(_NEWS) + 1)
_ADDED = ("num_stored", "num_lost", "num_rejected", "num_measurements", "num_estimates")


def _set_stream() -> str:
    added = ", ".join(f"{name} = {name} + {_STREAM[name]}" for name in _ADDED)
    return f"""
  next_seq = {_STREAM["next_seq"]}, last_first_seq = {_STREAM["first_seq"]}, last_crc = {_STREAM["crc32"]}, {added},
  first_step = least(first_step, {_STREAM["first_step"]}), last_step = greatest(last_step, {_STREAM["last_step"]}),
  finished_at = coalesce({_STREAM["finished_at"]}, finished_at), updated_at = statement_timestamp()"""


def _saw_data(first_step: str, is_stale: str | None = None, is_due: str | None = None) -> str:
    """What rows of any simple stream say; another one may have committed a smaller first step meanwhile.

    Args:
        first_step: Of the rows; null where a batch has none.
        is_stale: Whether the run's window lacks rows afterwards; without it, where the batch has some.
        is_due: Whether there is more to judge by afterwards; without it likewise.
    """
    return f"""
  updated_at = statement_timestamp(), {MOVED_ON}, first_step = least(first_step, {first_step}),
  window_is_stale = {is_stale or f"window_is_stale OR {first_step} IS NOT NULL"},
  decision_is_stale = {is_due or f"decision_is_stale OR {first_step} IS NOT NULL"},
  kinds = CASE WHEN {first_step} IS NULL OR '{SIMPLE}' = ANY (kinds) THEN kinds
    ELSE array_append(kinds, '{SIMPLE}') END"""


# once a look is complete, the batch is another one, or the run ends or goes on
_IS_DUE = f"""decision_is_stale
    OR ({_NEWS["first_step"]} IS NOT NULL AND coalesce({_NEWS["latest_step"]} >= decision_due_step, true))
    OR {_NEWS["finish_status"]} IS NOT NULL OR {_NEWS["is_resumed"]}
    OR coalesce({_NEWS["latest_global_batch"]} <> latest_global_batch, false)"""


def _set_run(is_stale: str | None = None) -> str:
    finished = ", ".join(
        f"{name} = coalesce({_NEWS[name]}, CASE WHEN {_NEWS['is_resumed']} THEN NULL ELSE {name} END)"
        for name in ("finished_at", "finish_status")
    )
    plain = ", ".join(f"{name} = coalesce({_NEWS[name]}, {name})" for name in _NEWS_FIELDS[_FIRST_PLAIN_FIELD:])
    told = ", ".join(
        f"{name} = CASE WHEN {_NEWS['notes']} IS NULL THEN {name} ELSE {_NEWS[name]} END"
        for name in ("measure_every", "num_ranks", "notes")
    )
    broken = ", ".join(
        f"{what}_broken_since = CASE WHEN {_NEWS['is_resumed']} OR {_NEWS[f'has_finite_{what}']}"
        f" THEN {_NEWS[f'{what}_broken_since']}"
        f" ELSE coalesce({what}_broken_since, {_NEWS[f'{what}_broken_since']}) END"
        for what in ("loss", "gradients")
    )
    return f"""{_saw_data(_NEWS["first_step"], is_stale, _IS_DUE)}, {finished}, {told}, {broken}, {plain},
  newest_stream_id = $2::uuid, newest_started_at = {_NEWS["newest_started_at"]}"""


def _set_window(window: dict[str, str], batch: str) -> str:
    value = window["value"]
    estimate = ", ".join(f"noise_scale_{name} = {window[name]}" for name in _WINDOW_FIELDS)
    return (
        f"{estimate}, example_efficiency = {value} / ({batch} + {value}), latest_refreshed_at = statement_timestamp(), "
        + _set_misfit(window["state"], value, batch)
    )


_ADVANCE = f"""
WITH moved AS (UPDATE stream SET {_set_stream()} WHERE run_id = $1::uuid AND id = $2::uuid)
UPDATE run SET"""  # noqa: S608 - column names of our own

# A newer stream may have committed since this one looked; a waiting UPDATE reads the run's row again.
_IF_STILL_NEWEST = f"""
WHERE id = $1::uuid AND (newest_stream_id IS NULL OR newest_stream_id = $2::uuid
  OR (newest_started_at, newest_stream_id) < ({_NEWS["newest_started_at"]}, $2::uuid))
RETURNING id"""

_NEW_BATCH = f"coalesce({_NEWS['latest_global_batch']}, latest_global_batch)"
_AS_IT_WAS = _set_misfit("noise_scale_state", "noise_scale_value", _NEW_BATCH)
_WITHOUT_WINDOW = f"{_ADVANCE} {_set_run()}, {_AS_IT_WAS} {_IF_STILL_NEWEST}"
_RUN_AS_READ = f"${_NUM_KEYS + len(_STREAM) + len(_NEWS) + len(_WINDOW) + 1}::timestamptz"
# Whoever wrote to the run since the window was read may have brought rows that are not in it.
_WITH_WINDOW = f"""{_ADVANCE} {_set_run(f"updated_at <> {_RUN_AS_READ}")}, {_set_window(_WINDOW, _NEW_BATCH)}
{_IF_STILL_NEWEST}"""
_WINDOW_ALONE = f"""
UPDATE run SET {_set_window(_placeholders(_WINDOW_FIELDS, _WINDOW_TYPES, 2), "latest_global_batch")},
  window_is_stale = false
WHERE id = $1::uuid"""  # noqa: S608
_STALE = """
SELECT id FROM run
WHERE window_is_stale AND first_step IS NOT NULL
  AND coalesce(latest_refreshed_at < clock_timestamp() - interval '1.5 seconds', true)
ORDER BY random()
LIMIT $1::bigint"""
_LOCK_STALE = "SELECT id FROM run WHERE id = $1::uuid AND window_is_stale FOR NO KEY UPDATE SKIP LOCKED"
_OF_OVERTAKEN = f"{_ADVANCE} {_saw_data(_STREAM['first_step'])} WHERE id = $1::uuid"
_RUN_OF_OVERTAKEN = f"UPDATE run SET {_saw_data('$2::bigint')} WHERE id = $1::uuid"  # noqa: S608
_ONE_MORE_KIND = """
UPDATE run SET kinds = array_append(kinds, $2::text) WHERE id = $1::uuid AND NOT $2::text = ANY (kinds)"""
_OF_OTHER_KIND = f"UPDATE stream SET {_set_stream()} WHERE run_id = $1::uuid AND id = $2::uuid"  # noqa: S608


async def store(
    session: AsyncSession,
    *,
    run_id: UUID,
    stream_id: UUID,
    advance: Advance,
    news: RunNews,
    window: LatestWindow | None,
    run_as_read: datetime,
) -> None:
    """Move cursor and ledger on; the run shows the news, and the latest window if one was read.

    If a newer stream has taken over meanwhile, the run keeps what that one said.

    Args:
        session: Where to write.
        run_id: The run.
        stream_id: Its newest simple stream, as far as known.
        advance: What the batch changes in the stream's row.
        news: What it changes in the run's.
        window: The latest window with this batch.
        run_as_read: When the run had last been written to before the window was read.
    """
    parameters = [*_advance(run_id, stream_id, advance), *(getattr(news, name) for name in _NEWS_FIELDS)]
    if window is None:
        updated = await fetch(session, _WITHOUT_WINDOW, *parameters)
    else:
        updated = await fetch(session, _WITH_WINDOW, *parameters, *columns_of(window).values(), run_as_read)
    if not updated:
        await fetch(session, _RUN_OF_OVERTAKEN, run_id, news.first_step)


async def stale_runs(session: AsyncSession, limit: int) -> list[UUID]:
    """Some of the runs whose window lacks rows and that no batch has refreshed for a second and a half.

    At random: whichever comes first by a rule, some run behind it would never come where more wait than there is time
    for, or one that cannot be computed would stand before all others.
    """
    return [row[0] for row in await fetch(session, _STALE, limit)]


async def lock_stale(session: AsyncSession, run_id: UUID) -> bool:
    """True if the run's window lacks rows; nobody else writes to the run until the transaction ends.

    False also while somebody else does.
    """
    return bool(await fetch(session, _LOCK_STALE, run_id))


async def store_window(session: AsyncSession, run_id: UUID, window: LatestWindow) -> None:
    """Show the window, which holds all rows of the locked run, as its latest one."""
    await fetch(session, _WINDOW_ALONE, run_id, *columns_of(window).values())


def columns_of(window: LatestWindow) -> dict[str, Any]:
    """What columns of `run` say of a window, in the order of `_WINDOW_FIELDS`."""
    estimate = {f"noise_scale_{name}": getattr(window.noise_scale, name) for name in _ESTIMATE_FIELDS}
    return estimate | {"noise_scale_flags": window.flags, "noise_scale_step": window.step}


async def store_of_overtaken(session: AsyncSession, *, run_id: UUID, stream_id: UUID, advance: Advance) -> None:
    """Move cursor and ledger on; the run says that data came and where its steps begin."""
    await fetch(session, _OF_OVERTAKEN, *_advance(run_id, stream_id, advance))


async def store_of_other_kind(
    session: AsyncSession, *, run_id: UUID, stream_id: UUID, advance: Advance, new_kind: Kind | None
) -> None:
    """Move cursor and ledger on; of the run's row at most the list of kinds changes.

    Args:
        session: Where to write.
        run_id: The run.
        stream_id: The stream.
        advance: What its batch changes.
        new_kind: The kind, with the stream's first rows.
    """
    await fetch(session, _OF_OTHER_KIND, *_advance(run_id, stream_id, advance))
    if new_kind is not None:
        await fetch(session, _ONE_MORE_KIND, run_id, new_kind)


def _advance(run_id: UUID, stream_id: UUID, advance: Advance) -> list[Any]:
    return [run_id, stream_id, *(getattr(advance, name) for name in _ADVANCE_FIELDS)]
