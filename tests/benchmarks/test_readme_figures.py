"""README's measured figures: each stands in the file that it names, and says of which commit it is or is fresh."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^## ", README, flags=re.MULTILINE)}
MEASURED = SECTIONS.pop("Measured")
TABLE = [line for line in MEASURED.splitlines() if "benchmarks/results/" in line and line.startswith("|")]
RESULTS = sorted(path.stem for path in (ROOT / "benchmarks" / "results").glob("*.csv"))
LOST = "not in this repository"
ORIGIN = {"commit", "machine", "load", "load at the end", "date", "command", "code"}
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import tables

    return tables


def named(text):
    return re.findall(r"benchmarks/results/([\w-]+)\.csv", text)


def values_of(rows):
    """Every number of a file of results."""
    cells = [value for row in rows for name, value in row.items() if name not in ORIGIN]
    return [float(cell) for cell in cells if re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", cell)]


def numbers_in(text):
    """As printed, and as numbers."""
    return [(printed, float(printed.replace(",", ""))) for printed in NUMBER.findall(text)]


@pytest.mark.thorough
def test_the_pages_of_figures_are_what_the_script_writes(tables):
    assert tables.PAGE.read_text() == tables.page(), "python benchmarks/tables.py"
    assert tables.readme() == README, "code has changed since it was measured: python benchmarks/tables.py"


def test_each_number_of_the_table_stands_in_the_file_that_its_row_names(tables):
    for line in TABLE:
        _, what, measured, _, file, _ = line.split("|")
        [name] = named(file)
        known = {float(f"{value:.3g}") for value in values_of(tables.read(name))}
        missing = [printed for printed, number in numbers_in(measured) if number not in known]
        assert not missing, f"{what.strip()}: {missing}"


def test_each_row_of_the_table_is_of_the_code_as_it_is_and_says_machine_and_load(tables):
    for line in TABLE:
        [name] = named(line)
        rows = tables.read(name)
        assert tables.is_fresh(name, rows), line
        assert all(re.fullmatch(r"[\d.]+ before, [\d.]+ after", row["load"]) for row in rows), line
        assert all(row["machine"] for row in rows), line


@pytest.mark.parametrize("title", [title for title, text in SECTIONS.items() if named(text)])
def test_a_figure_beside_the_table_says_of_which_commit_it_is(title, tables):
    for name, said in re.findall(r"benchmarks/results/([\w-]+)\.csv`(,[^;)]*)", SECTIONS[title] + ")"):
        commits = {row["commit"] for row in tables.read(name)}
        assert all(commit.partition(",")[0] in said for commit in commits), name
        assert all((LOST in said) == (LOST in commit) for commit in commits), name


@pytest.mark.parametrize("title", [title for title, text in SECTIONS.items() if named(text)])
def test_each_number_of_a_table_beside_it_stands_in_a_file_that_its_section_names(title, tables):
    known = [value for name in named(SECTIONS[title]) for value in values_of(tables.read(name))]
    lines = [line for line in SECTIONS[title].splitlines() if line.startswith("|")][2:]
    cells = [cell for line in lines for cell in line.split("|")[2:]]

    missing = [printed for printed, number in numbers_in(" ".join(cells)) if not is_among(printed, number, known)]

    assert missing == []


def is_among(printed, number, known):
    """Rounded as printed; shares are printed in per cent too, seconds in minutes."""
    digits = len(printed.partition(".")[2])
    return any(round(scale * value, digits) == number for value in known for scale in (1, 100, 1 / 60))


def test_each_error_of_the_accuracy_table_is_of_its_target(tables):
    rows = tables.read("truth")
    lines = [line for line in SECTIONS["How accurate"].splitlines() if line.startswith("|")][2:]
    for line in lines:
        _, target, noise_scale, *errors = line.split("|")
        batch_size, steps = re.findall(r"\(([\d,]+) × (\d+)\)", target)[0]
        [(_, about)] = numbers_in(noise_scale)
        known = values_of(
            row
            for row in rows
            if (row["batch_size"], row["steps"]) == (batch_size.replace(",", ""), steps)
            and float(f"{float(row['noise_scale']):.3g}") == about
        )
        missing = [printed for printed, number in numbers_in(" ".join(errors)) if not is_among(printed, number, known)]
        assert known, line
        assert not missing, line


@pytest.mark.parametrize("name", RESULTS)
def test_the_commit_of_a_file_of_results_exists_or_the_file_says_that_it_does_not(name, tables):
    commits = {row["commit"] for row in tables.read(name)}
    traced = {re.split(r"[+-]", commit)[0] for commit in commits if LOST not in commit}

    missing = [commit for commit in traced if not exists(commit)]

    assert not missing, f"measure again where history keeps its commits, or write '{missing[0]}, {LOST}'"


def test_every_commit_that_the_readme_names_exists_or_says_that_it_does_not():
    commits = re.findall(r"commit ([0-9a-f]{7,})\b(.{0,60})", README.replace("\n", " "))

    missing = [commit for commit, after in commits if LOST not in after and not exists(commit)]

    assert commits
    assert missing == []


def exists(commit):
    git = ["git", "-C", str(ROOT), "cat-file", "-e", f"{commit}^{{commit}}"]
    return subprocess.run(git, capture_output=True, check=False).returncode == 0


def test_every_figure_of_a_row_is_in_its_file_but_those_of_trackers_that_may_be_missing(tables):
    from readme_figures import ROWS

    for row in ROWS:
        known = {one["figure"] for one in tables.read(row.results)}
        missing = [figure for figure in row.figures.values() if figure not in known]
        assert [name for name in missing if not name.startswith(("Trackio", "W&B", "TensorBoard"))] == []


def test_stale_rows_leave_the_table_and_fresh_ones_come_back(tables, monkeypatch):
    from readme_figures import HEAD, ROWS, with_fresh_rows

    readme = f"# A\n\n## Measured\n\n{HEAD}\n| old | 1 | 2 | 3 |\n\nWords.\n\n## B\n"
    none = with_fresh_rows(readme, {})
    monkeypatch.setattr(
        "readme_figures.read",
        lambda _: [{"figure": name, "value": "1"} for row in ROWS for name in row.figures.values()],
    )
    all_fresh = with_fresh_rows(none, {row.results: True for row in ROWS})

    assert none == f"# A\n\n## Measured\n\n{HEAD}\n\nWords.\n\n## B\n"
    assert all_fresh.count("benchmarks/results/") == len(ROWS)
    assert with_fresh_rows(all_fresh, {}) == none
