"""Which code a figure measures: found through imports, and told apart by what it does."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
MODULES = ("measured_code", "imported_code", "results_file")

COUNTED = {
    "hot_path": "run.py step_log.py recent_updates.py row_parts.py recording.py transport/spool/disk_spool.py",
    "ingest": "api/ingest/streams.py api/access/gate.py api/ingest/wire_schemas.py api/platform/body.py "
    "storage/series/group_pyramid.py serving.py",
    "series": "api/series.py api/access/gate.py services/series/series.py storage/series/series.py "
    "harness.py payloads.py",
    "recommendation": "theory/cost.py services/recommendation/known_kappa.py services/series/history.py "
    "advice/recommendation.py",
    "page": "run/page.py run/recommendation_card.py app.py api/runs/runs.py address/address.js "
    "assets/10-base.css assets/00-plotly-cartesian.min.js",
    "import": "noisescale/__init__.py noisescale/__init__.pyi lazy.py client/pyproject.toml",
    "limits": "impatient_http.py api/platform/body.py api/runs/runs.py",
    "reproduce": "claim/command.py tasks/digits.py reproduce/trainer.py",
    "fits": "data/mlperf_convergence.json fitting/sweep_fit.py",
}
"""A few files that each figure must know of, by how their paths end."""

NOT_COUNTED = {
    "hot_path": ("capture/", "kernels/", "ask/"),
    "ingest": ("noisescale_core/advice/", "noisescale_server/analysis/"),
    "import": ("noisescale_core/", "capture/"),
    "truth": ("noisescale_server/", "noisescale/"),
    "page": ("noisescale_lab/", "planner/page.py"),
}


@pytest.fixture
def measured_code(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import measured_code

    return measured_code


@pytest.mark.slow
@pytest.mark.parametrize("what", COUNTED)
def test_a_figure_knows_of_all_that_it_drives(what, measured_code):
    paths = [str(path) for path in measured_code.code_of(what)]

    missing = [end for end in COUNTED[what].split() if not any(path.endswith(f"/{end}") for path in paths)]

    assert missing == []


@pytest.mark.parametrize("what", NOT_COUNTED)
def test_a_figure_does_not_go_stale_with_what_it_does_not_drive(what, measured_code):
    paths = [str(path.relative_to(ROOT)) for path in measured_code.code_of(what)]

    assert [
        path for path in paths if any(f"src/{part}" in path or f"/{part}" in path for part in NOT_COUNTED[what])
    ] == []


@pytest.mark.slow
@pytest.mark.thorough
def test_every_figure_counts_its_own_script_and_not_how_results_are_kept(measured_code):
    for what, one in measured_code.MEASURED.items():
        code = measured_code.code_of(what)
        assert BENCHMARKS / one.script in code, what
        assert code.isdisjoint(BENCHMARKS / f"{name}.py" for name in MODULES), what
        assert all(path.is_file() for path in code), what


def test_every_benchmark_and_every_file_of_results_says_what_it_measures(measured_code):
    scripts = {one.script for one in measured_code.MEASURED.values()}
    found = {str(path.relative_to(BENCHMARKS)) for path in BENCHMARKS.rglob("benchmark_*.py")}

    assert found <= scripts
    for path in (BENCHMARKS / "results").glob("*.csv"):
        assert measured_code.measured(path.stem)
    with pytest.raises(KeyError, match=r"which benchmark writes results/unheard_of.csv"):
        measured_code.measured("unheard_of")


def test_nothing_else_writes_results():
    writers = [
        str(path.relative_to(BENCHMARKS))
        for path in BENCHMARKS.rglob("*.py")
        if re.search(r"csv\.(writer|DictWriter)|rev-parse|git.*describe", path.read_text())
    ]

    assert writers == ["results_file.py"]


def test_what_is_left_out_is_there_to_be_left_out(measured_code):
    for what, one in measured_code.MEASURED.items():
        assert all((ROOT / path).exists() for path in (*one.starts, *one.left_out, *one.alone)), what


PLAIN = '"""Old words."""\nimport math\n\n\ndef root(x):\n    """Of x."""\n    return math.sqrt(x)\n'
MOVED = '"""New words."""\nfrom elsewhere import math\n\n\ndef root(x):\n    # why\n    return math.sqrt(x)\n'


def test_moves_words_and_imports_leave_a_fingerprint_and_a_changed_formula_does_not(measured_code):
    plain, moved, changed = (
        measured_code.digest(text.encode(), ".py") for text in (PLAIN, MOVED, PLAIN.replace("(x)\n", "(x + 1)\n"))
    )

    assert plain == moved != changed
    assert measured_code.joined([plain, changed]) == measured_code.joined([changed, moved])


def test_an_import_more_counts_where_imports_are_measured(measured_code):
    more = f"import torch\n{PLAIN}"

    assert measured_code.digest(more.encode(), ".py") == measured_code.digest(PLAIN.encode(), ".py")
    assert measured_code.digest(more.encode(), ".py", with_imports=True) != measured_code.digest(
        PLAIN.encode(), ".py", with_imports=True
    )
    assert measured_code.MEASURED["import"].at_import


def test_one_byte_of_a_script_of_a_page_counts(measured_code):
    assert measured_code.digest(b"a = 1", ".js") != measured_code.digest(b"a = 2", ".js")


def test_names_that_a_package_loads_on_first_use_are_followed_and_those_for_type_checkers_are_not(
    measured_code, monkeypatch, tmp_path
):
    import imported_code

    monkeypatch.setattr(imported_code, "FOLDERS", (tmp_path,))
    package = tmp_path / "doors"
    package.mkdir()
    (package / "__init__.py").write_text("if TYPE_CHECKING:\n    from doors.behind import Name\n")
    (package / "behind.py").write_text("if TYPE_CHECKING:\n    from doors.words import Word\n")
    (package / "words.py").write_text("Word = str\n")
    start = tmp_path / "start.py"
    start.write_text("import json\nfrom doors import Name\n")

    loaded = imported_code.imported([start])
    at_import = imported_code.imported([start], at_import=True)

    assert loaded == {start, package / "__init__.py", package / "behind.py"}
    assert at_import == {start, package / "__init__.py"}
    assert imported_code.imported([start], left_out=[package]) == {start}
