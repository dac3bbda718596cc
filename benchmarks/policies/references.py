"""Writes and reads the sweeps' answers: benchmarks/policies/references.csv, one row a tuned run."""

import csv
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from benchmarks.policies.sweep import Reference, Tuned, sweep
from noisescale.reproduce.registry import ADVICE_TARGETS, ALL

FILE = Path(__file__).with_name("references.csv")
COLUMNS = ("task", "target", "min_steps", "critical_batch", "batch", "learning_rate", "steps")
SEEDS = range(6)
"""Seeds of the sweeps; policies are replayed with others."""


def read() -> dict[str, Reference]:
    """What has been swept so far."""
    if not FILE.exists():
        return {}
    with FILE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for name, group in groupby(rows, key=lambda row: row["task"]):
        of_task = list(group)
        tuned = tuple(Tuned(int(r["batch"]), float(r["learning_rate"]), float(r["steps"])) for r in of_task)
        first = of_task[0]
        found[name] = Reference(
            name, float(first["target"]), tuned, float(first["min_steps"]), float(first["critical_batch"])
        )
    return found


def write(references: dict[str, Reference]) -> None:
    """All references, in the order of the registry."""
    with FILE.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for name in ALL:
            if name in references:
                found = references[name]
                for tuned in found.tuned:
                    shared = (name, found.target, f"{found.min_steps:.5g}", f"{found.critical_batch:.5g}")
                    rows.writerow([*shared, tuned.batch, f"{tuned.learning_rate:.6g}", f"{tuned.steps:.5g}"])


def complete(names: Sequence[str], seeds: Sequence[int] = SEEDS) -> dict[str, Reference]:
    """References of these tasks; what is missing is swept and written at once."""
    found = read()
    for name in names:
        if name not in found:
            found[name] = sweep(ALL[name](), ADVICE_TARGETS[name], seeds=seeds)
            write(found)
            best = found[name].best
            print(
                f"{name}: S_min {found[name].min_steps:.1f} steps, B_crit {found[name].critical_batch:.1f}, "
                f"best B {best.batch} at rate {best.learning_rate:.3g}: {best.steps:.0f} steps",
                flush=True,
            )
    return found
