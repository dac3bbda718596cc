"""Records as binary frames, the form in which they wait for delivery.

Frame: magic, version, kind, flags, length, seq, CRC-32 of header and payload, payload. Numbers are little-endian
columns, because JSON would cost the training thread five times as long; rare records are UTF-8 JSON. In a column NaN
stands for null, and -1 for an unknown number of examples.
"""

import json
import math
import struct
import zlib
from typing import Any

from noisescale.transport.wire import (
    MEASUREMENT_COLUMNS,
    FinishRecord,
    GroupRecord,
    Measurement,
    MetricRecord,
    Record,
    RunRecord,
)

MAGIC = b"\xf5\xb1MS"  # F5 never occurs in UTF-8
VERSION = 1

_HEADER = struct.Struct("<4sBBHIQ")
_CRC = struct.Struct("<I")
HEADER_BYTES = _HEADER.size + _CRC.size

_MEASUREMENT = struct.Struct("<qqdqdq7dqdq")  # in the order of the columns
_EXAMPLES = MEASUREMENT_COLUMNS.index("examples")
_GROUP_HEAD = struct.Struct("<qdII")

_KINDS: dict[type, int] = {Measurement: 1, GroupRecord: 2, MetricRecord: 3, RunRecord: 4, FinishRecord: 5}


def encode(seq: int, record: Record) -> bytes:
    """One frame.

    Raises:
        ValueError, TypeError, struct.error, OverflowError: For a record that no frame can hold.
    """
    payload = _payload(record)
    header = _HEADER.pack(MAGIC, VERSION, _KINDS[type(record)], 0, len(payload), seq)
    return header + _CRC.pack(zlib.crc32(payload, zlib.crc32(header))) + payload


def seq_of(frame: bytes) -> int:
    """The record number of a frame."""
    seq: int = _HEADER.unpack_from(frame)[5]
    return seq


def decode(frame: bytes) -> tuple[int, Record]:
    """The record of a frame and its number.

    Raises:
        ValueError: For a frame that is damaged or of another version.
    """
    magic, version, kind, _, length, seq = _HEADER.unpack_from(frame)
    payload = frame[HEADER_BYTES : HEADER_BYTES + length]
    if magic != MAGIC or version != VERSION:
        raise ValueError(f"not a frame of version {VERSION}: begins with {frame[:5]!r}")
    if _CRC.unpack_from(frame, _HEADER.size)[0] != zlib.crc32(payload, zlib.crc32(frame[: _HEADER.size])):
        raise ValueError(f"frame of record {seq} is damaged: its checksum does not match")
    return seq, _record(kind, payload)


def is_run(frame: bytes) -> bool:
    """Whether a frame holds a `run` record, of which a batch takes one at most."""
    return bool(_HEADER.unpack_from(frame)[2] == _KINDS[RunRecord])


def _payload(record: Record) -> bytes:
    match record:
        case Measurement():
            return _measurement_payload(record)
        case GroupRecord():
            return _group_payload(record)
        case MetricRecord():
            return _json({"step": record.step, "wall_time": record.wall_time, "values": dict(record.values)})
        case RunRecord():
            return _json({"run": dict(record.run), "stream": dict(record.stream)})
        case FinishRecord():
            return _json({"status": record.status, "wall_time": record.wall_time})


def _record(kind: int, payload: bytes) -> Record:
    if kind == _KINDS[Measurement]:
        return _measurement(payload)
    if kind == _KINDS[GroupRecord]:
        return _group_record(payload)
    fields: dict[str, Any] = json.loads(payload)
    for record_type in (MetricRecord, RunRecord, FinishRecord):
        if kind == _KINDS[record_type]:
            return record_type(**fields)
    raise ValueError(f"unknown kind of record {kind}: written by a newer version")


def _json(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, allow_nan=False, separators=(",", ":")).encode()


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _measurement_payload(row: Measurement) -> bytes:
    values = [getattr(row, name) for name in MEASUREMENT_COLUMNS]
    values[_EXAMPLES] = -1 if row.examples is None else row.examples
    return _MEASUREMENT.pack(*(math.nan if value is None else value for value in values))


def _measurement(payload: bytes) -> Measurement:
    values: list[Any] = [_or_none(value) for value in _MEASUREMENT.unpack(payload)]
    fields = dict(zip(MEASUREMENT_COLUMNS, values, strict=True))
    return Measurement(**fields | {"examples": None if fields["examples"] < 0 else fields["examples"]})


def _group_payload(record: GroupRecord) -> bytes:
    names = _json({"names": list(record.names)})
    n = len(record.names)
    sums = (
        *record.sum_trace_cov,
        *record.sum_grad_sq_norm,
        *record.sum_trace_cov_sq,
        *record.sum_grad_sq_norm_sq,
        *record.sum_trace_cov_grad_sq_norm,
    )
    head = _GROUP_HEAD.pack(record.step, record.wall_time, n, len(names))
    return head + names + struct.pack(f"<{n}q{5 * n}d", *record.num_updates, *sums)


def _group_record(payload: bytes) -> GroupRecord:
    step, wall_time, n, names_bytes = _GROUP_HEAD.unpack_from(payload)
    columns_at = _GROUP_HEAD.size + names_bytes
    names: list[str] = json.loads(payload[_GROUP_HEAD.size : columns_at])["names"]
    numbers = struct.unpack_from(f"<{n}q{5 * n}d", payload, columns_at)
    columns = [list(numbers[start : start + n]) for start in range(0, 6 * n, n)]
    return GroupRecord(step, wall_time, names, *columns)
