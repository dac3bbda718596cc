"""Builds a distribution's wheel as a release would."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build(distribution: str, folder: Path) -> Path:
    """The wheel of `client`, `server` or `dashboard`, built into the folder."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*command, str(ROOT / distribution)], check=True, capture_output=True)
    return next(folder.glob("*.whl"))
