"""Prints the tables of docs/policies.md from the results."""

import csv
import math
from itertools import groupby
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "results"
POLICIES = ("policies.csv", "policies_ours.csv")
HEADER = "| policy | all starts | right | batch off | rate off | both off | missed | cost relative to keeping |"
RECOMMENDATIONS = (
    "| rate | share of the run | noise scale | κ from | shown | interval holds | decides | rightly | error of B_crit "
    "| regret of the batch | regret of following decisions |"
)


def cell(row: dict[str, str]) -> str:
    """Median / p90."""
    return f"{float(row['median']):z.0f} / {float(row['p90']):z.0f}"


def line(rows: list[dict[str, str]]) -> str:
    """One policy."""
    everything = rows[0]
    relative = f"{float(everything['relative']):.2f} [{float(everything['low']):.2f}, {float(everything['high']):.2f}]"
    cells = [everything["policy"], *(cell(row) for row in rows), f"{float(everything['missed']):.0%}", relative]
    return "| " + " | ".join(cells) + " |"


def of_policies(file: Path) -> None:
    """Every table of a file."""
    for key, part in groupby(read(file), key=_table):
        print(
            "\n{} tasks, {} rate, r = {} B_crit, noise from {}; {}\n".format(*key), HEADER, "|---" * 8 + "|", sep="\n"
        )
        for _, policy in groupby(part, key=lambda row: row["policy"]):
            print(line(list(policy)))


def _table(row: dict[str, str]) -> tuple[str, str, str, str, str]:
    """What all rows of a table share."""
    return row["split"], row["rate"], row["price_over_b_crit"], row.get("noise_from", "examples"), row.get("tasks", "")


def of_recommendations(file: Path) -> None:
    """The table of recommendations half-way."""
    print(f"\n{RECOMMENDATIONS}\n" + "|---" * 11 + "|")
    for row in read(file):
        number = {key: float(row[key]) for key in list(row)[4:21]}
        print(
            f"| {row['rate']} | {row['share']} | {row['noise']} | {row['kappa']} | {number['shown']:.0%} | "
            f"{between(number, 'holds')} | {between(number, 'decided')} | {share(number['right'])} | "
            f"× {math.exp(number['log_error']):.1f} | "
            f"{number['recommended_median']:.0f} / {number['recommended_p90']:.0f} | "
            f"{number['followed_median']:.0f} / {number['followed_p90']:.0f} |"
        )


def between(number: dict[str, float], name: str) -> str:
    """A share with its interval."""
    return f"{share(number[name])} [{share(number[f'{name}_low'])}, {share(number[f'{name}_high'])}]"


def share(value: float) -> str:
    """In %, or a dash where there is none."""
    return "–" if math.isnan(value) else f"{value:.0%}"


def read(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def main() -> None:
    """All tables."""
    for name in POLICIES:
        of_policies(RESULTS / name)
    of_recommendations(RESULTS / "policies_recommendations.csv")


if __name__ == "__main__":
    main()
