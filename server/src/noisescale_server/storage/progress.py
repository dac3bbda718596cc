"""What a batch changes in the rows of its stream and its run, in one statement.

The run's row repeats what its newest measurements say, so that lists and sorting need no measurements.
"""

from dataclasses import dataclass, fields
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale.estimators.uncertainty import NoiseScaleEstimate
from noisescale_server.storage.driver import fetch


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNews:
    """Columns of `run` by name; what is None stays as it is.

    Attributes:
        is_resumed: A stream newer than all others begins: what an older one said about finishing is over.
        first_step: Of this stream; the run's is the smallest of all.
    """

    is_resumed: bool = False
    first_step: int | None = None
    finished_at: datetime | None = None
    finish_status: str | None = None
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


_ADVANCE_FIELDS = tuple(field.name for field in fields(Advance))
_NEWS_FIELDS = tuple(field.name for field in fields(RunNews))
_ESTIMATE_FIELDS = ("state", "value", "low", "high", "z", "reason", "updates_needed", "num_updates", "num_blocks")

_STREAM_TYPES = ("bigint",) * 10 + ("timestamptz",)
_NEWS_TYPES = (
    "boolean", "bigint", "timestamptz", "text", "text", "text", "text",
    "bigint", "bigint", "float8", "float8", "float8", "bigint", "bigint",
)  # fmt: skip
_ESTIMATE_TYPES = ("text", "float8", "float8", "float8", "float8", "text", "bigint", "bigint", "bigint")


def _placeholders(names: tuple[str, ...], types: tuple[str, ...], start: int) -> dict[str, str]:
    return {name: f"${start + i}::{kind}" for i, (name, kind) in enumerate(zip(names, types, strict=True))}


_NUM_KEYS = 2
_STREAM = _placeholders(_ADVANCE_FIELDS, _STREAM_TYPES, _NUM_KEYS + 1)
_NEWS = _placeholders(_NEWS_FIELDS, _NEWS_TYPES, _NUM_KEYS + len(_STREAM) + 1)
_ESTIMATE = _placeholders(_ESTIMATE_FIELDS, _ESTIMATE_TYPES, _NUM_KEYS + len(_STREAM) + len(_NEWS) + 1)
_ADDED = ("num_stored", "num_lost", "num_rejected", "num_measurements", "num_estimates")


def _set_stream() -> str:
    added = ", ".join(f"{name} = {name} + {_STREAM[name]}" for name in _ADDED)
    return f"""
  next_seq = {_STREAM["next_seq"]}, last_first_seq = {_STREAM["first_seq"]}, last_crc = {_STREAM["crc32"]}, {added},
  first_step = least(first_step, {_STREAM["first_step"]}), last_step = greatest(last_step, {_STREAM["last_step"]}),
  finished_at = coalesce({_STREAM["finished_at"]}, finished_at), updated_at = clock_timestamp()"""


def _set_run() -> str:
    finished = ", ".join(
        f"{name} = coalesce({_NEWS[name]}, CASE WHEN {_NEWS['is_resumed']} THEN NULL ELSE {name} END)"
        for name in ("finished_at", "finish_status")
    )
    plain = ", ".join(f"{name} = coalesce({_NEWS[name]}, {name})" for name in _NEWS_FIELDS[4:])
    # another stream of the run may have committed a smaller first step meanwhile
    return f"""
  updated_at = clock_timestamp(), first_step = least(first_step, {_NEWS["first_step"]}), {finished}, {plain}"""


def _set_estimate() -> str:
    value = _ESTIMATE["value"]
    estimate = ", ".join(f"noise_scale_{name} = {_ESTIMATE[name]}" for name in _ESTIMATE_FIELDS)
    return f"""
  latest_refreshed_at = clock_timestamp(), {estimate},
  example_efficiency = {value} / (coalesce({_NEWS["latest_global_batch"]}, latest_global_batch) + {value})"""


_ADVANCE = f"""
WITH moved AS (UPDATE stream SET {_set_stream()} WHERE run_id = $1::uuid AND id = $2::uuid)
UPDATE run SET {_set_run()}"""  # noqa: S608 - column names of our own

_WITHOUT_ESTIMATE = f"{_ADVANCE} WHERE id = $1::uuid"
_WITH_ESTIMATE = f"{_ADVANCE}, {_set_estimate()} WHERE id = $1::uuid"


async def store(
    session: AsyncSession,
    *,
    run_id: UUID,
    stream_id: UUID,
    advance: Advance,
    news: RunNews,
    noise_scale: NoiseScaleEstimate | None,
) -> None:
    """Nothing; cursor and ledger are moved on, and the run shows the news and the estimate if one was made."""
    parameters = [
        run_id,
        stream_id,
        *(getattr(advance, name) for name in _ADVANCE_FIELDS),
        *(getattr(news, name) for name in _NEWS_FIELDS),
    ]
    if noise_scale is None:
        await fetch(session, _WITHOUT_ESTIMATE, *parameters)
    else:
        estimate = (getattr(noise_scale, name) for name in _ESTIMATE_FIELDS)
        await fetch(session, _WITH_ESTIMATE, *parameters, *estimate)
