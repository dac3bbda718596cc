"""The training thread writes records by a call that lets no other thread run, and is as safe as `os.write`."""

import errno
import os
import subprocess
import sys

import pytest

from noisescale.transport.spool import held_write
from noisescale.transport.spool.disk_spool import DiskSpool
from noisescale.transport.spool.frames import encode, frames_in, seq_of
from noisescale.transport.spool.segment import ClosedByOthers, Segment
from noisescale.transport.wire import RunRecord
from spooled_streams import metric

HEAD = encode(1, RunRecord({}, {}))

PAST_A_LIMIT = """
import resource, sys
from pathlib import Path
from noisescale.transport.spool.disk_spool import DiskSpool
from noisescale.transport.spool.frames import encode
from noisescale.transport.wire import MetricRecord, RunRecord

spool = DiskSpool([Path(sys.argv[1])])
spool.begin("run", "stream")
spool.append(encode(1, RunRecord({}, {})))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
for seq in range(2, 40):
    spool.append(encode(seq, MetricRecord(seq, 0.0, {"loss": 0.5})))
kept = spool.num_in_memory
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
spool.end(10.0)
print(kept > 0, sum(one.last - one.first + 1 for one in spool.take_losses()))
"""


def records_in(folder):
    data = b"".join(path.read_bytes() for path in sorted(folder.rglob("*.seg")))
    return [seq_of(found.frame) for found in frames_in(data) if found.is_record]


def test_a_record_is_written_without_the_call_that_lets_others_run(tmp_path, monkeypatch):
    def refuse(descriptor, data):
        raise AssertionError("os.write")

    spool = DiskSpool([tmp_path])
    spool.begin("run", "stream")
    spool.append(HEAD)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", refuse)
        for seq in range(2, 12):
            spool.append(encode(seq, metric(seq)))
    written = records_in(tmp_path)
    spool.end(5.0)

    assert held_write.write is not None
    assert written == list(range(1, 12))


def test_who_waits_for_each_write_lets_other_threads_run_meanwhile(tmp_path, monkeypatch):
    spool, written = DiskSpool([tmp_path], durability="direct"), []
    write = os.write
    spool.begin("run", "stream")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: written.append(data) or write(descriptor, data))
        spool.append(HEAD)
        spool.append(encode(2, metric(2)))
    spool.end(5.0)

    assert written == [HEAD, encode(2, metric(2))]


def test_where_it_fails_the_reason_is_that_of_the_system(tmp_path):
    full = Segment(tmp_path / "1.seg")
    full._descriptor = os.open("/dev/full", os.O_WRONLY)
    closed = Segment(tmp_path / "2.seg")
    closed.create()
    os.close(closed._descriptor)

    with pytest.raises(OSError, match="No space left on device") as failed:
        full.append(HEAD, 0, held_write.write)
    with pytest.raises(ClosedByOthers):
        closed.append(HEAD, 0, held_write.write)

    assert failed.value.errno == errno.ENOSPC
    assert full.size == 0
    full.close()


@pytest.mark.processes
def test_a_file_that_may_not_grow_leaves_no_half_record_and_nothing_is_lost(tmp_path):
    command = [sys.executable, "-c", PAST_A_LIMIT, str(tmp_path)]

    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.split()

    assert said == ["True", "0"]
    assert sorted(set(records_in(tmp_path))) == list(range(1, 40))
