"""Rows of results with what they were measured on: device, torch, triton, commit, date and command."""

import csv
import os
import platform
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import torch
import triton

from benchmarks.harness import RESULTS

Row = dict[str, str | int | float]

MEASURED = "measured"


def not_measured(reason: str) -> str:
    """What the column `status` says of a row without numbers."""
    return f"not measured: {reason}"


def device_name(device: torch.device) -> str:
    """What the device is sold as, or how many cores share the work."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU ({torch.get_num_threads()} of {os.cpu_count()} cores, {platform.machine()})"


def file_name(what: str, device: torch.device) -> str:
    """`kernels-cpu.csv`, `kernels-nvidia-h200.csv`: a device's results never replace another's."""
    name = "cpu" if device.type == "cpu" else device_name(device)
    return f"{what}-{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-')}.csv"


def provenance(device: torch.device, command: str) -> Row:
    """What a reader needs to measure a row again."""
    folder = Path(__file__).parent
    git = ["git", "-C", str(folder), "describe", "--always", "--dirty"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout
    return {
        "device": device_name(device),
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "none",
        "triton": triton.__version__,
        "python": platform.python_version(),
        "commit": commit.strip(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": command,
    }


def write_rows(path: Path, rows: Sequence[Row], about: Row) -> None:
    """Write rows, each with what they were measured on; a column that a row lacks stays empty."""
    columns = list(dict.fromkeys(column for row in rows for column in row)) + list(about)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        table.writeheader()
        for row in rows:
            table.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in (row | about).items()})


def results_path(what: str, device: torch.device) -> Path:
    """Where the results of a device belong."""
    return RESULTS / file_name(what, device)
