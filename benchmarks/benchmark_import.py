"""What `import noisescale` costs a training job, and what `pip install ./client` brings into an empty environment."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import percentile
from results_file import Figure, write
from smoke import size

CLIENT = Path(__file__).parents[1] / "client"
ROUNDS = size(30, 1)


def seconds_of(code: str) -> float:
    """Seconds of a whole interpreter that runs the code."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def cpu_seconds_of(code: str) -> float:
    """CPU seconds of a whole interpreter that runs the code."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def cpu_of_init() -> Figure:
    """CPU time of a disabled run against a bare interpreter's, A-B-B-A."""
    code = "import noisescale; noisescale.init(mode='disabled')"
    bare, with_init = [], []
    for _ in range(ROUNDS):
        bare.append(cpu_seconds_of("pass"))
        with_init += [cpu_seconds_of(code), cpu_seconds_of(code)]
        bare.append(cpu_seconds_of("pass"))
    extra = percentile(with_init, 0.5) - percentile(bare, 0.5)
    return Figure('init(mode="disabled"), CPU beyond the bare interpreter, median', 1e3 * extra, "ms", "at most 120")


def import_time() -> list[Figure]:
    """The interpreter with and without the import, in turn, so that a change of the machine's speed hits both."""
    bare, with_import = [], []
    for _ in range(ROUNDS):
        bare.append(seconds_of("pass"))
        with_import.append(seconds_of("import noisescale"))
        with_import.append(seconds_of("import noisescale"))
        bare.append(seconds_of("pass"))
    extra = percentile(with_import, 0.5) - percentile(bare, 0.5)
    return [Figure("import noisescale, beyond the bare interpreter, median", 1e3 * extra, "ms", "at most 150")]


def installed_packages() -> list[str]:
    """Names that `pip install ./client` puts into an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check"]
        before = names(pip)
        subprocess.run([*pip, "install", "--quiet", str(CLIENT)], check=True)
        return sorted(names(pip) - before)


def names(pip: list[str]) -> set[str]:
    """Names of what is installed."""
    listing = subprocess.run([*pip, "list", "--format=freeze"], check=True, capture_output=True, text=True).stdout
    return {line.partition("==")[0] for line in listing.splitlines() if line}


def main() -> None:
    """Entry point."""
    packages = installed_packages()
    found = Figure(
        f"packages of pip install ./client: {' '.join(packages)}", len(packages), "packages", "httpx, its needs"
    )
    write("import", [*import_time(), cpu_of_init(), found])


if __name__ == "__main__":
    main()
