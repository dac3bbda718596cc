"""Wheels and sdists of all distributions, built twice and compared byte by byte, with their hashes."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DISTRIBUTIONS = ("client", "lab", "importers", "server", "dashboard")
DOCUMENTATION = Path("server/src/noisescale_server/documentation")
"""What `noisescale up` serves under /docs/; git does not keep it."""
SUMS = "SHA256SUMS"


class NotTheSame(Exception):
    """Two builds of one source differ."""


def build(target: Path, source: Path = ROOT) -> dict[str, str]:
    """SHA-256 by file name of what lies in the folder then: an sdist and a wheel of each distribution.

    Each wheel is built from its sdist, and a second time from the checkout: both have to be the same file, so an sdist
    lacks nothing and a build depends on the sources alone. The documentation, which the server's hold, is built anew
    before each.

    Args:
        target: Folder to write; what is there is removed.
        source: A checkout.

    Raises:
        NotTheSame: If a second build gives other files.
        CalledProcessError: If a distribution cannot be built.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as second:
        for folder, parts in ((target, ()), (Path(second), ("--sdist", "--wheel"))):
            write_documentation(source)
            for distribution in DISTRIBUTIONS:
                if (source / distribution / "pyproject.toml").is_file():
                    _run_build(source / distribution, folder, *parts)
        first, again = hashes(target), hashes(Path(second))
    if first != again:
        different = sorted(name for name in first.keys() | again.keys() if first.get(name) != again.get(name))
        raise NotTheSame(f"built twice from the same sources, these files differ: {', '.join(different)}")
    return first


def write_documentation(source: Path) -> None:
    """Build the documentation into the server's sources, from nothing: what an earlier build left there is removed.

    Args:
        source: A checkout; one without pages is left as it is.

    Raises:
        CalledProcessError: If a page gives a warning.
    """
    if not (source / "docs" / "conf.py").is_file():
        return
    shutil.rmtree(source / DOCUMENTATION, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--fresh-env", "--builder", "dirhtml"]
    with tempfile.TemporaryDirectory() as doctrees:
        _run([*command, "--doctree-dir", doctrees, str(source / "docs"), str(source / DOCUMENTATION)], source)


def wheels_of(source: Path, target: Path) -> list[Path]:
    """The wheels of a checkout of any age, in a folder.

    Args:
        source: The checkout.
        target: Folder to write.
    """
    for distribution in DISTRIBUTIONS:
        if (source / distribution / "pyproject.toml").is_file():
            _run_build(source / distribution, target, "--wheel")
    return sorted(target.glob("*.whl"))


def _run_build(folder: Path, target: Path, *parts: str) -> None:
    _run([sys.executable, "-m", "build", "--no-isolation", *parts, "--outdir", str(target), str(folder)], folder)


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, env=os.environ | epoch(folder), capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        done.check_returncode()


def epoch(source: Path) -> Mapping[str, str]:
    """The time that the files of an archive carry: that of the commit, unless SOURCE_DATE_EPOCH says another one."""
    said = os.environ.get("SOURCE_DATE_EPOCH")
    if said is None:
        command = ["git", "log", "-1", "--format=%ct"]
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
        said = done.stdout.strip()
    return {"SOURCE_DATE_EPOCH": said} if said else {}


def hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of the archives in a folder, by name."""
    archives = sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in archives}


def write_sums(folder: Path) -> None:
    """Write `SHA256SUMS`, which `sha256sum --check` reads, of every file in the folder."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / SUMS).write_text("".join(lines))
