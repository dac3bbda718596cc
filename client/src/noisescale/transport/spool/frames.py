"""Records as binary frames, the form in which they wait for delivery.

Frame: magic, version, kind, flags, length, seq, CRC-32 of header and payload, payload. Numbers are little-endian
columns, because JSON would cost the training thread five times as long; rare records are UTF-8 JSON. In a column NaN
stands for null, and -1 for an unknown number of examples; a row without news of the path ends before its columns. Two
further kinds live on disk only: a loss says which records will never come, a seal ends a file.
"""

import json
import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from noisescale.transport.wire import (
    MEASUREMENT_COLUMNS,
    PATH_COLUMNS,
    PROMISE_COLUMNS,
    FinishRecord,
    GroupRecord,
    LostRange,
    Measurement,
    MetricRecord,
    Record,
    RunRecord,
)

MAGIC = b"\xf5\xb1MS"  # F5 never occurs in UTF-8
VERSION = 1

_HEADER = struct.Struct("<4sBBHIQ")
_KNOWN_BUT_SEQ = struct.Struct("<12sQ")
_SEQ = struct.Struct("<Q")  # the header's last field
_CRC = struct.Struct("<I")
_pack_header, _crc32 = _KNOWN_BUT_SEQ.pack, zlib.crc32
HEADER_BYTES = _HEADER.size + _CRC.size

_MEASUREMENT = struct.Struct("<qqdqdq7dqdq")  # in the order of the columns
_WITH_PATH = struct.Struct("<qqdqdq7dqdqqddddd")
_WITH_PROMISE = struct.Struct("<qqdqdq7dqdqqdddddqdd")
_NUM_WITH_PATH = len(MEASUREMENT_COLUMNS) - len(PROMISE_COLUMNS)
_NUM_WITHOUT_PATH = _NUM_WITH_PATH - len(PATH_COLUMNS)
_GROUP_HEAD = struct.Struct("<qdII")

_KINDS: dict[type, int] = {Measurement: 1, GroupRecord: 2, MetricRecord: 3, RunRecord: 4, FinishRecord: 5}
_ROW, _ROW_WITH_PATH, _ROW_WITH_PROMISE = (
    (
        _HEADER.pack(MAGIC, VERSION, _KINDS[Measurement], 0, form.size, 0)[: -_SEQ.size],
        form.pack,
        struct.Struct(f"<{_HEADER.size}sI{form.size}s").pack,
    )
    for form in (_MEASUREMENT, _WITH_PATH, _WITH_PROMISE)
)
"""Of the one record that every step makes: its header up to the number, and what packs its numbers and the frame."""

LOSS = 64
SEAL = 65
_OF_A_SEAL = b"{}"
SEAL_BYTES = HEADER_BYTES + len(_OF_A_SEAL)


@dataclass(frozen=True, slots=True)
class Found:
    """A frame in a file's bytes whose checksum holds.

    Attributes:
        kind: What the header says.
        seq: Record number; of a loss the first lost one, of a seal the last one of the file.
        frame: Its bytes, header included.
        end: Where it ends, counted from the beginning of the bytes.
    """

    kind: int
    seq: int
    frame: bytes
    end: int

    @property
    def is_record(self) -> bool:
        """Neither a loss nor a seal."""
        return self.kind not in (LOSS, SEAL)


def encode(seq: int, record: Record) -> bytes:
    """One frame.

    Raises:
        ValueError, TypeError, struct.error, OverflowError: For a record that no frame can hold.
    """
    if not isinstance(record, Measurement):
        return _frame(_KINDS[type(record)], seq, _payload(record))
    # as `_frame` gives it; with a header that is known but for its number it takes less time
    start, pack, join = _ROW
    values: tuple[Any, ...] = record[:_NUM_WITHOUT_PATH]
    if record.num_promised_updates:
        start, pack, join = _ROW_WITH_PROMISE
        values = record
    elif record.num_path_updates:
        start, pack, join = _ROW_WITH_PATH
        values = record[:_NUM_WITH_PATH]
    try:
        payload = pack(*values)
    except struct.error:  # most rows hold numbers only, and are not searched for others
        known = record if record.examples is not None else record._replace(examples=-1)
        payload = pack(*(math.nan if value is None else value for value in known[: len(values)]))
    header = _pack_header(start, seq)
    return join(header, _crc32(header + payload), payload)


