"""The bytes of a frame as they lie on disks since the first release, for the releases before and after this one."""

import math
import struct
import zlib

import pytest

from noisescale.transport.spool.frames import decode_loss, encode, encode_loss, encode_seal, frames_in, is_cut_short
from noisescale.transport.wire import FinishRecord, GroupRecord, LostRange, Measurement, MetricRecord, RunRecord

ROW = Measurement(7, 50, 1.79e9, 12_800, 32.0, 8, 256.0, 1.5, -0.25, 2.5, 0.5, -0.125, 3.5, 50, 0.1, 16)
UNKNOWN = Measurement(0, 1, 5.0, None, None, 0, None, *[None] * 5, None, 0, None, 0)
NAN = math.nan
LAYERS = GroupRecord(3, 1.0, ["a"], [2], [1.0], [0.5], [2.0], [0.25], [0.125])

FRAMES = [
    (encode(9, ROW), 1, struct.pack("<qqdqdqdddddddqdq", *ROW[:16])),
    (
        encode(9, ROW._replace(num_path_updates=16, sum_update_sq_norm=0.25, path_start=3)),
        1,
        struct.pack("<qqdqdqdddddddqdqqddddd", *ROW[:16], 16, 0.25, NAN, NAN, 3.0, NAN),
    ),
    (
        encode(9, UNKNOWN),
        1,
        struct.pack("<qqdqdqdddddddqdq", 0, 1, 5.0, -1, NAN, 0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, 0, NAN, 0),
    ),
    (
        encode(9, LAYERS),
        2,
        struct.pack("<qdII", 3, 1.0, 1, 15) + b'{"names":["a"]}' + struct.pack("<q5d", 2, 1, 0.5, 2, 0.25, 0.125),
    ),
    (encode(9, MetricRecord(4, 2.0, {"a": None})), 3, b'{"step":4,"wall_time":2.0,"values":{"a":null}}'),
    (encode(9, RunRecord({"project": "p"}, {})), 4, b'{"run":{"project":"p"},"stream":{}}'),
    (encode(9, FinishRecord("failed", 3.0)), 5, b'{"status":"failed","wall_time":3.0}'),
    (encode_loss(LostRange(9, 12, "x")), 64, b'{"from":9,"to":12,"reason":"x"}'),
    (encode_seal(9), 65, b"{}"),
]


@pytest.mark.parametrize(
    ("frame", "kind", "payload"), FRAMES, ids=lambda value: value if isinstance(value, int) else ""
)
def test_a_frame_is_its_header_its_checksum_and_its_payload(frame, kind, payload):
    header = struct.pack("<4sBBHIQ", b"\xf5\xb1MS", 1, kind, 0, len(payload), 9)

    assert frame == header + struct.pack("<I", zlib.crc32(header + payload)) + payload
    [found] = frames_in(frame)
    assert (found.kind, found.seq, found.end, found.is_record) == (kind, 9, len(frame), kind < 64)


def test_a_loss_is_read_back():
    assert decode_loss(encode_loss(LostRange(9, 12, "x"))) == LostRange(9, 12, "x")


@pytest.mark.parametrize("frame", [frame for frame, _, _ in FRAMES])
def test_the_beginning_of_a_frame_is_one_that_was_cut_short_and_nothing_else_is(frame):
    other_version = frame[:4] + bytes([frame[4] + 1]) + frame[5:-1]

    assert all(is_cut_short(frame[:end]) for end in range(len(frame)))
    assert [is_cut_short(one) for one in (frame, frame + b"x", b"x" + frame[:-1], other_version)] == [False] * 4
