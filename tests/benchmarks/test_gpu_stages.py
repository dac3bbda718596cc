"""The stages for a machine with a GPU: what each runs, and what is said where there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from benchmarks.gpu import run_all, steps
from benchmarks.gpu.steps import Item
from benchmarks.kernels import items
from benchmarks.step_overhead.modes import Mode

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


def call(monkeypatch, ends, *arguments):
    """What run_all says and exits with where the device and its scripts are played; and how scripts were called."""
    commands = []

    def play(command, **options):
        commands.append([Path(command[1]).name, *command[2:]])
        end = ends.get(commands[-1][0], 0)
        if end == "too long":
            raise subprocess.TimeoutExpired(command, options["timeout"])
        return subprocess.CompletedProcess(command, end)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(run_all.subprocess, "run", play)
    monkeypatch.setattr(run_all, "write_table", lambda part, device: None)
    monkeypatch.setattr(sys, "argv", ["run_all.py", *arguments])
    with pytest.raises(SystemExit) as ended:
        run_all.main()
    return commands, ended.value.code


def test_each_script_gets_its_share_of_the_time_and_is_told_whether_to_measure_again(monkeypatch):
    once, code = call(monkeypatch, {}, "--stages", "kernels,tuning", "--minutes", "5")
    again, _ = call(monkeypatch, {}, "--stages", "tuning", "--again")
    dry, _ = call(monkeypatch, {}, "--stages", "tuning", "--dry-run")

    assert code == 0
    assert once == [
        ["benchmark_kernels.py", "--seconds", "180"],
        ["outer_products.py", "--seconds", "120"],
        ["tuning.py", "--seconds", "300"],
    ]
    assert again == [["tuning.py", "--seconds", "480", "--again"]]
    assert dry == [["tuning.py", "--smoke"]]


def test_a_script_that_is_cut_off_or_fails_costs_no_other_and_is_told_at_the_end(monkeypatch, capsys):
    ends = {"correctness.py": 1, "steps.py": items.IS_LEFT, "outer_products.py": "too long"}

    commands, code = call(monkeypatch, ends)

    said = [line.partition(", 0 s")[0] for line in capsys.readouterr().out.splitlines()]
    assert len(commands) == 6
    assert code == 1
    assert said == [
        "gpu/correctness.py: failed with 1",
        "kernels/benchmark_kernels.py: done",
        "gpu/outer_products.py: ended after its time, call again to go on",
        "gpu/steps.py: cut off, call again to go on",
        "gpu/tuning.py: done",
        "gpu/language_model.py: done",
    ]


def test_a_table_is_markdown_with_what_is_the_same_in_all_rows_above_it(tmp_path, monkeypatch):
    monkeypatch.setattr(run_all, "RESULTS", tmp_path)
    path = tmp_path / "gpu_tuning-cpu.csv"
    path.write_text("operation,ms,device,commit\na|b,0.5,CPU,abc\nc,0.7,CPU,def\n")

    run_all.write_table(run_all.Part("gpu/tuning.py", "gpu_tuning"), CPU)

    assert path.with_suffix(".md").read_text().splitlines()[2:] == [
        "device: CPU",
        "",
        "| operation | ms | commit |",
        "|---|---|---|",
        "| a·b | 0.5 | abc |",
        "| c | 0.7 | def |",
    ]


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.timeout(900)
def test_a_dry_run_runs_every_stage_on_any_machine_and_writes_no_result(tmp_path):
    before = {path.name: path.stat().st_mtime for path in run_all.RESULTS.iterdir()}
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": "", "NOISESCALE_DIR": str(tmp_path)}
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu" / "run_all.py"), "--dry-run"]

    finished = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=hidden)

    assert finished.returncode == 0, finished.stdout[-2000:] + finished.stderr[-4000:]
    said = finished.stdout.splitlines()[-6:]
    assert [line.partition(",")[0] for line in said] == [
        f"{part.script}: done" for parts in run_all.STAGES.values() for part in parts
    ]
    assert {path.name: path.stat().st_mtime for path in run_all.RESULTS.iterdir()} == before


def test_every_way_to_train_that_was_asked_for_is_among_the_steps():
    ways = {(item.model, item.tokens, item.compiled, item.sharded, item.mode.name) for item in steps.ITEMS}

    for model in ("GPT-2 small", "Llama 1.3e9"):
        assert {tokens for of, tokens, *_ in ways if of == model} == {2048, 8192, 16384}
        assert {compiled for of, _, compiled, *_ in ways if of == model} >= {"", "reduce-overhead"}
    assert ("GPT-2 small", 2048, "", True, "per layer") in ways
    assert {name for *_, name in ways} >= {"per layer", "total", "accumulate", "overhead=0.01", "per example"}


def test_a_dry_run_fails_where_a_way_to_train_does_not_run(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["steps.py", "--tiny"])
    broken = Item("GPT-2 small", 2048, Mode("later", {"not_yet": "x"}))

    with pytest.raises(SystemExit, match="1 of 1 do not run"):
        steps.main([broken])

    assert "watch() knows no not_yet=" in capsys.readouterr().out
