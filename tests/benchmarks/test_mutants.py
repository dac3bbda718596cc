"""The bugs that `make mutants` plants are the ones that it says, and each file has tests that exist."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = '''
"""A docstring of 32 words."""
LIMIT: int | None = 1_000 * 2
SQL = f"""
SELECT least(a, 3) FROM t WHERE b >= $1 AND c = d ORDER BY {LIMIT}
"""


@decorated(flag=True)
def told(a: int | str, *, b: bool = False) -> list[int]:
    """The docstring of 3 >= 2."""
    if a is None and not b:
        raise ValueError("3 > 2")
    logger.info("said")
    remember(a)
    if now - start > SECONDS:
        remember(b)
    if b > 7:
        remember(b)
    for one, _ in zip(a, a, strict=True):
        continue
    return [one | 1 for one in a]
'''


@pytest.fixture
def drawing(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from mutation import drawing

    return drawing


@pytest.fixture
def changes(drawing, tmp_path):
    """What each mutant of the code above changes: (before, after)."""

    def of(file):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(CODE)
        return {one.difference(CODE) for one in drawing.mutants_of(tmp_path, file)}

    return of


def test_operators_change_what_code_does(changes):
    found = changes("services/told.py")

    for before, after in {
        ("LIMIT: int | None = 1_000 * 2", "LIMIT: int | None = 2000 * 2"),
        ("LIMIT: int | None = 1_000 * 2", "LIMIT: int | None = 1_000 / 2"),
        ("LIMIT: int | None = 1_000 * 2", "LIMIT: int | None = 1_000 * 3"),
        ("if a is None and not b:", "if a is not None and not b:"),
        ("if a is None and not b:", "if a is None or not b:"),
        ("if a is None and not b:", "if a is None and  b:"),
        ('raise ValueError("3 > 2")', "pass"),
        ("remember(a)", "pass"),
        ("continue", "break"),
        ("return [one | 1 for one in a]", "return [one & 1 for one in a]"),
        (
            "def told(a: int | str, *, b: bool = False) -> list[int]:",
            "def told(a: int | str, *, b: bool = True) -> list[int]:",
        ),
    }:
        assert (before, after) in found


def test_words_annotations_decorators_and_logs_are_left_alone(changes):
    found = changes("services/told.py")

    for line in ('"""The docstring', "@decorated", 'logger.info("said")', "SELECT"):
        assert [before for before, _ in found if before.startswith(line)] == []
    assert all("int & str" not in after and "int & None" not in after for _, after in found)
    assert all("strict=False" not in after for _, after in found)


def test_the_one_moment_of_a_clock_is_left_alone_and_not_which_side_of_it(changes):
    found = {after for before, after in changes("services/told.py") if before == "if now - start > SECONDS:"}

    assert "if now - start <= SECONDS:" in found
    assert "if now - start >= SECONDS:" not in found


def test_each_mutant_changes_the_line_that_it_names(drawing, tmp_path):
    """What is left out, as the one moment of a clock, counts as well where others are planted."""
    (tmp_path / "told.py").write_text(CODE)
    lines = CODE.splitlines()

    for mutant in drawing.mutants_of(tmp_path, "told.py"):
        assert mutant.difference(CODE)[0] == lines[mutant.line - 1].strip()


def test_texts_of_the_storage_are_sql(changes):
    found = {after for before, after in changes("server/storage/told.py") if before.startswith("SELECT")}

    assert found == {
        "SELECT greatest(a, 3) FROM t WHERE b >= $1 AND c = d ORDER BY {LIMIT}",
        "SELECT least(a, 4) FROM t WHERE b >= $1 AND c = d ORDER BY {LIMIT}",
        "SELECT least(a, 3) FROM t WHERE b > $1 AND c = d ORDER BY {LIMIT}",
        "SELECT least(a, 3) FROM t WHERE b >= $1 OR c = d ORDER BY {LIMIT}",
    }


def test_every_file_has_tests_that_exist(drawing):
    from mutation.tests_of import TESTS

    assert [one for one in TESTS if not (ROOT / one).is_file()] == []
    assert [one for tests in TESTS.values() for one in tests if not (ROOT / one).is_file()] == []
    transport = {str(path.relative_to(ROOT)) for path in (ROOT / "client/src/noisescale/transport").glob("*.py")}
    assert transport <= set(TESTS), "a new file of the transport has none"


def test_a_draw_is_the_same_for_the_same_seed(drawing):
    file = "client/src/noisescale/transport/spool/loss_book.py"
    mutants = list(drawing.mutants_of(ROOT, file))

    assert drawing.drawn(mutants, 1) == drawing.drawn(mutants, 1) != drawing.drawn(mutants, 2)
    assert len(set(mutants)) == len(mutants) > 20
