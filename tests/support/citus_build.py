"""Builds Citus from its public source beside a copy of a PostgreSQL, in a folder of its own: `make test-citus`.

A PostgreSQL finds its libraries and extensions by the place of its program, so a copy of one takes an extension that
the one of the machine never sees. Prints the folder with the programs.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

SOURCE: Final = "https://github.com/citusdata/citus.git"
TAG: Final = "v13.2.2"
OLDEST_POSTGRES: Final = 15
NEEDED: Final = ("git", "make", "gcc", "flex", "bison")
WRITTEN_BEFORE: Final = ("configure", "src/include/citus_config.h.in", "src/include/citus_version.h.in")
HEADERS: Final = {"zstd.h": "libzstd-dev", "gssapi/gssapi.h": "libkrb5-dev"}
"""What the headers of Debian's PostgreSQL include beside their own, and the packages that have it."""
# PostgreSQL has a function of this name since its releases of 2026, and Citus 13.2 defines one for PostgreSQL 15
RENAMED: Final = "have_createdb_privilege"


def main() -> None:
    """Build what is not there yet, and print where `postgres` is."""
    pg_config = os.environ.get("PG_CONFIG") or "pg_config"
    try:
        said = _facts(pg_config)
    except (FileNotFoundError, subprocess.CalledProcessError):
        sys.exit(
            f"test-citus: {pg_config} does not run. Install PostgreSQL {OLDEST_POSTGRES} or newer with its headers "
            "(Debian: postgresql-15 and postgresql-server-dev-15), and name its pg_config in PG_CONFIG"
        )
    version = int(re.findall(r"\d+", said["VERSION"])[0])
    if version < OLDEST_POSTGRES:
        sys.exit(f"test-citus: {said['VERSION']} is too old: Citus 13 wants {OLDEST_POSTGRES} or newer; see PG_CONFIG")
    tag = os.environ.get("CITUS_TAG") or TAG
    usual = Path(tempfile.gettempdir()) / f"noisescale-citus-{tag}-pg{version}"
    prefix = Path(os.environ.get("CITUS_PREFIX") or usual)
    programs = prefix / said["BINDIR"].lstrip("/")
    if not (prefix / "complete").exists():
        _build(prefix, said, pg_config, tag)
    print(programs)


def _facts(pg_config: str) -> dict[str, str]:
    printed = subprocess.run([pg_config], capture_output=True, text=True, check=True).stdout
    return dict(line.split(" = ", 1) for line in printed.splitlines() if " = " in line)


def _build(prefix: Path, said: Mapping[str, str], pg_config: str, tag: str) -> None:
    missing = [program for program in NEEDED if shutil.which(program) is None]
    if missing:
        sys.exit(f"test-citus: building Citus wants {', '.join(missing)}: install them and run again")
    lacking = [f"{file} (Debian: {package})" for file, package in HEADERS.items() if not _is_found(file)]
    if lacking:
        sys.exit(f"test-citus: building Citus wants the headers {', '.join(lacking)}: install them and run again")
    source = os.environ.get("CITUS_SOURCE") or SOURCE
    shutil.rmtree(prefix, ignore_errors=True)
    prefix.mkdir(parents=True)
    prefix.chmod(0o755)
    tree = prefix / "source"
    _run("git", "clone", "--quiet", "--depth", "1", "--branch", tag, _as_address(source), str(tree))
    _rename_what_postgres_has(tree, Path(said["INCLUDEDIR-SERVER"]))
    # git writes files in any order: make would take what is newer than `configure` for a reason to write it anew
    for name in WRITTEN_BEFORE:
        (tree / name).touch()
    environment = {**os.environ, "PG_CONFIG": pg_config}
    _run("./configure", "--without-libcurl", "--without-lz4", "--without-zstd", cwd=tree, environment=environment)
    _run("make", f"--jobs={os.cpu_count() or 1}", "extension", "with_llvm=no", "COPT=-g0", cwd=tree)
    _run("make", "install-extension", "with_llvm=no", f"DESTDIR={prefix}", cwd=tree)
    for name in ("BINDIR", "PKGLIBDIR", "SHAREDIR"):
        ignored = shutil.ignore_patterns("bitcode", "man", "doc", "locale")
        target = prefix / said[name].lstrip("/")
        shutil.copytree(said[name], target, ignore=ignored, dirs_exist_ok=True)
    shutil.rmtree(tree)
    (prefix / "complete").touch()


def _is_found(header: str) -> bool:
    said = subprocess.run(
        ["gcc", "-E", "-x", "c", "-"], input=f"#include <{header}>\n", capture_output=True, text=True, check=False
    )
    return said.returncode == 0


def _as_address(source: str) -> str:
    """A folder as git takes it for a shallow copy."""
    return Path(source).absolute().as_uri() if Path(source).is_dir() else source


def _rename_what_postgres_has(tree: Path, headers: Path) -> None:
    if RENAMED not in (headers / "commands" / "dbcommands.h").read_text(encoding="utf-8"):
        return
    file = tree / "src" / "include" / "pg_version_compat.h"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(f"\n{RENAMED}(void)\n", f"\ncitus_{RENAMED}(void)\n"), encoding="utf-8")


def _run(*command: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(
            f"test-citus: {' '.join(command)} ended with {done.returncode}:\n{(done.stderr or done.stdout)[-3000:]}"
        )


if __name__ == "__main__":
    main()
