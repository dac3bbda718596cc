"""Every system call of the spool fails once: nothing is raised, and the ledger stays true. The method is SQLite's."""

import contextlib
import errno
import os
import threading

import pytest

from noisescale.transport.limits import Limits
from noisescale.transport.spool import disk_spool
from noisescale.transport.upload.left_behind import open_stream, stream_folders
from spooled_streams import deliver, make_stream, metric, numbers
from stub_server import Ledger

SMALL = Limits(segment_bytes=600, run_bytes=3000, free_share=0.0, acked_bytes=600)
CALLS = ("write", "open", "fdatasync", "fsync", "rename", "unlink", "ftruncate", "mkdir", "stat", "pread", "statvfs")
FAULTS = {
    "EIO": OSError(errno.EIO, "Input/output error"),
    "ENOSPC": OSError(errno.ENOSPC, "No space left on device"),
    "EROFS": OSError(errno.EROFS, "Read-only file system"),
    "EINTR": InterruptedError(errno.EINTR, "Interrupted"),
    "EACCES": PermissionError(errno.EACCES, "Permission denied"),
    "memory": MemoryError(),
    "short": None,
}
NUM_RECORDS = 60


class FaultyCalls:
    """Stands in for some functions of `os`: one call fails, or all from it on."""

    def __init__(self, monkeypatch, fault, fails_at, *, lasts):
        self.count = 0
        self.fault = fault
        self.fails_at = fails_at
        self.lasts = lasts
        self._lock = threading.Lock()
        for name in CALLS:
            monkeypatch.setattr(os, name, self._wrapped(name, getattr(os, name)))

    def _wrapped(self, name, call):
        def wrapped(*arguments, **named):
            with self._lock:
                self.count += 1
                is_due = self.count == self.fails_at or (self.lasts and self.count > self.fails_at)
            if not is_due:
                return call(*arguments, **named)
            if self.fault is not None:
                raise self.fault
            if name == "write":
                return call(arguments[0], arguments[1][: len(arguments[1]) // 2])
            return call(*arguments, **named)

        return wrapped


def scenario(folder):
    """A stream's whole life, with deliveries in between; the program sees no exception."""
    stream, ledger = make_stream(folder, limits=SMALL), Ledger()
    for number in range(NUM_RECORDS):
        stream.append(metric(number))
        if number % 20 == 10:
            try_to_deliver(stream, ledger)
        if number % 20 == 15 and stream._spool.folder is not None:
            stream._spool.sync()
    stream.end(5)
    return stream, ledger


def try_to_deliver(stream, ledger):
    """The uploader's thread catches everything and comes again."""
    with contextlib.suppress(OSError, MemoryError):
        deliver(stream, ledger, max_records=7)


def check(stream, ledger, *, lasts):
    for _ in range(20):
        try_to_deliver(stream, ledger)
    ledger.check()
    assert ledger.acked[stream.stream_id] == NUM_RECORDS + 1
    lost = ledger.lost[stream.stream_id]
    stored = numbers(ledger, stream)
    assert stored == [number for number in range(NUM_RECORDS) if number + 2 not in lost]
    # a fault costs nothing, only the small limit does; what a broken disk could not have at the end is lost
    assert set(lost.values()) <= ({"spool_full", "disk_full"} if lasts else {"spool_full"})


def num_calls(monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        calls = FaultyCalls(patch, None, 0, lasts=False)
        scenario(tmp_path / "clean")
    return calls.count


def run_with_faults(monkeypatch, tmp_path, fault, every, *, lasts):
    last = num_calls(monkeypatch, tmp_path) + 20
    for number in range(1, last, every):
        folder = tmp_path / f"{number}"
        with monkeypatch.context() as patch:
            FaultyCalls(patch, FAULTS[fault], number, lasts=lasts)
            stream, ledger = scenario(folder)
        check(stream, ledger, lasts=lasts)
        for left in stream_folders(folder):
            found, _ = open_stream(left, ledger.acked[stream.stream_id])
            assert found.delivery().num_logged <= NUM_RECORDS + 1


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(disk_spool, "RETRY_SECONDS", 0.0)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_share_of_single_faults_leaves_the_ledger_true(monkeypatch, tmp_path, fault):
    run_with_faults(monkeypatch, tmp_path, fault, every=29, lasts=False)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_every_single_fault_leaves_the_ledger_true(monkeypatch, tmp_path, fault):
    run_with_faults(monkeypatch, tmp_path, fault, every=1, lasts=False)


@pytest.mark.parametrize("fault", ["EIO", "ENOSPC", "EROFS", "short"])
def test_a_disk_that_fails_for_good_leaves_the_ledger_true(monkeypatch, tmp_path, fault):
    run_with_faults(monkeypatch, tmp_path, fault, every=41, lasts=True)
