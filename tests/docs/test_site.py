"""The documentation builds without a warning: no broken link, no page that none leads to, no name that is gone."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_documentation_builds_without_a_warning_and_has_what_assistants_read(tmp_path):
    site = tmp_path / "site"
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    command += ["--builder", "dirhtml", "--doctree-dir", str(tmp_path / "doctrees"), str(ROOT / "docs"), str(site)]

    built = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)

    assert built.returncode == 0, built.stderr
    pages = {path.parent.relative_to(site).as_posix() for path in site.rglob("index.html")}
    assert {"tutorials/first_answer", "reference/python", "reference/cli", "reference/rest_api", "search"} <= pages
    assert "noisescale" in (site / "llms.txt").read_text()
    assert len((site / "llms-full.txt").read_text()) > 100_000
    assert "/api/v1/runs/{run_id}/recommendation" in (site / "reference" / "rest_api" / "index.html").read_text()
