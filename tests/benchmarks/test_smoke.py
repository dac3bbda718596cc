"""Every benchmark still runs, in its smoke form, at sizes that say nothing: 20 s each at most, on two idle cores."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RESULTS = BENCHMARKS / "results"
LONG = ("torture.py", "fuzz_api.py", "load_10k_runs.py")
SCRIPTS = sorted([*BENCHMARKS.rglob("benchmark_*.py"), *(BENCHMARKS / name for name in LONG)])
"""Found by their names: a new one cannot be forgotten."""

CLIFF_SECONDS = 60.0
"""Three times what is asked for: a busy machine passes, a benchmark that has lost its smoke form does not."""

pytestmark = [pytest.mark.slow, pytest.mark.processes]


def state_of_results() -> dict[str, float]:
    return {path.name: path.stat().st_mtime for path in RESULTS.iterdir()}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_runs_in_its_smoke_form_and_writes_no_result(script, tmp_path):
    before = state_of_results()
    command = [sys.executable, str(script), "--smoke"]

    finished = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=CLIFF_SECONDS,
        env=os.environ | {"NOISESCALE_DIR": str(tmp_path)},
    )

    assert finished.returncode == 0, finished.stdout[-2000:] + finished.stderr[-4000:]
    assert state_of_results() == before
