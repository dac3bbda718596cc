"""Prints the tables of docs/policies.md from results/policies.csv."""

import csv
from itertools import groupby
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "results" / "policies.csv"
HEADER = "| policy | all starts | right | batch off | rate off | both off | missed | cost relative to keeping |"


def cell(row: dict[str, str]) -> str:
    """Median / p90."""
    return f"{float(row['median']):.0f} / {float(row['p90']):.0f}"


def line(rows: list[dict[str, str]]) -> str:
    """One policy."""
    everything = rows[0]
    relative = f"{float(everything['relative']):.2f} [{float(everything['low']):.2f}, {float(everything['high']):.2f}]"
    cells = [everything["policy"], *(cell(row) for row in rows), f"{float(everything['missed']):.0%}", relative]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """All tables."""
    with RESULTS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for key, part in groupby(rows, key=lambda row: (row["split"], row["rate"], row["price_over_b_crit"])):
        print("\n{} tasks, {} rate, r = {} B_crit\n".format(*key), HEADER, "|---" * 8 + "|", sep="\n")
        for _, policy in groupby(part, key=lambda row: row["policy"]):
            print(line(list(policy)))


if __name__ == "__main__":
    main()
