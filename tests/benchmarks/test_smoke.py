"""Every benchmark still runs, in its smoke form, at sizes that say nothing: 20 s each at most, on two idle cores."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RESULTS = BENCHMARKS / "results"
LONG = ("torture.py", "fuzz_api.py", "load_10k_runs.py", "foreign_answers.py", "mutants.py")
OF_A_GPU = ("correctness.py", "outer_products.py", "steps.py", "tuning.py", "language_model.py")
SCRIPTS = sorted(
    [
        *BENCHMARKS.rglob("benchmark_*.py"),
        *(BENCHMARKS / name for name in LONG),
        *(BENCHMARKS / "gpu" / name for name in OF_A_GPU),
    ]
)
"""Found by their names: a new one cannot be forgotten."""

CLIFF_SECONDS = 200.0
"""Of a machine that does nothing else: ten times what is asked for, and beyond it the smoke form is lost."""

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(900)]


def state_of_results() -> dict[str, float]:
    return {path.name: path.stat().st_mtime for path in RESULTS.iterdir()}


def processes_a_core() -> float:
    """How many share each core of this machine now, one at least."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_runs_in_its_smoke_form_and_writes_no_result(script, tmp_path):
    before = state_of_results()
    command = [sys.executable, str(script), "--smoke"]

    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"NOISESCALE_DIR": str(tmp_path)},
        start_new_session=True,
    )
    try:
        said, complained = process.communicate(timeout=CLIFF_SECONDS * processes_a_core())
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)  # the servers that it has started, too, which end their Postgres
        process.communicate()  # pipes that stay open would fail whichever test comes when they are found
        raise

    assert process.returncode == 0, said[-2000:] + complained[-4000:]
    assert state_of_results() == before
