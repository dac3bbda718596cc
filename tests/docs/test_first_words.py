"""What a newcomer meets first: no warning of a library, and no hint at a package that nobody has published."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVER = "import noisescale_server.app, noisescale_dashboard.app"
COMMAND = str(Path(sys.executable).with_name("noisescale"))


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize(
    "command",
    [
        pytest.param([COMMAND, "--help"], id="the command"),
        pytest.param([sys.executable, "-c", SERVER], id="the server"),
    ],
)
def test_nothing_of_a_library_warns(command: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=True)

    assert done.stderr == ""


def test_no_hint_names_a_package_on_the_public_index_that_is_not_ours() -> None:
    """The name `noisescale` is not published: who installs it from an index gets a stranger's package, or none."""
    parts = ("client/src", "lab/src", "importers/src", "server/src", "dashboard/src", "docs", "examples")
    pages = [ROOT / "README.md", *(path for part in parts for path in (ROOT / part).rglob("*") if path.is_file())]
    hints = re.compile(r"pip install (?!--)['\"]?noisescale")

    found = [
        str(page.relative_to(ROOT))
        for page in pages
        if page.suffix in (".md", ".py") and "documentation" not in page.parts and hints.search(page.read_text())
    ]

    assert found == []
