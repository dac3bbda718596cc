"""The tests themselves: what a small change costs to test."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.processes

LISTS_WHAT_IS_LOADED = """
import sys, pytest
code = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", sys.argv[1]])
print(code, sorted({"fastapi", "sqlalchemy", "playwright.async_api", "dash", "torch"} & sys.modules.keys()))
"""


@pytest.mark.parametrize(
    "path",
    ["tests/core/estimators/test_size_weighting.py", "tests/core/advice/test_numbers.py"],
)
def test_a_file_of_pure_formulas_loads_neither_server_nor_browser_nor_torch(path):
    command = [sys.executable, "-c", LISTS_WHAT_IS_LOADED, path]

    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)

    assert finished.stdout.splitlines()[-1] in ("0 []", "ExitCode.OK []")


def part_of_the_quick_tests(part):
    """The paths that a part of `make test` is given, and those that it leaves out."""
    command = ["make", "--no-print-directory", "--dry-run", f"quick-{part}"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout
    [line] = [line for line in said.splitlines() if "/pytest " in line]
    words = line.split()
    left_out = [after for before, after in pairwise(words) if before == "--ignore"]
    return [word for word in words if word.startswith("tests") and word not in left_out], left_out


def test_each_file_is_in_one_part_of_the_quick_tests_and_in_no_other():
    [names] = re.findall(r"^PARTS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    parts = {name: part_of_the_quick_tests(name) for name in names.split()}

    for path in (ROOT / "tests").rglob("test_*.py"):
        held = [
            name
            for name, (given, left_out) in parts.items()
            if any(path.is_relative_to(ROOT / one) for one in given)
            and not any(path.is_relative_to(ROOT / one) for one in left_out)
        ]
        assert len(held) == 1, (path, held)
    assert all((ROOT / one).is_dir() for given, left_out in parts.values() for one in (*given, *left_out))
