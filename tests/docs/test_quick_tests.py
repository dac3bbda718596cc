"""The tests themselves: what a small change costs to test."""

import subprocess
import sys
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
