"""Whole processes that log, and what they leave on disk."""

import os
import subprocess
import sys

from noisescale.transport.upload.left_behind import open_stream, stream_folders
from spooled_streams import deliver
from stub_server import Ledger

LOG = """
import noisescale, os, sys
noisescale.init(url="http://127.0.0.1:9")
def log(*steps):
    for step in steps:
        noisescale.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=3.0, big_sq_norm=1.0, step=step)
log(*range(20))
"""


def python(code, tmp_path, output=subprocess.PIPE):
    """The process that logged steps 0 to 19, and then did this."""
    strictly = ["-W", "error", "-W", "ignore:.*fork.*:DeprecationWarning"]
    return run([*strictly, "-c", LOG + code], tmp_path, output=output)


def environment_of(folder):
    """That of a process whose records wait in a folder, and that knows nothing of the user's settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NOISESCALE_")}
    return {**clean, "NOISESCALE_DIR": str(folder), "OMP_NUM_THREADS": "1"}


def run(arguments, tmp_path, *, output=subprocess.PIPE, **environment):
    """A process of this interpreter that leaves its records in a folder, and reaches no server."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment_of(tmp_path) | environment,
        stdout=output,
        stderr=output,
        text=True,
        timeout=120,
        check=False,
    )


def steps_on_disk(tmp_path):
    """Steps of each stream that was left behind, and how each ended."""
    found = []
    for folder in stream_folders(tmp_path):
        assert folder.try_lock()
        stream, _ = open_stream(folder)
        ledger = Ledger()
        deliver(stream, ledger)
        ledger.check()
        ends = [row["status"] for kind, row in ledger.stored[stream.stream_id].values() if kind == "finish"]
        found.append((ledger.steps(), ends, set(ledger.lost[stream.stream_id].values())))
    return sorted(found)
