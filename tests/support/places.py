"""Folders whose modules the tests import by name: each part's own support, and what several parts share."""

import os
from pathlib import Path

TESTS = Path(__file__).parents[1]
FOLDERS = [TESTS, *sorted(TESTS.glob("*/support")), TESTS / "support"]


def with_support(environ: dict[str, str] | None = None) -> str:
    """A PYTHONPATH with which a process finds them, too."""
    already = (os.environ if environ is None else environ).get("PYTHONPATH", "")
    return os.pathsep.join([*map(str, FOLDERS), *([already] if already else [])])
