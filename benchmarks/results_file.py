"""The one writer of results: each row with its commit, machine, load, date, command and the code that it measures."""

import csv
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

# also where this is imported as a part of the package; last, as torture.py has the name of a part of the tests
sys.path.append(str(Path(__file__).parent))
from measured_code import fingerprint
from smoke import IS_SMOKE

ROOT = Path(__file__).parents[1]
RESULTS = Path(os.environ.get("NOISESCALE_BENCHMARK_RESULTS") or Path(__file__).parent / "results")

COMMIT = os.environ.get("NOISESCALE_BENCHMARK_COMMIT", "")
"""Said where the tree lies without its history, as on a machine that is lent for its GPU; "" asks git."""

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number.

    Attributes:
        name: What was measured.
        value: The number.
        unit: Its unit.
        target: What the design asks for, as a sentence; empty if nothing.
    """

    name: str
    value: float
    unit: str
    target: str = ""


def write(what: str, figures: Sequence[Figure], *, command: str | None = None) -> None:
    """Print the figures and write them to results/<what>.csv; in the smoke form they are printed alone.

    Args:
        what: Name of the results.
        figures: What was measured.
        command: What a reader types to measure again; None: the file `benchmark_<what>.py` as it was called.
    """
    for figure in figures:
        print(f"{figure.name:<60} {figure.value:>14,.4g} {figure.unit:<10} {figure.target}")
    rows = [{"figure": one.name, "value": one.value, "unit": one.unit, "target": one.target} for one in figures]
    called = [f"python benchmarks/benchmark_{what}.py", *sys.argv[1:]]
    write_rows(what, rows, command=command or " ".join(called))


def write_rows(
    what: str, rows: Sequence[Row], *, command: str, about: Row | None = None, kept: Sequence[Row] = ()
) -> None:
    """Write rows of any columns to results/<what>.csv; in the smoke form nothing is written.

    Args:
        what: Name of the results.
        rows: What was measured; a column that a row lacks stays empty.
        command: What a reader types to measure again.
        about: Further columns that are the same in each row.
        kept: Rows of the file as it was that stay, each with where it came from.
    """
    if IS_SMOKE:
        return
    origin = {**(about or {}), **provenance(what, command)}
    whole = [*kept, *({**row, **origin} for row in rows)]
    columns = [name for name in dict.fromkeys(name for row in whole for name in row) if name not in origin]
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{what}.csv"
    half_written = path.with_suffix(".half")  # a process that is killed here must not take earlier rows with it
    with half_written.open("w", newline="") as file:
        table = csv.DictWriter(file, [*columns, *origin], restval="", lineterminator="\n")
        table.writeheader()
        table.writerows({name: _written(value) for name, value in row.items()} for row in whole)
    half_written.replace(path)


def read(what: str) -> list[dict[str, str]]:
    """The rows of a file of results.

    Args:
        what: Its name without ending.
    """
    with (RESULTS / f"{what}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


LOAD_AT_START = os.getloadavg()[0]
"""Processes that wanted a core in the minute before the benchmark began."""

SOURCES = (
    "client",
    "lab",
    "importers",
    "server",
    "dashboard",
    "migrations",
    "benchmarks",
    ":!benchmarks/results",
    ":!*.md",
)
"""Whose uncommitted changes are told by a + behind the commit."""


def provenance(what: str, command: str) -> dict[str, str]:
    """What stands beside every row: which code, on which machine, beside how much other work, when and how.

    Args:
        what: Name of the results.
        command: What a reader types to measure again.
    """
    return {
        "commit": COMMIT or _commit(),
        "machine": f"{os.cpu_count()} cores, {processor()}, {memory_gib():.0f} GiB, {platform.system()} "
        f"{platform.machine()}, Python {platform.python_version()}",
        "load": f"{LOAD_AT_START:.2f} before, {os.getloadavg()[0]:.2f} after",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": command,
        "code": fingerprint(what),
    }


def _commit() -> str:
    is_changed = _git("status", "--porcelain", "--", *SOURCES) != ""
    return _git("rev-parse", "--short", "HEAD") + ("+" if is_changed else "")


def processor() -> str:
    """The name of the processor, as Linux says it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown processor")


def memory_gib() -> float:
    """Memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _git(*arguments: str) -> str:
    found = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    return found.stdout.strip()


def _written(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value
