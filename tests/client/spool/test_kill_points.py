"""A job is killed inside its Nth write, for every N: what it knew to be accepted is on disk, and only that."""

import subprocess
import sys
from pathlib import Path

import pytest

from noisescale.transport.upload.left_behind import open_stream, stream_folders
from spooled_streams import deliver
from stub_server import Ledger
from whole_processes import environment_of

NUM_RECORDS = 12
JOB = """
import os, sys
from noisescale.transport.spool.disk_spool import DiskSpool
from noisescale.transport.limits import Limits
from noisescale.transport.upload.stream import Stream
from noisescale.transport.wire import MetricRecord, RunRecord
from pathlib import Path

folder, num_records = Path(sys.argv[1]), int(sys.argv[2])
limits = Limits(segment_bytes=400, free_share=0.0)
stream = Stream("run", DiskSpool([folder / "spool"], limits=limits, durability="direct"), lambda: RunRecord({}, {}))
accepted = os.open(folder / "accepted", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
for number in range(num_records):
    stream.append(MetricRecord(number, 0.0, {"n": float(number)}))
    os.write(accepted, b"%d\\n" % number)
os._exit(0)
"""

pytestmark = [pytest.mark.slow, pytest.mark.processes]


def killed_at(number: int, folder: Path) -> bool:
    """Whether the job was killed at its write of this number; it ends by itself after its last one."""
    folder.mkdir()
    trace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=write"]
    inject = ["-e", f"inject=write:signal=KILL:when={number}"]
    found = subprocess.run(
        [*trace, *inject, sys.executable, "-c", JOB, str(folder), str(NUM_RECORDS)],
        env=environment_of(folder),
        capture_output=True,
        timeout=60,
        check=False,
    )
    return found.returncode != 0


def on_disk(folder: Path) -> list[int]:
    """What a later process finds, in order."""
    found = []
    for left in stream_folders(folder / "spool"):
        stream, _ = open_stream(left)
        ledger = Ledger()
        deliver(stream, ledger)
        ledger.check()
        assert set(ledger.lost.get(stream.stream_id, {}).values()) == set()
        stored = ledger.stored.get(stream.stream_id, {})
        found += [int(stored[seq][1]["value"]) for seq in sorted(stored) if stored[seq][0] == "metrics"]
    return found


def test_a_kill_at_any_write_loses_nothing_that_was_accepted(tmp_path: Path) -> None:
    number = 0
    while True:
        number += 1
        folder = tmp_path / str(number)
        is_killed = killed_at(number, folder)
        accepted = (folder / "accepted").read_text().split("\n")[:-1] if (folder / "accepted").exists() else []

        found = on_disk(folder)

        assert found == list(range(len(found))), number
        assert len(accepted) <= len(found) <= len(accepted) + 1, number
        if not is_killed:
            break
    assert number > 2 * NUM_RECORDS, "each record is a write, and so is each line of the oracle"
