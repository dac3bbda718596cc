"""An empty environment outside of the checkout with what was built, and a stranger's first minutes in it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from archives import ROOT

LOCK = ROOT / "locks" / "image.txt"
START_SECONDS = 120.0

LOGS_A_RUN = """
import noisescale
with noisescale.init(project="release", task="norms", name="first run", unit="images", planned_steps=400) as run:
    for step in range(200):
        small = 3.0 + 0.3 * (step * 7 % 5 - 2)
        run.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=small, big_sq_norm=1.2, loss=2 / (1 + step))
print(run.id)
"""
"""(3 − 1.2) / (1/8 − 1/64) = 16.46 of noise over 1.2 − 16.46/64 = 0.943 of gradient: a noise scale of 17.45 images."""

NOISE_SCALE = 17.45

ROWS = """
import asyncio, json, sys
import asyncpg
from pathlib import Path
from noisescale_server.embedded import EmbeddedPostgres

async def rows(url):
    connection = await asyncpg.connect(url)
    tables = await connection.fetch(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
    )
    return {
        name: [row[0] for row in await connection.fetch(f'SELECT to_jsonb(one)::text FROM "{name}" AS one')]
        for (name,) in tables
    }

with EmbeddedPostgres(Path(sys.argv[1]) / "postgres") as postgres:
    print(json.dumps(asyncio.run(rows(postgres.url(driver="postgresql")))))
"""


class Environment:
    """An environment of its own, with nothing of the checkout on its path.

    Args:
        folder: Empty; holds the environment, the state of the client and the server's data.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "environment" / "bin"
        self.data = folder / "data"
        self._variables = {
            "PATH": f"{self.bin}:{os.defpath}",
            "HOME": str(folder),
            "NOISESCALE_DIR": str(folder / "state"),
            "NOISESCALE_DATA_DIR": str(self.data),
            **{name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ},
        }
        venv.create(folder / "environment", with_pip=True)

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.bin / "python"

    def install(self, wheels: Sequence[Path], *, is_older: bool = False) -> None:
        """Put our wheels in, in place of those that were there, with what the lock names; see that nothing is missing.

        Args:
            wheels: Ours.
            is_older: Of an older release, which may want what the lock does not name any more: that is fetched.

        Raises:
            CalledProcessError: If one wants what is not there.
        """
        # by its hashes, as the image does, and nothing beside them: the bill of materials lists what is there
        self._uv("sync", "--require-hashes", "--only-binary", ":all:", str(LOCK))
        self._uv("install", *(() if is_older else ("--no-index", "--no-deps")), *map(str, wheels))
        self.run("python", "-m", "pip", "check")

    def _uv(self, command: str, *arguments: str) -> None:
        # seconds where pip takes minutes; with the indexes of whoever builds: those are no part of what is tried
        uv = [str(Path(sys.executable).with_name("uv")), "pip", command, "--quiet", "--python", str(self.python)]
        subprocess.run([*uv, *arguments], check=True)

    def run(self, *command: str) -> str:
        """What a command of the environment prints; its errors are said where it fails.

        Raises:
            CalledProcessError: If it fails.
        """
        done = subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=self.folder, env=self._variables, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        if done.returncode:
            print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
            done.check_returncode()
        return done.stdout

    @contextmanager
    def up(self) -> Iterator[httpx.Client]:
        """`noisescale up` while the block runs, and a client of its REST API with the key of that start."""
        command = [str(self.bin / "noisescale"), "up", "--port", "0"]
        log = self.folder / "server.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self._variables, stdout=file, stderr=subprocess.STDOUT
            )
        try:
            url, token = _address(process, log)
            with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
                wait_until_ready(http, process, log)
                yield http
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(60)
        assert status == 0, f"noisescale up ended with {status}: {log.read_text()}"

    def rows(self) -> dict[str, list[str]]:
        """Every row of every table of the embedded database, as JSON; no server may be running."""
        found: dict[str, list[str]] = json.loads(self.run("python", "-c", ROWS, str(self.data)))
        return found


def _address(process: subprocess.Popen[bytes], log: Path) -> tuple[str, str]:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        said = re.search(r"open (\S+)/login\?token=(\S+)", log.read_text())
        if said:
            return said[1], said[2]
        time.sleep(0.1)
    raise AssertionError(f"noisescale up said no address: {log.read_text()}")


def wait_until_ready(http: httpx.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return once the server answers."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if http.get("/readyz").status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"the server is not ready: {log.read_text()}")


def first_minutes(environment: Environment) -> list[str]:
    """Start a server, log a run, ask what to do, read it back and fill the pages: a line for each with its seconds."""
    lines = []
    began = time.monotonic()

    def note(what: str) -> None:
        nonlocal began
        lines.append(f"{what}: {time.monotonic() - began:.1f} s")
        began = time.monotonic()

    with environment.up() as http:
        note("noisescale up")
        run_id = environment.run("python", "-c", LOGS_A_RUN).split()[-1]
        note("a run of 200 steps logged")
        advice = environment.run("noisescale", "recommend", run_id).strip().splitlines()[0]
        note(f"noisescale recommend: {advice!r}")
        stored = http.get(f"/api/v1/runs/{run_id}").raise_for_status().json()
        assert (stored["name"], stored["status"]) == ("first run", "finished"), stored
        assert abs(stored["noise_scale"]["value"] - NOISE_SCALE) < 1, stored["noise_scale"]
        assert "first run" in environment.run("noisescale", "runs")
        note("read back")
        environment.run("noisescale", "demo", "--data")
        note("noisescale demo --data")
        for page in ("/", "/runs", f"/runs/{run_id}", "/sweeps", "/openapi"):
            http.get(page).raise_for_status()
        note("pages")
    return lines
