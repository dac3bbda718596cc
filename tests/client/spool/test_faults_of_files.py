"""Files and folders that fail in ways that disks seldom do: no record is lost, and nobody waits."""

import errno
import fcntl
import os
import threading
import time

import pytest

from noisescale.transport.spool import stream_folder
from noisescale.transport.spool.segment import Segment
from noisescale.transport.spool.stream_folder import StreamFolder, out_of_the_way
from noisescale.transport.upload import left_behind
from noisescale.transport.upload.late_delivery import KEPT_SECONDS, beyond_the_window
from noisescale.transport.upload.left_behind import book_of, open_stream, stream_folders, write_down, written_down
from noisescale_core.errors import TransportError
from spooled_streams import deliver, make_stream, metric, numbers
from stub_server import Ledger


def logged(root, num_records):
    stream = make_stream(root)
    for number in range(num_records):
        stream.append(metric(number))
    return stream


def found_by_another_process(root):
    ledger = Ledger()
    [folder] = stream_folders(root)
    found, _ = open_stream(folder)
    deliver(found, ledger)
    return numbers(ledger, found)


def refuse(number):
    def fail(*arguments, **options):
        raise OSError(number, os.strerror(number))

    return fail


def test_a_record_whose_file_the_program_has_closed_goes_into_a_new_one(tmp_path):
    stream = logged(tmp_path, 3)
    os.close(stream._spool._segments.newest._descriptor)

    stream.append(metric(3))

    assert stream._spool.num_in_memory == 0
    assert found_by_another_process(tmp_path) == [0, 1, 2, 3]
    stream.end(1)


@pytest.mark.parametrize("seq", [0, 3])
def test_where_records_cannot_be_written_again_now_the_file_of_before_stays_alone_and_it_is_tried_again(
    tmp_path, monkeypatch, seq
):
    """The new file takes nothing at all, or not the third record."""
    stream = logged(tmp_path, 4)
    spool = stream._spool
    append, is_broken = Segment.append, [True]

    def fail(segment, frame, number):
        if is_broken and number == seq and segment.path.name != "00000001.seg":
            refuse(errno.EIO)()
        append(segment, frame, number)

    monkeypatch.setattr(Segment, "append", fail)
    spool._segments.newest.is_doubtful = True  # the spool's own thread may look at any time
    spool.sync()
    with spool._io:  # the spool's own thread may be at it as well
        meanwhile = [path.name for path in tmp_path.rglob("*.seg")]
    is_broken.clear()
    spool.sync()

    assert meanwhile == ["00000001.seg"]
    with spool._io:
        assert len([*tmp_path.rglob("*.seg")]) == 1
    assert found_by_another_process(tmp_path) == [0, 1, 2, 3]
    stream.end(1)


def test_an_end_does_not_wait_for_a_disk_that_hangs(tmp_path, monkeypatch):
    is_back = threading.Event()
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: is_back.wait(10))
    stream = logged(tmp_path, 3)

    start = time.monotonic()
    stream.end(0.05)
    took = time.monotonic() - start

    assert took < 5
    assert found_by_another_process(tmp_path) == [0, 1, 2]
    is_back.set()
    stream._spool._thread.join(5)
    stream._spool.folder.release()


def test_of_a_file_that_cannot_be_looked_at_nobody_says_that_it_is_gone(tmp_path, monkeypatch):
    segment = Segment(tmp_path / "00000001.seg")
    segment.path.write_bytes(b"")

    before = segment.is_in_place()
    monkeypatch.setattr(os, "stat", refuse(errno.EACCES))

    assert (before, segment.is_in_place()) == (True, True)


def test_where_a_file_system_has_no_locks_nobody_holds_one_and_everybody_may_send(tmp_path, monkeypatch):
    folder = StreamFolder(tmp_path / "run" / "stream")
    folder.create({})
    folder.release()
    monkeypatch.setattr(fcntl, "flock", refuse(errno.ENOLCK))
    before = os.listdir("/proc/self/fd")

    assert folder.try_lock()

    assert not folder.is_ours
    assert os.listdir("/proc/self/fd") == before


def test_a_process_that_may_have_few_files_keeps_the_number_that_it_has(tmp_path, monkeypatch):
    descriptor = os.open(tmp_path / "file", os.O_CREAT | os.O_RDWR)
    monkeypatch.setattr(stream_folder.fcntl, "fcntl", refuse(errno.EINVAL))

    assert out_of_the_way(descriptor) == descriptor

    os.fstat(descriptor)
    os.close(descriptor)


def test_a_line_of_the_book_that_was_cut_off_hides_no_other_one(tmp_path):
    write_down(tmp_path, "run", "first", 3, "why")
    with book_of(tmp_path).open("a") as file:
        file.write('{"at": "2026-11\n["no", "line"]\n')
    write_down(tmp_path, "run", "second", 4, "why")

    assert [(one.stream_id, one.num_records) for one in written_down(tmp_path)] == [("first", 3), ("second", 4)]


def test_a_line_that_does_not_fit_on_the_disk_is_none(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(left_behind.os, "write", lambda descriptor, data: write(descriptor, data[:10]))

    with pytest.raises(OSError, match=r"wrote 10 of \d+ bytes"):
        write_down(tmp_path, "run", "stream", 3, "why")


def test_what_arrived_in_another_life_of_the_data_stays_while_nobody_says_which_database_is_behind(
    tmp_path, monkeypatch
):
    class NobodyAnswers:
        def is_another(self, folder):
            raise TransportError("no answer")

    logged(tmp_path, 3).end(1)
    [folder] = stream_folders(tmp_path)
    folder.acknowledge(4, "first")
    now = time.time()
    monkeypatch.setattr("noisescale.transport.upload.late_delivery.time.time", lambda: now + KEPT_SECONDS + 60)

    gone = [beyond_the_window([folder], epoch, NobodyAnswers()) for epoch in ("another", "first")]

    assert gone == [[], [folder]]
