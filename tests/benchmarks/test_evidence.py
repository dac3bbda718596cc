"""docs/evidence.md and README's figures: each stands in the file that it names, and says of which commit it is."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
RESULTS = sorted(path.stem for path in (ROOT / "benchmarks" / "results").glob("*.csv"))
LOST = "not in this repository"


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import tables

    return tables


@pytest.mark.slow
def test_a_speed_whose_code_has_changed_since_says_so(tables):
    stale = {row.results for row in tables.evidence.ROWS if not tables.is_fresh(row.results, tables.read(row.results))}
    lines = tables.evidence.page().partition("## Speed")[2].splitlines()

    assert sum(line.startswith("| ") for line in lines) > len(tables.evidence.ROWS) / 2
    for row in tables.evidence.ROWS:
        shown = [line for line in lines if line.startswith(f"| {row.what} |")]
        assert all(("changed since" in line) == (row.results in stale) for line in shown)


def case(name, misses="", error="1e-08"):
    return {"part": "sums of lists", "case": name, "misses": misses, "largest_error": "" if misses else error}


def test_a_case_that_broke_off_is_counted_and_named_and_one_that_was_not_run_is_no_failure(tables):
    figures = tables.evidence.gpu_figures
    rows = [case("fp32"), case("in graphs", "RuntimeError: overwritten"), case("huge", "cut off: no time left")]

    assert figures.right(rows) == "1 of 3 right; failed: *in graphs*; not run: *huge*"
    assert figures.right(rows[:1]) == "1 of 1 right"
    assert figures.tests([case("all", "not over after 30 s")]) == "not run: not over after 30 s"
    assert figures.tests([]) == "not run"


def test_every_case_that_a_gpu_has_failed_stands_in_the_evidence_by_its_name(tables):
    figures = tables.evidence.gpu_figures
    rows = [row for row in tables.read(figures.CORRECTNESS) if row["part"] not in figures.TESTS]
    lines = [line for line in figures.table() if line.startswith(("| cases of kernels", "| whole watched"))]

    failed = [row["case"] for row in rows if row["misses"] and not row["misses"].startswith(figures.NOT_RUN)]
    assert failed
    assert [name for name in failed if not any(f"*{name}*" in line for line in lines)] == []
    assert sum(int(re.search(r" of (\d+) right", line)[1]) for line in lines) == len(rows)


def test_a_row_of_a_gpu_whose_code_has_changed_since_says_so_and_others_do_not(tables, monkeypatch):
    figures = tables.evidence.gpu_figures
    rows = tables.read(figures.STEPS)
    monkeypatch.setattr(figures, "fingerprint", lambda name: rows[0]["code"])

    shown = [line for line in figures.table() if line.startswith("| step of")]

    assert [line.endswith("code changed since |") for line in shown] == [row["code"] != rows[0]["code"] for row in rows]
    assert {True, False} == {line.endswith("code changed since |") for line in shown}


HALF_WAY = "held-out tasks, constant rate, 50% of the plan, by progress: odds 80% to 90%"
WATCHED = "step watched / unwatched"
OURS = {
    "split": "held-out",
    "rate": "constant",
    "policy": "ours without restarts",
    "kind": "all",
    "noise_from": "examples",
}
ON_A_GPU = {"model": "GPT-2 small", "micro_batches": "8", "compiled": "eager", "mode": "per layer"}
LATER = {"tokens": "2048", "warm_up": "70"}
TRANSFORMER = {"target": "transformer, 400 steps", "estimator": "8 micro-batches"}
MOVING = {"target": "moving transformer, 200 steps", "estimator": "8 micro-batches"}


@pytest.mark.parametrize(
    ("said", "name", "where", "column", "scale"),
    [
        ("off by (6) % after 32 steps", "truth", TRANSFORMER, "rms_log_error", 100),
        ("by (20) % after 12 steps of a moving one", "truth", MOVING, "rms_log_error", 100),
        ("about (86) %", "odds", {"figure": f"{HALF_WAY}, said"}, "value", 1),
        ("about 86 %, (91) % were right", "odds", {"figure": f"{HALF_WAY}, came true"}, "value", 1),
        ("cost (0.51) × what they cost", "policies_ours", OURS, "relative", 1),
        ("over (3,000) injected faults", "torture", {"figure": "faults"}, "value", 1),
        (r"takes (1.01) × \(10 M", "capture", {"figure": f"10 M transformer: {WATCHED}"}, "value", 1),
        (r"to (1.07) × \(0.8 M", "capture", {"figure": f"0.8 M transformer: {WATCHED}"}, "value", 1),
        ("took (1.01) × as long", "gpu_steps-nvidia-h200", ON_A_GPU | {"tokens": "16384"}, "ratio", 1),
        ("tokens and (1.09) × with 2,048", "gpu_steps-nvidia-h200", ON_A_GPU | LATER, "ratio", 1),
        ("that of a tiny MLP (1.36) ×", "capture", {"figure": f"digits MLP: {WATCHED}"}, "value", 1),
    ],
)
def test_a_number_of_the_readme_is_that_of_its_file(tables, said, name, where, column, scale):
    printed = re.search(said, re.sub(r"\s+", " ", README))[1]

    [row] = [row for row in tables.read(name) if all(row[key] == value for key, value in where.items())]

    assert round(scale * float(row[column]), len(printed.partition(".")[2])) == float(printed.replace(",", ""))


@pytest.mark.parametrize("name", RESULTS)
def test_the_commit_of_a_file_of_results_exists_or_the_file_says_that_it_does_not(name, tables):
    commits = {row["commit"] for row in tables.read(name)}
    traced = {re.split(r"[+-]", commit)[0] for commit in commits if LOST not in commit}

    missing = [commit for commit in traced if not exists(commit)]

    assert not missing, f"measure again where history keeps its commits, or write '{missing[0]}, {LOST}'"


def exists(commit):
    git = ["git", "-C", str(ROOT), "cat-file", "-e", f"{commit}^{{commit}}"]
    return subprocess.run(git, capture_output=True, check=False).returncode == 0


TRACKERS = "Trackio", "W&B", "TensorBoard", "MLflow", "Aim"


def test_every_figure_of_a_row_is_in_its_file_but_those_of_trackers_that_may_be_missing(tables):
    from speed_figures import ROWS

    for row in ROWS:
        known = {one["figure"] for one in tables.read(row.results)}
        missing = [figure for figure in row.figures.values() if figure not in known]
        assert [name for name in missing if not name.startswith(TRACKERS)] == []
