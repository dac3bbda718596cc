"""The spool's own thread: it brings to the disk what was written, each time anew, and writes what waits in memory."""

import os
import time

import pytest

from full_disk import FullDisk
from noisescale.transport.limits import Limits
from noisescale.transport.spool import segment
from noisescale.transport.spool.disk_spool import DiskSpool
from noisescale.transport.spool.frames import decode_loss, encode, frames_in, seq_of
from noisescale.transport.wire import LostRange, RunRecord
from spooled_streams import metric

ROOMY = Limits(free_share=0.0)


def frame(seq):
    return encode(seq, metric(seq) if seq > 1 else RunRecord({}, {}))


@pytest.fixture
def make(tmp_path, monkeypatch):
    monkeypatch.setattr("noisescale.transport.spool.disk_spool.SYNC_SECONDS", 0.02)
    monkeypatch.setattr("noisescale.transport.spool.disk_spool.RETRY_SECONDS", 0.02)
    made = []

    def spool(**options):
        made.append(DiskSpool([tmp_path], {}, **{"limits": ROOMY, "durability": "direct"} | options))
        made[-1].begin("run", "stream")
        return made[-1]

    yield spool
    for one in made:
        one.end(2)


@pytest.fixture
def syncs(monkeypatch):
    """How often the disk was asked to confirm."""
    found = []
    fdatasync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: found.append(descriptor) or fdatasync(descriptor))
    return found


def on_disk(tmp_path):
    return [
        one.seq for path in sorted(tmp_path.rglob("*.seg")) for one in frames_in(path.read_bytes()) if one.is_record
    ]


