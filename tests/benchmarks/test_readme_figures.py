"""README's measured figures: each file that it names holds results of the code as it is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()

TO_MEASURE_AGAIN = {"truth", "coverage", "policies", "following"}
"""Hours of measuring: README says of which commit they are until they are measured again."""


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import tables

    return tables


@pytest.mark.parametrize(
    "what", sorted(set(re.findall(r"benchmarks/results/([\w-]+)\.csv", README)) - TO_MEASURE_AGAIN)
)
def test_a_figure_of_the_readme_is_of_the_code_as_it_is(what, tables):
    fresh = tables.is_fresh(what, tables.read(what))

    assert fresh, (
        f"what results/{what}.csv measures has changed since: measure again, or take its figures out of README.md"
    )


@pytest.mark.parametrize("what", sorted(TO_MEASURE_AGAIN))
def test_an_older_figure_of_the_readme_says_of_which_commit_it_is(what, tables):
    commits = {row["commit"] for row in tables.read(what)}

    assert all(commit in README for commit in commits)


def test_the_page_of_figures_is_what_the_script_writes(tables):
    assert tables.PAGE.read_text() == tables.page()


def test_moves_words_and_imports_leave_a_fingerprint_and_a_changed_formula_does_not(tables):
    from measured_code import fingerprint_of

    plain = '"""Old words."""\nimport math\n\n\ndef root(x):\n    """Of x."""\n    return math.sqrt(x)\n'
    moved = '"""New words."""\nfrom elsewhere import math\n\n\ndef root(x):\n    # why\n    return math.sqrt(x)\n'
    changed = plain.replace("sqrt(x)", "sqrt(x + 1)")

    assert fingerprint_of([plain], [True]) == fingerprint_of([moved], [True]) != fingerprint_of([changed], [True])
