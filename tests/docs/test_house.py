"""The house that a newcomer walks through: rooms small enough to be seen whole."""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for part in ("client", "lab", "importers", "server", "dashboard")
    for path in (ROOT / part / "src").rglob("*.py")
]
MOST_FILES_IN_A_FOLDER = 20
MOST_LOOSE_FILES = 14
"""At the top of a package, beside its folders."""


def test_no_folder_holds_more_files_than_can_be_seen_at_once():
    held = Counter(path.parent for path in SOURCES)

    assert {str(folder.relative_to(ROOT)): n for folder, n in held.items() if n > MOST_FILES_IN_A_FOLDER} == {}


def test_a_package_is_rooms_and_few_loose_files():
    tops = [path.parent for path in SOURCES if path.parent.parent.name == "src"]

    assert {top.name: n for top, n in Counter(tops).items() if n > MOST_LOOSE_FILES} == {}


def test_every_file_of_the_walk_through_the_architecture_is_there_and_named_once():
    text = (ROOT / "docs" / "architecture.md").read_text()
    walk = text.partition("## One measurement, file by file")[2].partition("## What holds everywhere")[0]
    named = re.findall(r"`([\w/]+\.py)`", walk)
    known = [str(path) for path in SOURCES]

    assert [name for name in named if not any(path.endswith(f"/{name}") for path in known)] == []
    assert {name: n for name, n in Counter(named).items() if n > 1} == {}