def wait_until(is_so, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_each_time_that_something_was_written_it_is_brought_to_the_disk(make, syncs):
    spool = make()
    for round_ in range(3):
        spool.append(frame(round_ + 1))
        wait_until(lambda: len(syncs) > round_)  # noqa: B023
        wait_until(lambda: not spool._is_dirty)


def test_what_was_written_a_while_after_the_last_sync_is_brought_to_the_disk_at_once(make):
    spool = make()
    now = time.monotonic()

    nothing = spool._pause(now)
    spool._is_dirty = True
    pauses = [spool._pause(now - seconds) for seconds in (60.0, -10.0)]
    spool._is_dirty = False

    assert nothing is None
    assert pauses == [0.0, pytest.approx(10.0, abs=1.0)]


@pytest.mark.thorough
def test_it_looks_how_full_the_disk_is(make):
    spool = make(limits=Limits(segment_bytes=1, free_share=2.0))
    spool.append(frame(1))
    wait_until(lambda: spool._room._is_disk_low)

    spool.append(frame(2))
    spool.append(frame(3))

    assert {lost.reason for lost in spool.take_losses()} == {"spool_full"}


def test_a_spool_without_a_folder_has_nothing_to_bring_to_the_disk():
    spool = DiskSpool([])

    spool.sync()

    assert spool.num_failed_syncs == 0


def test_while_nothing_is_written_the_disk_is_left_alone(make, syncs):
    spool = make()
    spool.append(frame(1))
    wait_until(lambda: syncs and not spool._is_dirty)
    time.sleep(0.1)
    num_before = len(syncs)
    time.sleep(0.2)

    assert len(syncs) == num_before


def test_a_thread_writes_in_the_callers_place_and_keeps_the_order(make, tmp_path):
    spool = make(durability="async")
    for seq in range(1, 200):
        spool.append(frame(seq))

    wait_until(lambda: len(on_disk(tmp_path)) == 199)
    assert on_disk(tmp_path) == list(range(1, 200))


def test_what_waits_for_a_disk_that_failed_is_written_when_it_works_again(make, tmp_path, monkeypatch):
    spool = make()
    spool.append(frame(1))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        for seq in range(2, 6):
            spool.append(frame(seq))
        time.sleep(0.1)
        while_full = on_disk(tmp_path)

    wait_until(lambda: on_disk(tmp_path) == [1, 2, 3, 4, 5])
    assert while_full == [1]
    spool.append(frame(6))
    assert on_disk(tmp_path)[-1] == 6, "the caller writes again"


def test_it_begins_with_the_first_record_and_ends_with_the_stream(make):
    spool = make()
    before = spool._thread
    spool.append(frame(1))
    thread = spool._thread
    was_alive = thread.is_alive()
    for seq in range(2, 20):
        spool.append(frame(seq))
    spool.end(5)

    assert (before, was_alive) == (None, True)
    assert spool._thread is thread
    assert not thread.is_alive()


def test_the_end_brings_the_last_records_to_the_disk_and_lets_the_folder_go(make, syncs, tmp_path):
    spool = make()
    for seq in range(1, 4):
        spool.append(frame(seq))
    spool.end(5)

    assert syncs
    assert not spool.folder.is_ours
    assert [one._descriptor for one in spool._segments.listed()] == [None]
    assert [one.kind for path in tmp_path.rglob("*.seg") for one in frames_in(path.read_bytes())][-1] == 65


@pytest.mark.parametrize(
    ("after", "until", "limits", "found", "is_all"),
    [
        (0, 9, {}, [1, 2, 3, 4, 5], True),
        (2, 4, {}, [3, 4], True),
        (0, 9, {"max_records": 2}, [1, 2], False),
        (0, 9, {"max_records": 5}, [1, 2, 3, 4, 5], True),
        (1, 9, {"max_bytes": 2 * len(frame(2))}, [2, 3], False),
        (1, 9, {"max_bytes": 1}, [2], False),
    ],
)
@pytest.mark.parametrize("num_in_memory", [0, 2])
def test_the_oldest_come_from_the_files_and_then_from_memory(
    make, monkeypatch, after, until, limits, found, is_all, num_in_memory
):
    spool = make()
    for seq in range(1, 6 - num_in_memory):
        spool.append(frame(seq))
    monkeypatch.setattr(spool, "_drain", lambda: None)
    monkeypatch.setattr(spool, "_is_direct", False)
    for seq in range(6 - num_in_memory, 6):
        spool.append(frame(seq))

    held = spool.oldest(after, until, **{"max_records": 9, "max_bytes": 1 << 20} | limits)

    assert list(held.frames) == [frame(seq) for seq in found]
    assert held.is_all == is_all


def test_what_is_held_begins_with_the_files_then_with_memory_then_nowhere(make, monkeypatch):
    spool = make()
    monkeypatch.setattr(spool, "_drain", lambda: None)
    assert (spool.first_held(1), spool.first_held(3)) == (1, 3)
    spool.acknowledge(4, None)
    assert spool.first_held(1) == 5
    monkeypatch.setattr(spool, "_is_direct", False)
    spool.append(frame(7))
    assert (spool.first_held(1), spool.first_held(9)) == (7, 9)
    monkeypatch.setattr(spool, "_is_direct", True)
    spool._waiting.drop_until(7)
    spool.append(frame(8))
    assert spool.first_held(1) == 8


@pytest.mark.thorough
def test_while_the_disk_fails_the_thread_sleeps_between_two_tries(make, monkeypatch):
    monkeypatch.setattr("noisescale.transport.spool.disk_spool.RETRY_SECONDS", 60.0)
    spool = make()
    spool.append(frame(1))
    wait_until(lambda: not spool._is_dirty)
    looked = []
    drain = spool._drain
    monkeypatch.setattr(spool, "_drain", lambda: looked.append(time.monotonic()) or drain())
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        spool.append(frame(2))
        time.sleep(0.3)

    assert len(looked) < 20
    spool.end(2)


@pytest.mark.thorough
def test_the_end_waits_for_the_disk(make, monkeypatch):
    confirmed = []
    fdatasync = os.fdatasync

    def slow(descriptor):
        time.sleep(0.2)
        fdatasync(descriptor)
        confirmed.append(descriptor)

    spool = make()
    monkeypatch.setattr(os, "fdatasync", slow)
    spool.append(frame(1))

    spool.end(5)

    assert confirmed
    assert not spool._thread.is_alive()


def test_each_sync_that_fails_is_counted_once(make, monkeypatch):
    spool = make()
    monkeypatch.setattr(spool, "_start_thread", lambda: None)
    for seq in (1, 2, 3):
        spool.append(frame(seq))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", lambda descriptor: (_ for _ in ()).throw(OSError(5, "input/output error")))
        spool.sync()

    assert spool.num_failed_syncs == 1
    assert [frame(seq) for seq in (1, 2, 3)] == list(spool.oldest(0, 9, max_records=9, max_bytes=1 << 20).frames)


def test_a_loss_that_could_not_be_written_is_written_later(make, tmp_path, monkeypatch):
    spool = make()
    spool.append(frame(1))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        spool.lose(LostRange(2, 5, "too_large"))
        time.sleep(0.1)

    def losses():
        [path] = tmp_path.rglob("*.seg")
        return [decode_loss(one.frame) for one in frames_in(path.read_bytes()) if not one.is_record]

    wait_until(losses)
    assert losses() == [LostRange(2, 5, "too_large")]


def test_the_thread_writes_at_once_and_not_when_it_syncs_next(make, tmp_path, monkeypatch):
    monkeypatch.setattr("noisescale.transport.spool.disk_spool.SYNC_SECONDS", 30.0)
    spool = make(durability="async")

    for seq in range(1, 5):
        spool.append(frame(seq))
        wait_until(lambda: on_disk(tmp_path)[-1:] == [seq], seconds=5)  # noqa: B023


def test_a_loss_is_brought_to_the_disk_as_a_record_is(make, syncs, monkeypatch):
    monkeypatch.setattr("noisescale.transport.spool.disk_spool.SYNC_SECONDS", 0.2)
    spool = make()
    spool.append(frame(1))
    wait_until(lambda: syncs and not spool._is_dirty)
    num_before = len(syncs)

    spool.lose(LostRange(2, 2, "too_large"))

    wait_until(lambda: len(syncs) > num_before)


def test_a_loss_behind_records_hides_none_of_them(make, tmp_path):
    spool = make()
    for seq in range(1, 6):
        spool.append(frame(seq))
    spool.lose(LostRange(6, 6, "too_large"))
    wait_until(lambda: not spool._losses.has_unwritten)

    held = spool.oldest(2, 6, max_records=9, max_bytes=1 << 20)

    assert [seq_of(one) for one in held.frames] == [3, 4, 5]


def test_losses_that_the_server_knows_of_are_forgotten(make):
    spool = make()
    spool.append(frame(1))
    spool.lose(LostRange(2, 3, "too_large"))
    spool.lose(LostRange(5, 5, "too_large"))

    spool.acknowledge(4, None)

    assert spool._losses.known() == [LostRange(5, 5, "too_large")]


class Writes(FullDisk):
    """A disk that counts the attempts to write to it."""

    num_writes = 0

    def write(self, descriptor, content):
        self.num_writes += 1
        return super().write(descriptor, content)


def test_a_disk_that_failed_is_left_alone_until_it_is_time_to_try_again(make, monkeypatch):
    disk = Writes()
    monkeypatch.setattr(segment, "os", disk)
    monkeypatch.setattr("noisescale.transport.spool.disk_spool.RETRY_SECONDS", 60.0)
    spool = make()
    spool.append(frame(1))
    for seq in range(2, 10):
        spool.append(frame(seq))
    tried = disk.num_writes

    spool._drain()

    assert tried >= 1
    assert disk.num_writes == tried
    assert spool.num_in_memory == 9


def test_what_the_server_has_is_no_longer_held_in_memory(make, monkeypatch):
    monkeypatch.setattr(segment, "os", FullDisk())
    monkeypatch.setattr("noisescale.transport.spool.disk_spool.RETRY_SECONDS", 60.0)
    spool = make()
    for seq in range(1, 6):
        spool.append(frame(seq))

    spool.acknowledge(3, None)

    assert spool.num_in_memory == 2


def test_each_file_begins_with_the_run_even_where_memory_had_no_room_for_it(make, monkeypatch, tmp_path):
    disk = FullDisk()
    monkeypatch.setattr(segment, "os", disk)
    spool = make(limits=Limits(free_share=0.0, memory_records=2))
    for seq in range(1, 6):
        spool.append(frame(seq))
    disk.num_free = 1 << 20

    wait_until(lambda: on_disk(tmp_path))
    wait_until(lambda: spool.num_in_memory == 0)

    assert on_disk(tmp_path)[0] == 1
    assert on_disk(tmp_path)[-1] == 5
