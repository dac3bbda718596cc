"""One cluster for all, folders that Postgres may enter when we are root, and owners in processes of their own."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest

from noisescale_server.embedded import EmbeddedPostgres, socket_folder

OWNER_SCRIPT = Path(__file__).parent / "owner.py"


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("needs root")


@dataclass
class Owner:
    """A process that owns a Postgres and writes rows."""

    process: subprocess.Popen[str]
    postmaster: psutil.Process
    url: str
    uid: int

    def acknowledged(self, num_rows: int) -> int:
        """The last number said to be committed, after so many more of them."""
        return [self._next_number() for _ in range(num_rows)][-1]

    def kill(self) -> int:
        """kill -9; the last number acknowledged that was not read before, or 0."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout.closed:
            return 0
        with self.process.stdout:
            said = [line for line in self.process.stdout if line.endswith("\n")]
        return int(said[-1]) if said else 0

    def kill_postmaster(self) -> None:
        """kill -9 of Postgres itself."""
        self.postmaster.kill()

    def socket_folder(self) -> Path:
        """Where Postgres listens."""
        return Path(parse_qs(urlsplit(self.url).query)["host"][0])

    def _next_number(self) -> int:
        return int(self.process.stdout.readline())


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """An empty folder; pytest's own tmp_path is closed to the user that Postgres runs as when we are root."""
    folder = Path(tempfile.mkdtemp(prefix="noisescale test ", dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def data_dir() -> Iterator[Path]:
    """One durable cluster for all of these tests: each finds it stopped and leaves it so.

    An earlier first start was killed in the middle of making it.
    """
    parent = Path(tempfile.mkdtemp(prefix="noisescale-test-", dir="/tmp"))
    parent.chmod(0o711)
    (parent / "data" / "cluster-unfinished-abc").mkdir(parents=True)
    (parent / "data" / "cluster-unfinished-abc" / "PG_VERSION").write_text("18\n")
    (parent / "data").chmod(0o711)
    with EmbeddedPostgres(parent / "data"):
        pass
    yield parent / "data"
    shutil.rmtree(parent)


@pytest.fixture
def start_owner() -> Iterator[Callable[..., Owner]]:
    """Start owners; what is left of them and of their Postgres ends with the test."""
    owners: list[Owner] = []

    def start(data_dir: Path, *, prefix: str = "") -> Owner:
        command = [*prefix.split(), sys.executable, str(OWNER_SCRIPT), str(data_dir)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        hello = json.loads(process.stdout.readline())
        owners.append(Owner(process, psutil.Process(hello["postmaster"]), hello["url"], hello["uid"]))
        return owners[-1]

    yield start

    for owner in owners:
        owner.kill()
        assert wait_until_gone(owner.postmaster)
        socket_folder.remove(owner.socket_folder())


def wait_until_gone(process: psutil.Process, seconds: float = 10) -> bool:
    """Whether the process ended in time."""
    try:
        process.wait(timeout=seconds)
    except psutil.TimeoutExpired:
        return False
    return True