def encode_loss(lost: LostRange) -> bytes:
    """A frame that says which records will never come."""
    return _frame(LOSS, lost.first, _json({"from": lost.first, "to": lost.last, "reason": lost.reason}))


def encode_seal(last_seq: int) -> bytes:
    """A frame that ends a file."""
    return _frame(SEAL, last_seq, _OF_A_SEAL)


def decode_loss(frame: bytes) -> LostRange:
    """The range of a loss whose checksum holds."""
    fields = json.loads(frame[HEADER_BYTES:])
    return LostRange(fields["from"], fields["to"], fields["reason"])


def _frame(kind: int, seq: int, payload: bytes) -> bytes:
    header = _HEADER.pack(MAGIC, VERSION, kind, 0, len(payload), seq)
    return header + _CRC.pack(zlib.crc32(header + payload)) + payload


def frames_in(data: bytes) -> Iterator[Found]:
    """The undamaged frames of a file's bytes, in order; what lies between them is passed over.

    After a frame that does not hold, the search goes on at the next magic: one damaged frame costs one record.
    """
    at = data.find(MAGIC)
    while at >= 0 and len(data) - at >= HEADER_BYTES:
        _, version, kind, _, length, seq = _HEADER.unpack_from(data, at)
        end = at + HEADER_BYTES + length
        if version == VERSION and end <= len(data):
            crc = zlib.crc32(data[at + HEADER_BYTES : end], zlib.crc32(data[at : at + _HEADER.size]))
            if crc == _CRC.unpack_from(data, at + _HEADER.size)[0]:
                yield Found(kind, seq, data[at:end], end)
                at = data.find(MAGIC, end)
                continue
        at = data.find(MAGIC, at + 1)


def is_cut_short(data: bytes) -> bool:
    """Whether these bytes are the beginning of a frame, as a write that was cut off leaves it."""
    if len(data) < HEADER_BYTES:
        return MAGIC.startswith(data[: len(MAGIC)])
    magic, version, _, _, length, _ = _HEADER.unpack_from(data)
    return bool(magic == MAGIC and version == VERSION and len(data) < HEADER_BYTES + length)


def seq_of(frame: bytes) -> int:
    """The record number of a frame."""
    seq: int = _SEQ.unpack_from(frame, _HEADER.size - _SEQ.size)[0]
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
    (checksum,) = _CRC.unpack_from(frame, _HEADER.size)
    if checksum != zlib.crc32(payload, zlib.crc32(frame[: _HEADER.size])):
        raise ValueError(f"frame of record {seq} is damaged: its checksum does not match")
    return seq, _record(kind, payload)


def is_run(frame: bytes) -> bool:
    """Whether a frame holds a `run` record, of which a batch takes one at most."""
    return bool(_HEADER.unpack_from(frame)[2] == _KINDS[RunRecord])


def _payload(record: GroupRecord | MetricRecord | RunRecord | FinishRecord) -> bytes:
    match record:
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


def _measurement(payload: bytes) -> Measurement:
    form = next((form for form in (_WITH_PATH, _WITH_PROMISE) if form.size == len(payload)), _MEASUREMENT)
    values: list[Any] = [_or_none(value) for value in form.unpack(payload)]
    fields = dict(zip(MEASUREMENT_COLUMNS, values, strict=False))
    start = fields.get("path_start")
    return Measurement(
        **fields
        | {"examples": None if fields["examples"] < 0 else fields["examples"]}
        | {"path_start": None if start is None else int(start)}
    )


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
