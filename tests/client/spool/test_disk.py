"""Disks that are too small, read-only, without inodes or frozen: what is declared lost is exactly what is lost."""

import os
import resource
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from noisescale.transport.limits import Limits
from noisescale.transport.spool.disk_spool import DiskSpool
from noisescale.transport.upload.left_behind import open_stream, stream_folders
from noisescale.transport.upload.stream import Stream
from noisescale.transport.wire import RunRecord
from spooled_streams import deliver, make_stream, metric, numbers
from stub_server import Ledger

CAP_SYS_ADMIN = 21


def needs_root(test):
    """The test, skipped where nobody may mount."""
    return pytest.mark.root(pytest.mark.skipif(not may_mount(), reason="mounting needs root")(test))


def may_mount():
    """Root in a container may lack the capability."""
    lines = Path("/proc/self/status").read_text().splitlines()
    [effective] = [line.split()[1] for line in lines if line.startswith("CapEff")]
    return os.geteuid() == 0 and bool(int(effective, 16) >> CAP_SYS_ADMIN & 1)


SMALL_FILES = Limits(segment_bytes=32 << 10, free_share=0.0, memory_records=500)


@contextmanager
def mounted(folder, *arguments):
    """A file system at a folder, for the block."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", *arguments, str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def log(stream, numbers_):
    """Log these; seconds of the longest call."""
    longest = 0.0
    for number in numbers_:
        start = time.perf_counter()
        stream.append(metric(number))
        longest = max(longest, time.perf_counter() - start)
    return longest


def check_exactly(stream, ledger, num_logged):
    """Each record is stored, as it was logged, or declared lost: the two make up everything, and share nothing."""
    ledger.check()
    lost = {seq - 2 for seq in ledger.lost[stream.stream_id]}
    stored = numbers(ledger, stream)
    assert sorted([*stored, *lost]) == list(range(num_logged))
    return lost


@needs_root
def test_a_disk_that_is_full_gives_up_what_memory_cannot_hold_and_says_which(tmp_path):
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=256k", "tmpfs") as folder:
        stream, ledger = make_stream(folder, limits=SMALL_FILES), Ledger()

        log(stream, range(6000))
        deliver(stream, ledger)
        stream.end(5)

        lost = check_exactly(stream, ledger, 6000)
        assert 0 < len(lost) < 6000
        assert set(ledger.lost[stream.stream_id].values()) == {"disk_full"}


@needs_root
def test_a_disk_without_inodes_goes_on_in_the_file_that_is_there_or_in_memory(tmp_path):
    with mounted(tmp_path / "few", "-t", "tmpfs", "-o", "size=10m,nr_inodes=12", "tmpfs") as folder:
        stream, ledger = make_stream(folder, limits=SMALL_FILES), Ledger()

        log(stream, range(3000))
        deliver(stream, ledger)
        stream.end(5)

        check_exactly(stream, ledger, 3000)


@needs_root
def test_a_disk_that_becomes_read_only_leaves_what_was_written_and_keeps_the_rest_in_memory(tmp_path, caplog):
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=10m", "tmpfs") as folder:
        stream, ledger = make_stream(folder), Ledger()
        log(stream, range(50))
        subprocess.run(["mount", "-o", "remount,ro,force", str(folder)], check=False, capture_output=True)
        subprocess.run(["mount", "-o", "bind,remount,ro", str(folder)], check=False, capture_output=True)

        log(stream, range(50, 100))
        deliver(stream, ledger)

        assert check_exactly(stream, ledger, 100) == set()
        stream.end(1)


@needs_root
def test_a_state_folder_that_is_read_only_is_passed_over(tmp_path, caplog):
    (tmp_path / "home").mkdir()
    with mounted(tmp_path / "ro", "-t", "tmpfs", "-o", "ro", "tmpfs") as folder:
        spool = DiskSpool([folder, tmp_path / "home"], durability="direct")
        stream, ledger = Stream("run", spool, lambda: RunRecord({}, {})), Ledger()

        log(stream, range(10))
        deliver(stream, ledger)

        assert check_exactly(stream, ledger, 10) == set()
        assert spool.folder.path.is_relative_to(tmp_path / "home")
        stream.end(1)


def test_a_limit_on_the_size_of_files_costs_nothing(tmp_path):
    """`ulimit -f` of a cluster's scheduler; Python ignores the signal, and the write fails."""
    stream, ledger = make_stream(tmp_path), Ledger()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        log(stream, range(200))
        deliver(stream, ledger)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert check_exactly(stream, ledger, 200) == set()
    stream.end(5)


@pytest.mark.slow
@needs_root
def test_a_frozen_disk_costs_one_call_its_time_and_the_others_nothing(tmp_path):
    """`fsfreeze` stops every write; the caller meets it once, and a thread writes from then on."""
    seconds = 2.0
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    with mounted(tmp_path / "disk", "-o", "loop", str(image)) as folder:
        stream, ledger = make_stream(folder, durability="auto"), Ledger()
        log(stream, range(10))
        subprocess.run(["fsfreeze", "--freeze", str(folder)], check=True)
        threading.Timer(seconds, subprocess.run, [["fsfreeze", "--unfreeze", str(folder)]]).start()

        longest = log(stream, range(10, 20))
        later = log(stream, range(20, 500))
        stream.end(10)

        assert longest < seconds + 1.0
        assert later < 0.5, "a cliff guard: a call that waits takes the whole freeze"
        [left] = stream_folders(folder)
        found, _ = open_stream(left)
        deliver(found, ledger)
        assert check_exactly(found, ledger, 500) == set()
