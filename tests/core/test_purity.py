"""The core is numbers in, numbers and words out: what it imports is named here."""

import ast
from pathlib import Path

import noisescale_core

ROOT = Path(noisescale_core.__file__).parent

PURE = {
    "bisect", "collections", "dataclasses", "enum", "functools", "itertools", "math", "numbers", "operator", "re",
    "statistics", "types", "typing",
}  # fmt: skip


READS_DATA = {"rate_coefficients.py": {"json", "pathlib"}}
"""Fitted numbers with their provenance are a file of their own, and one module reads it."""


def imported_by(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name.split(".")[0] for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def test_the_core_imports_itself_and_pure_parts_of_the_standard_library_alone() -> None:
    files = list(ROOT.rglob("*.py"))

    others = {
        file.name: imported_by(file) - PURE - {"noisescale_core"} - READS_DATA.get(file.name, set()) for file in files
    }

    assert len(files) > 50
    assert {name: names for name, names in others.items() if names} == {}
