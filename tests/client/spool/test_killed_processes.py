"""Whole processes that die: what they logged is on disk, and whoever comes next delivers it."""

import os
import subprocess
import sys

from noisescale.transport.left_behind import open_stream, stream_folders
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
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NOISESCALE_")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:.*fork.*:DeprecationWarning", "-c", LOG + code],
        env={**clean, "NOISESCALE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
        stdout=output,
        stderr=output,
        text=True,
        timeout=60,
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


def test_a_process_killed_right_after_a_call_has_lost_nothing(tmp_path):
    process = python("os.kill(os.getpid(), 9)", tmp_path)

    assert process.returncode == -9
    assert steps_on_disk(tmp_path) == [([*range(20)], [], set())]


def test_a_process_that_leaves_by_os_exit_has_lost_nothing(tmp_path):
    process = python("os._exit(3)", tmp_path)

    assert process.returncode == 3
    assert steps_on_disk(tmp_path) == [([*range(20)], [], set())]


def test_a_process_that_ends_undelivered_says_how_to_deliver(tmp_path):
    process = python("", tmp_path)

    [folder] = stream_folders(tmp_path)
    assert f"noisescale sync {folder.path}" in process.stderr
    assert steps_on_disk(tmp_path) == [([*range(20)], ["finished"], set())]


def test_a_child_that_logs_has_a_stream_of_its_own_and_a_silent_one_leaves_nothing(tmp_path):
    code = (
        "for child in range(3):\n"
        "    if os.fork() == 0:\n"
        "        if child: log(100 * child, 100 * child + 1)\n"
        "        os._exit(0)\n"
        "for _ in range(3): os.wait()\n"
        "log(20)\n"
        "os._exit(0)\n"
    )

    process = python(code, tmp_path)

    assert process.returncode == 0, process.stderr
    assert steps_on_disk(tmp_path) == [([*range(21)], [], set()), ([100, 101], [], set()), ([200, 201], [], set())]


def test_a_child_of_a_thread_that_was_logging_does_not_hang(tmp_path):
    code = (
        "import threading\n"
        "is_done = False\n"
        "def busy():\n"
        "    while not is_done: log(7)\n"
        "thread = threading.Thread(target=busy); thread.start()\n"
        "for child in range(20):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        log(1000 + child); os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
        "is_done = True; thread.join(); os._exit(0)\n"
    )

    process = python(code, tmp_path)

    assert process.returncode == 0, process.stderr
    assert [steps for steps, _, _ in steps_on_disk(tmp_path)][1:] == [[1000 + child] for child in range(20)]


def test_a_child_does_not_keep_the_parents_lock(tmp_path):
    code = (
        "child = os.fork()\n"
        "if child == 0:\n"
        "    import signal; signal.alarm(30); signal.pause()\n"
        "open(os.environ['NOISESCALE_DIR'] + '/child', 'w').write(str(child))\n"
        "os._exit(0)\n"
    )

    python(code, tmp_path, output=subprocess.DEVNULL)

    child = int((tmp_path / "child").read_text())
    [folder] = stream_folders(tmp_path)
    is_alive = os.path.exists(f"/proc/{child}/fd")
    is_free = folder.try_lock()
    os.kill(child, 9)
    assert is_alive
    assert is_free


def test_a_program_that_is_started_instead_holds_nothing(tmp_path):
    process = python(
        "os.execv(sys.executable, [sys.executable, '-c', 'import os; print(os.listdir(\"/proc/self/fd\"))'])", tmp_path
    )

    assert len(process.stdout.split(",")) <= 4
    assert steps_on_disk(tmp_path) == [([*range(20)], [], set())]
