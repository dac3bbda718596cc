"""The records of wire format v1 (`docs/wire.md`) and the JSON batch that carries them.

Written here and in the server on its own: clients in the field are older than the server, `tests/contract/` holds the
two together.
"""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

PROTO = 1


class Measurement(NamedTuple):
    """One row: the updates since the previous one. Columns, units and nulls as in `docs/wire.md`.

    A tuple, as the one record that every step makes: a frozen dataclass of as many fields costs the training 2 µs.
    """

    step: int
    num_updates: int
    wall_time: float
    examples: int | None
    micro_batch_size: float | None
    num_micro_batches: int
    global_batch: float | None
    sum_trace_cov: float | None
    sum_grad_sq_norm: float | None
    sum_trace_cov_sq: float | None
    sum_grad_sq_norm_sq: float | None
    sum_trace_cov_grad_sq_norm: float | None
    sum_loss: float | None
    num_loss: int
    lr: float | None
    flags: int
    num_path_updates: int = 0
    sum_update_sq_norm: float | None = None
    update_sq_norm_variance: float | None = None
    path_sq_distance: float | None = None
    path_start: int | None = None
    momentum: float | None = None
    num_promised_updates: int = 0
    sum_promised_fall: float | None = None
    promised_fall_variance: float | None = None


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """The same sums per layer since the stream's last group record; columns of equal length."""

    step: int
    wall_time: float
    names: Sequence[str]
    num_updates: Sequence[int]
    sum_trace_cov: Sequence[float]
    sum_grad_sq_norm: Sequence[float]
    sum_trace_cov_sq: Sequence[float]
    sum_grad_sq_norm_sq: Sequence[float]
    sum_trace_cov_grad_sq_norm: Sequence[float]


@dataclass(frozen=True, slots=True)
class MetricRecord:
    """One `log_metrics` call; a value that is not finite is None."""

    step: int
    wall_time: float
    values: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What is trained, and how this stream measures it; the first record of a stream.

    A later one of the same stream says anew how it measures; its kind stays.
    """

    run: Mapping[str, object]
    stream: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class FinishRecord:
    """The last record of a stream: "finished" or "failed"."""

    status: str
    wall_time: float


Record = Measurement | GroupRecord | MetricRecord | RunRecord | FinishRecord


@dataclass(frozen=True, slots=True)
class LostRange:
    """Records `first` to `last` will never come, and why."""

    first: int
    last: int
    reason: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one stream for one POST; every number from `first_seq` to `last_seq` is in records or in lost."""

    run_id: str
    first_seq: int
    last_seq: int
    crc32: int
    sent_at: str
    records: Sequence[tuple[int, Record]]
    lost: Sequence[LostRange]


MEASUREMENT_COLUMNS = Measurement._fields

PATH_COLUMNS = tuple(Measurement._field_defaults)[:6]
"""Of which most rows say nothing: a batch without any leaves them out."""

PROMISE_COLUMNS = tuple(Measurement._field_defaults)[6:]
"""The same of what updates promise, which is not known of every optimizer."""


def to_json(batch: Batch) -> bytes:
    """The body of `POST /api/v1/streams/{stream_id}/batches`; a float that is not finite becomes null."""
    body: dict[str, Any] = {
        "proto": PROTO,
        "run_id": batch.run_id,
        "first_seq": batch.first_seq,
        "last_seq": batch.last_seq,
        "crc32": batch.crc32,
        "sent_at": batch.sent_at,
    }
    measurements: list[tuple[int, Measurement]] = []
    metrics: list[tuple[int, MetricRecord]] = []
    for seq, record in batch.records:
        match record:
            case Measurement():
                measurements.append((seq, record))
            case MetricRecord():
                metrics.append((seq, record))
            case GroupRecord():
                body.setdefault("groups", []).append(_group_json(seq, record))
            case RunRecord():
                body["run"] = {"seq": seq, "run": record.run, "stream": record.stream}
            case FinishRecord():
                body["finish"] = {"seq": seq, "status": record.status, "wall_time": record.wall_time}
    if measurements:
        body["measurements"] = _measurement_columns(measurements)
    if metrics:
        body["metrics"] = _metric_columns(metrics)
    if batch.lost:
        body["lost"] = [{"from": lost.first, "to": lost.last, "reason": lost.reason} for lost in batch.lost]
    return json.dumps(body, allow_nan=False, separators=(",", ":")).encode()


def _measurement_columns(rows: Sequence[tuple[int, Measurement]]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {"seq": [seq for seq, _ in rows]}
    left_out: set[str] = set()
    if not any(row.num_path_updates for _, row in rows):
        left_out.update(PATH_COLUMNS)
    if not any(row.num_promised_updates for _, row in rows):
        left_out.update(PROMISE_COLUMNS)
    for name in MEASUREMENT_COLUMNS:
        if name not in left_out:
            columns[name] = [_finite(getattr(row, name)) for _, row in rows]
    return columns


def _metric_columns(rows: Sequence[tuple[int, MetricRecord]]) -> dict[str, list[Any]]:
    flat = [
        (seq, row.step, row.wall_time, name, _finite(value)) for seq, row in rows for name, value in row.values.items()
    ]
    names = ("seq", "step", "wall_time", "name", "value")
    return {name: list(column) for name, column in zip(names, zip(*flat, strict=True), strict=True)}


def _group_json(seq: int, record: GroupRecord) -> dict[str, Any]:
    row = dataclasses.asdict(record)
    columns = {name: [_finite(x) for x in value] if isinstance(value, list) else value for name, value in row.items()}
    return {"seq": seq, **columns}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
