"""The page for contributors: what it tells to run and to open exists, and its example is true."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", ".github/PULL_REQUEST_TEMPLATE.md")
TEXT = {name: (ROOT / name).read_text() for name in PAGES}
EVERYTHING = "\n".join(TEXT.values())
MAKEFILE = (ROOT / "Makefile").read_text()
MADE = (".venv", "dashboard/node_modules", "dist/", "SHA256SUMS", "noisescale.cdx.json")
"""What commands of the page make."""


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`make ([a-z-]+)|^make ([a-z-]+)", EVERYTHING, re.M))))
def test_every_make_target_exists(target: tuple[str, str]) -> None:
    assert re.search(rf"^{''.join(target)}:", MAKEFILE, re.M)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([\w./-]+(?:/|\.(?:py|md|toml|yml|txt)))`", EVERYTHING))))
def test_every_file_and_folder_that_is_named_exists(path: str) -> None:
    rooms = ("api/", "services/", "storage/")
    assert path in MADE or path in rooms or (ROOT / path).exists()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"pytest -q ([\w/.]+)", EVERYTHING))))
def test_every_test_that_is_run_exists(path: str) -> None:
    assert (ROOT / path).is_file()


def test_the_commands_of_noisescale_exist() -> None:
    projects = [path.read_text() for path in ROOT.glob("*/pyproject.toml")]
    tables = "\n".join(part for text in projects for part in re.findall(r'"noisescale\.commands"\]\n((?:.+\n)+)', text))

    for command in set(re.findall(r"`(?:\.venv/bin/)?noisescale ([a-z-]+)", EVERYTHING)):
        assert re.search(rf"^{command} = ", tables, re.M), command


def test_the_first_change_is_in_the_code_and_in_its_test_as_the_page_shows_it() -> None:
    shown = re.search(r"```python\n(.*?)```", TEXT["CONTRIBUTING.md"], re.S)
    assert shown is not None
    lines = [line.strip() for line in shown[1].splitlines() if line.strip()]
    test = (ROOT / "tests/core/advice/test_numbers.py").read_text()

    assert [line for line in lines if line not in test] == []
    assert "TEN_FROM = 9.95" in (ROOT / "client/src/noisescale_core/advice/parts/numbers.py").read_text()


def test_what_is_a_good_first_change_has_not_been_made_yet() -> None:
    mirrors = {path.stem for path in (ROOT / "client/src/noisescale/mirrors/trackers").glob("*.py")}
    runs = (ROOT / "client/src/noisescale/commands/runs.py").read_text()
    replayed = (ROOT / "client/src/noisescale/capture/per_example/layers/replayed.py").read_text()

    assert not mirrors & {"comet", "aim"}
    assert "--decision" not in runs
    assert '"efficiency"' not in runs
    assert "nn.Bilinear" in replayed
    assert "steps_per_epoch" not in (ROOT / "importers/src/noisescale_importers/roles.py").read_text()
