import math
import struct
import time
import zlib

import pytest

from noisescale.transport.spool import frames
from noisescale.transport.spool.frames import decode, encode, seq_of
from noisescale.transport.wire import FinishRecord, GroupRecord, Measurement, MetricRecord, RunRecord

FULL = Measurement(7, 50, 1.79e9, 12_800, 32.0, 8, 256.0, 1.5, -0.25, 2.5, 0.5, -0.125, 3.5, 50, 0.1, 16)
EMPTY = Measurement(0, 1, 1.79e9, None, None, 0, None, None, None, None, None, None, None, 0, None, 63)

RECORDS = [
    FULL,
    EMPTY,
    FULL._replace(examples=0),
    GroupRecord(3, 1.0, ["blocks.0", "ü"], [2, 3], [1.0, 2.0], [0.1, -0.2], [1.0, 4.0], [0.01, 0.04], [0.1, -0.4]),
    MetricRecord(4, 2.0, {"eval_loss": 0.5, "accuracy": None}),
    RunRecord({"project": "demo", "config": {"hidden": [1, "ü"]}}, {"kind": "simple", "optimizer": None}),
    FinishRecord("failed", 3.0),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_survives_its_frame(record):
    frame = encode(2**40, record)

    assert decode(frame) == (2**40, record)
    assert seq_of(frame) == 2**40


@pytest.mark.parametrize("position", [0, 4, 5, 10, 16, 24, 30, -1])
def test_a_flipped_bit_is_noticed(position):
    damaged = bytearray(encode(1, FULL))
    damaged[position] ^= 4

    with pytest.raises(ValueError, match="frame"):
        decode(bytes(damaged))


def test_a_frame_of_another_version_is_refused_however_right_its_checksum():
    frame, size = bytearray(encode(1, FULL)), frames._HEADER.size
    frame[len(frames.MAGIC)] = frames.VERSION + 1
    checksum = zlib.crc32(frame[frames.HEADER_BYTES :], zlib.crc32(frame[:size]))
    frame[size : frames.HEADER_BYTES] = frames._CRC.pack(checksum)

    with pytest.raises(ValueError, match=f"not a frame of version {frames.VERSION}"):
        decode(bytes(frame))


def test_a_frame_cut_short_is_noticed():
    with pytest.raises(ValueError, match="damaged"):
        decode(encode(1, FULL)[:-3])


def test_encoding_a_row_is_quick():
    """A cliff guard, ten times the usual 3 to 5 µs."""
    start = time.perf_counter()

    for seq in range(2000):
        encode(seq, FULL)

    assert (time.perf_counter() - start) / 2000 < 50e-6


def test_a_nan_that_slipped_through_becomes_null():
    row = Measurement(0, 1, 0.0, None, None, 0, None, *[math.nan] * 5, None, 0, None, 0)

    assert decode(encode(1, row))[1].sum_trace_cov is None


@pytest.mark.parametrize("row", [FULL, EMPTY, FULL._replace(num_path_updates=2, sum_update_sq_norm=1.5, path_start=3)])
def test_the_frame_of_a_row_is_built_as_that_of_any_record(row):
    """Its header is packed beforehand: byte by byte it is what the format says."""
    frame = encode(2**40 + 3, row)

    payload = frame[24:]
    header = struct.pack("<4sBBHIQ", b"\xf5\xb1MS", 1, 1, 0, len(payload), 2**40 + 3)
    assert frame == header + struct.pack("<I", zlib.crc32(header + payload)) + payload
    assert decode(frame) == (2**40 + 3, row)
