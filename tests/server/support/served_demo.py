"""A served dashboard that is full: the demo's data are loaded as a reader would load them."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from noisescale.commands import main
from noisescale_dashboard.app import mount
from served_app import TOKEN, served_app

WAITING_RUNS = re.compile(r"^noisescale_waiting_runs\{.*\} (\S+)$", re.MULTILINE)
LONGEST_WAIT = 120.0


@contextmanager
def served_demo(database_url: str, state: Path) -> Iterator[str]:
    """The address of a server with dashboard and the demo's data.

    Args:
        database_url: An empty database.
        state: Folder for what the command keeps.
    """
    with served_app(database_url, extend=mount) as address:
        load_demo(address, state)
        _wait_until_decided(address)
        yield address


def load_demo(address: str, state: Path) -> None:
    """Load the demo's data into a server.

    Args:
        address: Of the server.
        state: Folder for what the command keeps.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOISESCALE_URL", address)
        patch.setenv("NOISESCALE_API_KEY", TOKEN)
        patch.setenv("NOISESCALE_DIR", str(state))
        assert main(["demo", "--data"]) == 0


def _wait_until_decided(address: str) -> None:
    """Wait for what the server does by itself after data have come, which lists of runs are filtered by."""
    deadline = time.monotonic() + LONGEST_WAIT
    with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http:
        while True:
            found = WAITING_RUNS.findall(http.get("/metrics").raise_for_status().text)
            assert found, "the server no longer says which runs wait"
            if not any(float(number) for number in found):
                return
            assert time.monotonic() < deadline, f"runs still wait for what is decided of them: {found}"
            time.sleep(0.1)
