"""A real server process, as `noisescale serve` starts it, on a database of its own."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app_in_process import LOCAL_TOKEN
from served_app import wait_until_ready
from served_demo import served_demo


@pytest.fixture(scope="session")
def live_server(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server process with the dashboard, for all files: each has projects of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {
        "NOISESCALE_DATABASE_URL": new_database(),
        "NOISESCALE_ALLOW_UNSAFE_DATABASE": "true",
        "NOISESCALE_LOCAL_TOKEN": LOCAL_TOKEN,
        "NOISESCALE_PORT": str(port),
        "NOISESCALE_DIR": str(tmp_path_factory.mktemp("state")),
    }
    process = subprocess.Popen([str(Path(sys.executable).with_name("noisescale")), "serve"], env=environment)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_ready(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.fixture(scope="session")
def demo_url(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with dashboard and the demo's data, for files that only look at it."""
    with served_demo(new_database(), tmp_path_factory.mktemp("state")) as address:
        yield address


@pytest.fixture(autouse=True)
def client_environment(live_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK of the test finds this server and nothing of the user's."""
    monkeypatch.setenv("NOISESCALE_URL", live_server)
    monkeypatch.setenv("NOISESCALE_API_KEY", LOCAL_TOKEN)
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path))
    monkeypatch.setenv("NOISESCALE_GROUP_SECONDS", "0")
