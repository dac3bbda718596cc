"""Damaged files: whatever was cut, flipped, zeroed, repeated or put in between, no wrong record is ever read."""

import random
import struct
from collections.abc import Iterator

import pytest

from noisescale.transport.spool.frames import MAGIC, encode, encode_loss, encode_seal, frames_in
from noisescale.transport.spool.stream_folder import StreamFolder
from noisescale.transport.upload.left_behind import open_stream
from noisescale.transport.wire import FinishRecord, GroupRecord, LostRange, Measurement, MetricRecord, RunRecord
from spooled_streams import deliver
from stub_server import Ledger

LOOKS_LIKE_A_FRAME = struct.unpack("<d", MAGIC + b"\x01\x01\x00\x00")[0]
"""A number whose bytes begin as a frame does."""

ROW = Measurement(7, 50, 1.79e9, 12_800, 32.0, 8, 256.0, 1.5, -0.25, 2.5, LOOKS_LIKE_A_FRAME, -0.125, 3.5, 50, 0.1, 16)

RECORDS = [
    RunRecord({"project": "demo"}, {"kind": "simple"}),
    ROW,
    GroupRecord(3, 1.0, ["blocks.0", "ü"], [2, 3], [LOOKS_LIKE_A_FRAME, 2.0], *[[0.1, -0.2]] * 4),
    MetricRecord(4, 2.0, {"eval_loss": 0.5, "accuracy": None}),
    *[ROW] * 4,
    FinishRecord("finished", 3.0),
]  # fmt: skip

FRAMES = [encode(seq, record) for seq, record in enumerate(RECORDS, start=1)]
LOSS = encode_loss(LostRange(10, 12, "spool_full"))
FILE = b"".join(FRAMES[:5]) + LOSS + b"".join(FRAMES[5:]) + encode_seal(12)
KNOWN = {*FRAMES, LOSS, encode_seal(12)}


def damaged_files() -> Iterator[tuple[str, bytes]]:
    """More than 50,000 files, each with what was done to it."""
    for cut in range(len(FILE)):
        yield "cut", FILE[:cut]
        yield "cut at the front", FILE[cut:]
    for bit in range(8 * len(FILE)):
        flipped = bytearray(FILE)
        flipped[bit // 8] ^= 1 << bit % 8
        yield "flip", bytes(flipped)
    for length in (1, 4, 16, 24, 100, 512):
        for at in range(len(FILE)):
            yield "zero", FILE[:at] + bytes(length) + FILE[at + length :]
            yield "repeat", FILE[:at] + FILE[at : at + length] + FILE[at:]
            yield "leave out", FILE[:at] + FILE[at + length :]
    generator = random.Random(7)
    for at in range(len(FILE)):
        for length in (1, 3, 30):
            yield "put in", FILE[:at] + generator.randbytes(length) + FILE[at:]
        yield "put in", FILE[:at] + MAGIC + FILE[at:]
        yield "put in", FILE[:at] + FRAMES[3] + FILE[at:]
    while True:
        damaged = bytearray(FILE)
        for _ in range(generator.randint(2, 12)):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        yield "several", bytes(damaged)


def check(kind: str, data: bytes) -> None:
    found = list(frames_in(data))
    assert all(one.frame in KNOWN for one in found), kind
    if kind == "flip":
        assert len({one.frame for one in found}) >= len(KNOWN) - 1
    if kind == "cut":
        whole = [end for end in ends() if end <= len(data)]
        assert [one.end for one in found] == whole
    if kind == "put in":
        assert len({one.frame for one in found}) >= len(KNOWN) - 1


def ends() -> list[int]:
    return [one.end for one in frames_in(FILE)]


def take(number: int, every: int) -> Iterator[tuple[str, bytes]]:
    for index, case in zip(range(number), damaged_files(), strict=False):
        if index % every == 0:
            yield case


def test_an_undamaged_file_is_read_whole():
    assert [one.frame for one in frames_in(FILE)] == [*FRAMES[:5], LOSS, *FRAMES[5:], encode_seal(12)]


def test_a_share_of_the_damaged_files_gives_no_wrong_record():
    for kind, data in take(60_000, every=23):
        check(kind, data)


@pytest.mark.slow
def test_sixty_thousand_damaged_files_give_no_wrong_record():
    for kind, data in take(60_000, every=1):
        check(kind, data)


def deliver_damaged(tmp_path, data: bytes) -> Ledger:
    """What a server gets of a stream whose only file holds these bytes."""
    folder = tmp_path / "run" / "stream"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".ack").unlink(missing_ok=True)
    (folder / "00000001.seg").write_bytes(data)
    stream, _ = open_stream(StreamFolder(folder))
    ledger = Ledger()
    deliver(stream, ledger)
    ledger.check()
    return ledger


TRUTH_KINDS = ["run", "measurements", "groups", "metrics", *["measurements"] * 4, "finish"]


def check_delivery(tmp_path, data: bytes) -> None:
    ledger = deliver_damaged(tmp_path, data)

    for stored in ledger.stored.values():
        assert all(TRUTH_KINDS[seq - 1] == kind for seq, (kind, _) in stored.items())
        assert set(ledger.lost["stream"].values()) <= {"spool_corrupt", "spool_full"}


@pytest.mark.thorough
def test_what_a_damaged_file_lacks_is_declared_and_the_rest_delivered(tmp_path):
    for _, data in take(60_000, every=171):
        check_delivery(tmp_path, data)


@pytest.mark.slow
def test_the_ledger_stays_true_for_thousands_of_damaged_files(tmp_path):
    for _, data in take(60_000, every=7):
        check_delivery(tmp_path, data)


def test_one_damaged_record_is_one_that_is_declared_lost(tmp_path):
    at = FILE.index(FRAMES[3]) + 30
    damaged = FILE[:at] + b"\x00\x01\x02" + FILE[at + 3 :]

    ledger = deliver_damaged(tmp_path, damaged)

    assert sorted(ledger.stored["stream"]) == [1, 2, 3, 5, 6, 7, 8, 9]
    assert ledger.lost["stream"] == {4: "spool_corrupt", 10: "spool_full", 11: "spool_full", 12: "spool_full"}
