"""Writes and reads the sweeps' answers as CSV, one row a tuned run."""

import csv
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from noisescale_lab.reproduce.advice.sweep import Reference, Tuned, sweep
from noisescale_lab.reproduce.registry import ADVICE_TARGETS, ALL

COLUMNS = ("task", "target", "min_steps", "critical_batch", "batch", "learning_rate", "steps")
SEEDS = range(6)
"""Seeds of the sweeps; policies are replayed with others."""


def read(file: Path) -> dict[str, Reference]:
    """What has been swept so far."""
    if not file.exists():
        return {}
    with file.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    found = {}
    for name, group in groupby(rows, key=lambda row: row["task"]):
        of_task = list(group)
        tuned = tuple(Tuned(int(r["batch"]), float(r["learning_rate"]), float(r["steps"])) for r in of_task)
        first = of_task[0]
        found[name] = Reference(
            name, float(first["target"]), tuned, float(first["min_steps"]), float(first["critical_batch"])
        )
    return found


def write(file: Path, references: dict[str, Reference]) -> None:
    """All references, in the order of the registry."""
    with file.open("w", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(COLUMNS)
        for name in ALL:
            if name in references:
                found = references[name]
                for tuned in found.tuned:
                    shared = (name, found.target, f"{found.min_steps:.5g}", f"{found.critical_batch:.5g}")
                    rows.writerow([*shared, tuned.batch, f"{tuned.learning_rate:.6g}", f"{tuned.steps:.5g}"])


def complete(file: Path, names: Sequence[str], seeds: Sequence[int] = SEEDS) -> dict[str, Reference]:
    """References of these tasks; what is missing is swept and written at once."""
    found = read(file)
    for name in names:
        if name not in found:
            found[name] = sweep(ALL[name](), ADVICE_TARGETS[name], seeds=seeds)
            write(file, found)
    return found
