"""Jobs of many processes: each that logs has a stream of its own, and every record of each is there once."""

import subprocess
import time
from pathlib import Path

import pytest

from noisescale.transport.upload.left_behind import stream_folders
from whole_processes import python, run, steps_on_disk

pytestmark = pytest.mark.processes

RUN_ID = "7d1f0c9e-2222-4333-8444-555566667777"

SCRIPT = """
import os, sys
import noisescale

def log(*steps):
    for step in steps:
        noisescale.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=3.0, big_sq_norm=1.0, step=step)
"""

MULTIPROCESSING = """
import multiprocessing

def work(number):
    log(*range(100 * number, 100 * number + 10))

if __name__ == "__main__":
    log(*range(10))
    context = multiprocessing.get_context(sys.argv[1])
    children = [context.Process(target=work, args=(number,)) for number in (1, 2, 3)]
    for child in children: child.start()
    for child in children: child.join()
    log(10)
    print([child.exitcode for child in children])
"""

TORCHRUN = """
rank = int(os.environ["RANK"])
log(*range(100 * rank, 100 * rank + 10))
"""

DATA_LOADER = """
import torch

class Examples(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index >= int(sys.argv[1]):
            log(100 + index)
        return index

log(*range(10))
assert sorted(int(i) for batch in torch.utils.data.DataLoader(Examples(), num_workers=2) for i in batch) == [*range(8)]
log(10)
"""


def script(tmp_path: Path, code: str) -> str:
    path = tmp_path / "job.py"
    path.write_text(SCRIPT + code)
    return str(path)


def steps(tmp_path: Path) -> list[int]:
    """Of all streams, in order."""
    return sorted(step for found, _, lost in steps_on_disk(tmp_path / "state") for step in found)


def test_children_of_multiprocessing_have_streams_of_their_own_in_the_same_run(tmp_path: Path) -> None:
    for method in ("fork", "spawn", "forkserver"):
        folder = tmp_path / method
        folder.mkdir()
        process = run([script(folder, MULTIPROCESSING), method], folder / "state", NOISESCALE_RUN_ID=RUN_ID)

        assert process.stdout == "[0, 0, 0]\n", process.stderr
        own = [[*range(11)], *([*range(100 * number, 100 * number + 10)] for number in (1, 2, 3))]
        assert sorted(found for found, _, _ in steps_on_disk(folder / "state")) == own
        assert {path.path.parent.name for path in stream_folders(folder / "state")} == {RUN_ID}


def test_a_daemon_that_closes_every_descriptor_loses_nothing_and_writes_nowhere_else(tmp_path: Path) -> None:
    """What it opens next has the number that the file of the records had."""
    code = (
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "log(100)\n"
        "os.closerange(3, 4096)\n"
        "state = os.environ['NOISESCALE_DIR']\n"
        "mine = [open(f'{state}/{n}', 'wb', buffering=0) for n in range(int(sys.argv[1]))]\n"
        "log(*range(101, 120))\n"
        "open(f'{state}/done', 'w').close()\n"
        "os._exit(0)\n"
    )
    for number in ("0", "12"):
        folder = tmp_path / number
        folder.mkdir()
        # a slow write would hand the next ones to a thread, which _exit does not wait for
        given = {"output": subprocess.DEVNULL, "NOISESCALE_DURABILITY": "direct"}
        run([script(folder, "log(*range(20))\n" + code), number], folder / "state", **given)
        wait_for(folder / "state" / "done")

        assert [found for found, _, _ in steps_on_disk(folder / "state")] == [[*range(20)], [*range(100, 120)]]
        assert [(folder / "state" / str(n)).read_bytes() for n in range(int(number))] == [b""] * int(number)


@pytest.mark.slow
def test_four_ranks_of_torchrun_share_a_run(tmp_path: Path) -> None:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4"]

    process = run([*launcher, script(tmp_path, TORCHRUN)], tmp_path / "state", NOISESCALE_RUN_ID=RUN_ID)

    assert process.returncode == 0, process.stderr
    own = [[*range(100 * rank, 100 * rank + 10)] for rank in range(4)]
    assert sorted(found for found, _, _ in steps_on_disk(tmp_path / "state")) == own
    assert {folder.path.parent.name for folder in stream_folders(tmp_path / "state")} == {RUN_ID}


@pytest.mark.slow
@pytest.mark.parametrize(("first_logged", "num_streams"), [(8, 1), (0, 3)], ids=["silent workers", "workers that log"])
def test_workers_of_a_data_loader(tmp_path: Path, first_logged: int, num_streams: int) -> None:
    process = run([script(tmp_path, DATA_LOADER), str(first_logged)], tmp_path / "state")

    assert process.returncode == 0, process.stderr
    assert steps(tmp_path) == [*range(11), *range(100 + first_logged, 108)]
    assert len([*stream_folders(tmp_path / "state")]) == num_streams


def test_a_child_that_starts_another_program_hands_it_nothing(tmp_path: Path) -> None:
    code = "import subprocess\nprint(subprocess.check_output(['ls', '/proc/self/fd'], text=True).split())"

    process = python(code, tmp_path)

    assert len(process.stdout.split(",")) <= 4, process.stdout


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
