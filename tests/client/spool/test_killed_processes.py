"""Whole processes that die: what they logged is on disk, and whoever comes next delivers it."""

import os
import subprocess

import pytest

from noisescale.transport.upload.left_behind import stream_folders
from whole_processes import python, steps_on_disk

pytestmark = pytest.mark.processes


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
        "is_running, runs = os.pipe()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    import signal; signal.alarm(30); os.write(runs, b'.'); signal.pause()\n"
        "os.read(is_running, 1)\n"  # a child lets go once it runs, which may be after its parent's end
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
