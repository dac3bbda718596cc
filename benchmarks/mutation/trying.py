"""Tries mutants out: each in a copy of the checkout, against the tests that are to see it."""

import contextlib
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from mutation import shared_postgres
from mutation.drawing import Mutant

SOURCES = ("client/src", "lab/src", "server/src", "dashboard/src")
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", "results", "*.egg-info", "images")
QUICK = "not slow and not gpu and not browser"
DOUBTED_SECONDS = 60.0
"""On a machine with other work a long session may fail by itself: what it has caught has to be caught once more."""
FIRST_FAILURE = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


_PRELOADED = multiprocessing.get_context("forkserver")
_PRELOADED.set_forkserver_preload(
    ["pytest", "fastapi", "sqlalchemy.ext.asyncio", "asyncpg", "alembic", "httpx", "uvicorn", "authlib", "hypothesis"]
)
"""What is nobody's code under test is imported once; half of the time of a short session goes there."""


def _test_session(folder: Path, environment: dict[str, str], arguments: Sequence[str], said: Path) -> None:
    """Run pytest in a process and a group of its own, as `python -m pytest` in the folder would."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [str(folder), *environment["PYTHONPATH"].split(os.pathsep)]
    with said.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.exit(pytest.main(list(arguments)))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant.

    Attributes:
        outcome: "caught", "caught by time", "survived", or "stillborn": it cannot even be imported.
        by: The test that failed first.
        seconds: Until then.
    """

    outcome: str
    by: str
    seconds: float


class Workshop:
    """A copy of the checkout, and who runs tests there.

    Args:
        root: The checkout; nothing is written there.
        folder: Where the copy goes.
        postgres: URL of the Postgres that the tests share.
        longest_seconds: Of the tests of one mutant.
    """

    def __init__(self, root: Path, folder: Path, *, postgres: str, longest_seconds: float) -> None:
        self._folder = folder
        self._longest_seconds = longest_seconds
        shutil.copytree(root, folder, ignore=LEFT_OUT, symlinks=True)
        paths = os.pathsep.join([*(str(folder / source) for source in SOURCES), str(root / "benchmarks")])
        own = {"PYTHONPATH": paths, "NOISESCALE_DIR": str(folder / "state"), shared_postgres.URL: postgres}
        self._environment = {**os.environ, **own}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def attempt(self, mutant: Mutant, tests: Sequence[str]) -> Verdict:
        """Plant one bug, run the tests up to the first that fails, and take the bug out again."""
        with self._planted(mutant):
            found = self.run(tests)
            # a test that fails has a name behind its file; a file that cannot be read may be due to what it imports
            if found.outcome == "caught" and "::" not in found.by and not self._can_be_imported(mutant.file):
                return Verdict("stillborn", "", found.seconds)
            if found.outcome == "caught" and found.seconds > DOUBTED_SECONDS and not self._fails_again(found):
                return self.run(tests)
            return found

    def _fails_again(self, found: Verdict) -> bool:
        return self.run([found.by]).outcome != "survived"

    def run(self, tests: Sequence[str], *, longest_seconds: float | None = None) -> Verdict:
        """The verdict of these tests over the copy as it is."""
        plugins = [f"-p{name}" for name in ("no:cacheprovider", "no:xdist", shared_postgres.__name__)]
        options = ["-x", "-q", "-rfE", "--tb=no", "--assert=plain", "-o", "timeout=60", *plugins]
        said = self._folder / "said.txt"
        arguments = (self._folder, self._environment, [*options, "-m", QUICK, *tests], said)
        start = time.monotonic()
        process = _PRELOADED.Process(target=_test_session, args=arguments)
        process.start()
        process.join(longest_seconds or self._longest_seconds)
        seconds = time.monotonic() - start
        if process.exitcode is None:
            assert process.pid is not None
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
            return Verdict("caught by time", "", seconds)
        if process.exitcode == 0:
            return Verdict("survived", "", seconds)
        lines = said.read_text(errors="replace")
        found = FIRST_FAILURE.search(lines)
        # pytest itself was ended where a test's own timeout could not be raised in it
        return Verdict("caught", found.group(1) if found else lines.strip()[-200:].replace("\n", " "), seconds)

    def _can_be_imported(self, file: str) -> bool:
        module = re.sub(r"^\w+/src/|\.py$|/__init__\.py$", "", file).replace("/", ".")
        command = [sys.executable, "-c", f"import {module}"]
        return not subprocess.run(command, cwd=self._folder, env=self._environment, capture_output=True).returncode

    @contextlib.contextmanager
    def _planted(self, mutant: Mutant) -> Iterator[None]:
        path = self._folder / mutant.file
        original = path.read_text()
        try:
            self._write(path, mutant.code(original))
            yield
        finally:
            self._write(path, original)

    @staticmethod
    def _write(path: Path, code: str) -> None:
        path.write_text(code)
        # of two mutants of one second and one length, the bytecode of the first would serve for both
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()
