"""The stages for a machine with a GPU: what each runs, and what is said where there is none."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from benchmarks.gpu import run_all

ROOT = Path(__file__).parents[2]
CPU = torch.device("cpu")


def test_each_stage_runs_scripts_that_are_there():
    scripts = [ROOT / "benchmarks" / part.script for parts in run_all.STAGES.values() for part in parts]

    assert list(run_all.STAGES) == ["correctness", "kernels", "steps", "tuning", "language_model"]
    assert all(script.exists() for script in scripts)
    assert all(abs(sum(part.share for part in parts) - 1) < 1e-9 for parts in run_all.STAGES.values())


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--stages", "kernels,speed"], "--stages has speed: there are correctness"),
        ([], "there is no CUDA device here: --dry-run"),
    ],
)
def test_what_cannot_be_run_is_refused_with_the_way_out(arguments, said):
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu" / "run_all.py"), *arguments]

    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=hidden)

    assert finished.returncode == 2
    assert said in finished.stderr


def test_a_stage_that_this_very_code_has_measured_is_left_out_and_its_table_is_markdown(tmp_path, monkeypatch):
    monkeypatch.setattr(run_all, "RESULTS", tmp_path)
    part = run_all.Part("gpu/tuning.py", "gpu_tuning")
    path = tmp_path / "gpu_tuning-cpu.csv"
    assert not run_all.is_done(part, CPU)

    def write(code):
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, ["operation", "ms", "commit", "code"])
            table.writeheader()
            table.writerow({"operation": "a|b", "ms": "0.5", "commit": "abc", "code": code})

    write("older")
    assert not run_all.is_done(part, CPU)
    write(run_all.fingerprint("gpu_tuning-cpu"))
    assert run_all.is_done(part, CPU)
    run_all.write_table(part, CPU)

    assert path.with_suffix(".md").read_text().splitlines()[-3:] == ["| operation | ms |", "|---|---|", "| a·b | 0.5 |"]
